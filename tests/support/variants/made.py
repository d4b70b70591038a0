"""A recording that was made here: its streams, its truth, and the files that hold them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support.incidents.recording import Connection, Line, Recording
from tests.support.variants.true_changes import true_changes

STREAMS = {"leases": "", "pods": ".pods", "nodes": ".nodes", "events": ".events"}
Incident = dict[str, Any]


def text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Made(Recording):
    """The same form as a recording read from files.

    `incidents` need `until`: changes of its `leases` up to then belong to it.
    """

    def __init__(
        self,
        name: str,
        connections: list[Connection],
        objects: dict[str, list[Line]],
        incidents: Iterable[Incident],
    ) -> None:
        self.name = name
        self._connections = connections
        self._objects = objects
        lines = [line for one in connections for line in one.lines]
        changes = true_changes(lines, connections[-1].ended)
        found = list(incidents)
        for change in changes:
            _give(change, found)
        for one in found:
            until = one.pop("until")
            mine = [change["at"] for change in changes if change["incident"] == one["id"]]
            one["ended"] = max(mine, default=until)
            one["ended"], one["began"] = text(one["ended"]), text(one["began"])
        self.truth = {
            "recording": name,
            "opened": text(connections[0].opened),
            "ended": text(connections[-1].ended),
            "incidents": found,
            "changes": [change | {"at": text(change["at"])} for change in changes],
        }

    def connections(self) -> list[Connection]:
        return self._connections

    def objects(self, kind: str) -> list[Line]:
        return self._objects.get(kind, [])

    def write(self, directory: Path) -> None:
        """Write the files, as the recordings have them."""
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{self.name}.causes.json").write_text(json.dumps(self.truth, indent=1))
        for kind, suffix in STREAMS.items():
            lines = self.objects(kind)
            arrivals: dict[str, Any] = {
                "opened": self.truth["opened"],
                "ended": self.truth["ended"],
            }
            if kind == "leases":
                lines, first = [], 0
                arrivals["connections"] = []
                for one in self._connections:
                    times = {"opened": text(one.opened), "ended": text(one.ended)}
                    arrivals["connections"].append(times | {"first_line": first})
                    first += len(one.lines)
                    lines.extend(one.lines)
            arrivals["arrival"] = [text(line.at) for line in lines]
            base = directory / f"{self.name}{suffix}"
            base.with_name(base.name + ".arrivals.json").write_text(json.dumps(arrivals))
            body = b"".join(line.body + b"\n" for line in lines)
            base.with_name(base.name + ".ndjson.gz").write_bytes(gzip.compress(body, mtime=0))


def _give(change: dict[str, Any], incidents: list[Incident]) -> None:
    """Give a change to the incident that opened last on its Lease."""
    slack = timedelta(seconds=0.05)
    for one in sorted(incidents, key=lambda one: one["began"]):
        open_then = one["began"] - slack <= change["at"] <= one["until"]
        if open_then and (one["leases"] == "all" or change["lease"] in one["leases"]):
            change["incident"] = one["id"]
