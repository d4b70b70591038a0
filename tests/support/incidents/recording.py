"""Read one recording: the watch of Leases, the objects around it, and the truth."""

from __future__ import annotations

import gzip
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

RECORDED = Path(__file__).parents[2] / "conformance" / "incidents"


class Line(msgspec.Struct, frozen=True):
    at: datetime
    body: bytes


class Connection(msgspec.Struct, frozen=True):
    opened: datetime
    ended: datetime
    lines: tuple[Line, ...]


class Recording:
    """The files of one recording, by its name."""

    def __init__(self, directory: Path, name: str) -> None:
        self.name = name
        self._directory = directory
        self.truth: dict[str, Any] = json.loads((directory / f"{name}.causes.json").read_bytes())

    def connections(self) -> list[Connection]:
        """The watch of Leases, each connection with its lines."""
        arrivals, lines = self._stream("")
        opened = arrivals.get("connections") or [arrivals | {"first_line": 0}]
        firsts = [one["first_line"] for one in opened] + [len(lines)]
        return [
            Connection(_moment(one["opened"]), _moment(one["ended"]), tuple(lines[first:last]))
            for one, first, last in zip(opened, firsts, firsts[1:], strict=False)
        ]

    def objects(self, kind: str) -> list[Line]:
        """The watch of `pods`, `nodes` or `events`."""
        return self._stream(f".{kind}")[1]

    def _stream(self, kind: str) -> tuple[dict[str, Any], list[Line]]:
        base = f"{self.name}{kind}"
        arrivals = json.loads((self._directory / f"{base}.arrivals.json").read_bytes())
        packed = self._directory / f"{base}.ndjson.gz"
        if packed.exists():
            body = gzip.decompress(packed.read_bytes())
        else:
            body = (self._directory / f"{base}.ndjson").read_bytes()
        lines = zip(arrivals["arrival"], body.splitlines(), strict=False)
        return arrivals, [Line(_moment(at), line) for at, line in lines]


def recordings(directory: Path = RECORDED) -> list[Recording]:
    found = sorted(directory.glob("*.causes.json"))
    return [Recording(directory, path.name.removesuffix(".causes.json")) for path in found]


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
