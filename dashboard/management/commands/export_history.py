"""`export_history`: the changes of docs/words.md, oldest first, for programs."""

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.utils.dateparse import parse_datetime

from dashboard import clock
from dashboard.access.security_log import SecurityEvent, record
from dashboard.lists.url_parameters import BadFilter, read_moment
from dashboard.management.refusing import RefusingCommand
from leases.history import export, find_changes
from leases.history.indexed_search import HistoryFilter


class Command(RefusingCommand):
    help = "Print every remembered change, oldest first."
    reads_history = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--cluster", help="only this cluster (all)")
        parser.add_argument(
            "--since", help="only from this time on: RFC 3339 with an offset, 03:12 or 90 min"
        )
        parser.add_argument("--format", choices=["ndjson", "csv"], default="ndjson")

    def handle(self, *, cluster: str | None, since: str | None, **options: Any) -> None:
        _check_cluster(cluster)
        found = export.changes(cluster, HistoryFilter(since=_moment(since)))
        given = {"cluster": cluster, "since": since, "format": options["format"]}
        said = [f"--{name} {value}" for name, value in given.items() if value]
        record(
            SecurityEvent.EXPORT,
            who="manage.py",
            address="",
            about=" ".join(["export_history", *said]),
        )
        lines = export.ndjson(found) if options["format"] == "ndjson" else export.as_csv(found)
        try:
            for line in lines:
                self.stdout.write(line, ending="")
        except BrokenPipeError:  # the reader, such as head, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _moment(text: str | None) -> Any:
    if text is None:
        return None
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    try:
        if moment is None or moment.tzinfo is not None:
            return read_moment(text, "--since", clock.now())
    except BadFilter:
        pass
    raise CommandError(
        f"--since {text[:60]!r} is not a time; write it like 2026-11-20T03:12:40Z, 03:12 or 90 min."
    )


def _check_cluster(cluster: str | None) -> None:
    known = find_changes.known_clusters()
    if cluster is not None and cluster not in known:
        listed = ", ".join(known) or "none yet"
        raise CommandError(f"No history of a cluster called {cluster[:60]!r}. Known: {listed}.")
