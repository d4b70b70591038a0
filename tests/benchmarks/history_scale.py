"""What pages of history cost the server at 5 million changes over 130,000 Leases, on SQLite.

    python3 -m tests.benchmarks.history_scale [--folder FOLDER] [--changes N] [--leases N]
        [--elections N] [--days N] [--rounds N] [--export N] [--no-causes]

Makes the database in FOLDER (by default a temporary one; a database that is there already is
used as it is), then prints the median and the worst server time of each page, from the request to
the last byte of the answer, all middleware and templates included, and its CPU time; and how fast
an export runs and what memory it takes on the way.
"""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from tests.benchmarks.parts.big_history import generate, leases
from tests.benchmarks.parts.command import main
from tests.benchmarks.parts.figures import resident_bytes


class Bench:
    """An operator's browser without a network, on a cluster whose Leases are in memory and whose
    history is in the file."""

    def __init__(self, folder: Path, asked: Namespace) -> None:
        from django.contrib.auth.models import User
        from django.test import Client

        from dashboard.board import install_board
        from dashboard.config import ClusterSpec
        from dashboard.serving import runtime
        from leases.domain.watched_times import Connection, ConnectionState
        from leases.kube.cluster_source import ClusterSource, SourceKind
        from leases.wire.watch_decoding import Listed

        now = datetime.now(UTC)
        spec = ClusterSpec("big", ClusterSource(SourceKind.EMBEDDED))
        running = runtime.Runtime(runtime.Options(clusters=(spec,), data=folder))
        install_board(running)
        store = running.clusters["big"].store
        store.replace(Listed(tuple(leases(asked, now)), "1"), now)
        store.connection = Connection(state=ConnectionState.LIVE, since=now)
        user, _ = User.objects.get_or_create(
            username="bench", defaults={"is_staff": True, "is_superuser": True}
        )
        self.browser = Client()
        self.browser.force_login(user)
        self.rounds: int = asked.rounds

    def page(self, label: str, path: str) -> None:
        """Prints what the server takes for it."""
        took, cpu = [], []
        for _ in range(self.rounds + 1):
            began, busy = time.perf_counter(), time.process_time()
            answer = self.browser.get(f"/c/big/{path}")
            took.append((time.perf_counter() - began) * 1000)
            cpu.append((time.process_time() - busy) * 1000)
            assert answer.status_code == 200, (path, answer.status_code)
        first, again = took[0], took[1:]
        print(
            f"{label:<36} {median(again):7.1f} ms median {max(again):7.1f} worst {first:7.1f} first"
            f" {median(cpu[1:]):7.1f} of CPU {len(answer.content) / 1024:6.0f} KiB",
            flush=True,
        )


def reached(rows: int) -> tuple[datetime, int]:
    """Time and id of the change that stands so many down from the newest."""
    from leases.history.database import moment, select

    ((at, number),) = select(
        "SELECT at, id FROM leases_change INDEXED BY change_by_time WHERE cluster = 'big' "
        "ORDER BY at DESC, id DESC LIMIT 1 OFFSET %s",
        [rows],
    )
    return moment(at), number


def time_pages(bench: Bench, asked: Namespace) -> None:
    from leases.history.find_changes import write_cursor

    now = datetime.now(UTC)

    def ago(**time: float) -> str:
        return f"{now - timedelta(**time):%Y-%m-%dT%H:%M:%SZ}"

    day = f"history/?since={ago(days=9)}&until={ago(days=8)}&change=released&change=acquired"
    rows = min(10_000 * 50, asked.changes // 2)
    bench.page("history, first page", "history/")
    bench.page(f"history, page {rows // 50:,}", f"history/?before={write_cursor(reached(rows))}")
    bench.page("history, take-overs of elections", "history/?change=taken_over&kind=election")
    bench.page("history, one holder", "history/?holder=ip-10-0-7-9")
    bench.page("history, one namespace", "history/?namespace=team-07")
    bench.page("history, two causes", "history/?cause=crash&cause=by_hand")
    bench.page("history, a day's hand-overs", day)
    half_hour = f"from={ago(days=3)}&to={ago(days=3, hours=-0.5)}"
    bench.page("half an hour's Leases ranked", f"history/stretch/?{half_hour}")
    bench.page("a day's Leases ranked", f"history/stretch/?from={ago(days=3)}&to={ago(days=2)}")
    bench.page(f"as of, {asked.elections:,} elections", f"leases/?kind=election&at={ago(days=3)}")
    bench.page("as of, every Lease by name", f"leases/?at={ago(days=3)}")
    bench.page("timeline, 24 h, 50 lanes", "timeline/?range=24h")
    bench.page("timeline, 24 h, as of 3 h ago", f"timeline/?range=24h&at={ago(hours=3)}")
    bench.page("timeline, 30 d, 50 lanes", "timeline/?range=30d")
    bench.page("a Lease's detail", "leases/team-07/controller-00007/")
    bench.page("holders", "holders/")


def export(bench: Bench, asked: Namespace) -> None:
    """The newest changes through the page, at the pace of the reader."""
    since = f"{reached(asked.export - 1)[0]:%Y-%m-%dT%H:%M:%S.%fZ}"
    for words in ("ndjson", "csv"):
        answer = bench.browser.get(f"/c/big/history/?format={words}&since={since}")
        began, count, size, least, most = time.perf_counter(), 0, 0, 2**62, 0
        for chunk in answer.streaming_content:
            size += len(chunk)
            count += chunk.count(b"\n")
            if count % 1000 == 0 and count > asked.export // 10:
                least, most = min(least, resident_bytes()), max(most, resident_bytes())
        seconds = time.perf_counter() - began
        print(
            f"export of {count:,} rows as {words}: {count / seconds:,.0f} rows/s, "
            f"{size / 2**20:,.0f} MiB, memory grows by {(most - least) / 2**20:.1f} MiB on the way"
        )


def prepare(folder: Path, asked: Namespace) -> None:
    """Django on that folder; the database is made unless it is there."""
    os.environ["LEASEBOARD_DATA"] = str(folder)
    os.environ["LEASEBOARD_ALLOWED_HOSTS"] = "testserver"
    os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection

    path = folder / "leaseboard.sqlite3"
    made = path.exists()
    call_command("migrate", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    connection.close()
    if not made:
        generate(path, asked)


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--folder", type=Path)
    for name, default in (
        ("changes", 5_000_000), ("leases", 130_000), ("elections", 2000), ("days", 30),
        ("rounds", 11), ("export", 1_000_000),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument(
        "--no-causes", dest="causes", action="store_false", help="no change has a cause, to compare"
    )


def measure(asked: Namespace, scratch: Path) -> None:
    folder = asked.folder or scratch
    prepare(folder, asked)
    bench = Bench(folder, asked)
    time_pages(bench, asked)
    export(bench, asked)


if __name__ == "__main__":
    main(__doc__, measure, options)
