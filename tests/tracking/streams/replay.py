"""Replays recorded watch streams into a store."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from leases.domain.change import Change
from leases.domain.lease import Lease
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update
from leases.wire.renewal_lines import Reader
from leases.wire.watch_decoding import Applied, Bookmark, Listed, WatchEvent

STREAMS = Path(__file__).parents[2] / "conformance" / "streams"
RECORDED = [
    "election-handover-and-crash",
    "election-python-client",
    "election-skewed-clock",
    "node-heartbeats",
    "node-heartbeats-bookmarks",
    "delete-recreate",
    "initial-events",
    "coordinated-election",
]


def lines(stream: str, known: Container[int] = ()) -> Iterator[tuple[datetime, WatchEvent]]:
    """Every line, read as our watch reads it, with the time of its arrival."""
    reader = Reader(known)
    arrivals = json.loads((STREAMS / f"{stream}.arrivals.json").read_bytes())["arrival"]
    bodies = (STREAMS / f"{stream}.ndjson").read_bytes().splitlines()
    for arrival, body in zip(arrivals, bodies, strict=True):
        yield datetime.fromisoformat(arrival), reader.read(body)


def ended_at(stream: str) -> datetime:
    """When the recording ended."""
    arrivals = json.loads((STREAMS / f"{stream}.arrivals.json").read_bytes())
    return datetime.fromisoformat(arrivals["ended"])


def turn_to(store: Store, until: datetime) -> Iterator[Update | None]:
    """Every deadline before `until`, at its very moment."""
    while (deadline := store.next_deadline()) is not None and deadline < until:
        yield store.turn(deadline)


def replay(stream: str, *, twice: bool = False, marked: bool = True) -> tuple[Store, list[Change]]:
    """The store and all changes at the end of the recording; initial events come as the list they
    are.
    """
    store = Store("recorded")
    reported: list[Update | None] = []
    initial: list[Lease] | None = [] if "initial" in stream or "bookmarks" in stream else None
    for at, event in lines(stream, store.fingerprints if marked else ()):
        reported.extend(turn_to(store, at))
        if isinstance(event, Bookmark):
            if initial is not None:
                reported.append(store.replace(Listed(tuple(initial), event.resource_version), at))
                initial = None
        elif initial is not None:
            assert isinstance(event, Applied)
            initial.append(event.lease)
        else:
            reported.append(store.follow((event,), at))
            if twice:
                assert store.follow((event,), at) is None
    reported.extend(turn_to(store, ended_at(stream)))
    return store, [change for update in reported if update for change in update.changes]


def truth(stream: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads((STREAMS / f"{stream}.truth.json").read_bytes())
    return answer


def moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
