"""Recorded watch streams against what those who did it say truly happened."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from leases.domain.change import Change, ChangeType
from leases.domain.identity import identity
from leases.domain.lease import Lease
from leases.domain.phase import Phase
from leases.tracking.store import Store
from leases.tracking.tracked import Update
from leases.wire.events import Applied, Deleted, Listed

STREAMS = Path(__file__).parents[1] / "conformance" / "streams"
SOON = timedelta(seconds=0.05)  # between a doer's log and our line
BEGINS = {
    ChangeType.CREATED,
    ChangeType.ACQUIRED,
    ChangeType.TAKEN_OVER,
    ChangeType.REPLACED,
    ChangeType.RECOVERED,
}
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


class Line(msgspec.Struct):
    type: str
    object: Lease


def lines(stream: str) -> Iterator[tuple[datetime, Line]]:
    """Every line with the time of its arrival."""
    decode = msgspec.json.Decoder(Line).decode
    arrivals = json.loads((STREAMS / f"{stream}.arrivals.json").read_bytes())["arrival"]
    bodies = (STREAMS / f"{stream}.ndjson").read_bytes().splitlines()
    for arrival, body in zip(arrivals, bodies, strict=True):
        yield datetime.fromisoformat(arrival), decode(body)


def turn_to(store: Store, until: datetime) -> Iterator[Update | None]:
    """Every deadline before `until`, at its very moment."""
    while (deadline := store.next_deadline()) is not None and deadline < until:
        yield store.turn(deadline)


def replay(stream: str, *, twice: bool = False) -> tuple[Store, list[Change]]:
    """The store and all changes at the end of the recording; initial events come as the list they
    are.
    """
    store = Store("recorded")
    told: list[Update | None] = []
    initial: list[Lease] | None = [] if "initial" in stream or "bookmarks" in stream else None
    for at, line in lines(stream):
        told.extend(turn_to(store, at))
        if line.type == "BOOKMARK":
            if initial is not None:
                version = line.object.resource_version
                told.append(store.replace(Listed(tuple(initial), version), at))
                initial = None
        elif initial is not None:
            initial.append(line.object)
        else:
            event = (Deleted if line.type == "DELETED" else Applied)(line.object)
            told.append(store.apply(event, at))
            if twice:
                assert store.apply(event, at) is None
    ended = json.loads((STREAMS / f"{stream}.arrivals.json").read_bytes())["ended"]
    told.extend(turn_to(store, datetime.fromisoformat(ended)))
    return store, [change for update in told if update for change in update.changes]


def truth(stream: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads((STREAMS / f"{stream}.truth.json").read_bytes())
    return answer


def moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


@pytest.mark.parametrize("stream", [name for name in RECORDED if name != "coordinated-election"])
def test_every_period_of_holding_begins_and_ends_as_it_truly_did(stream: str) -> None:
    _, changes = replay(stream)
    by_lease: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        by_lease[change.name].append(change)
    ended = datetime.fromisoformat(
        json.loads((STREAMS / f"{stream}.arrivals.json").read_bytes())["ended"]
    )
    periods: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for period in truth(stream)["holders"]:
        periods[period["lease"]].append(period)
    assert set(by_lease) == set(periods)
    for name, expected in periods.items():
        told = by_lease[name]
        begun = [change for change in told if change.change in BEGINS and change.holder]
        assert [change.holder for change in begun] == [period["holder"] for period in expected]
        for change, period in zip(begun, expected, strict=True):
            assert change.uid == period["uid"]
            if not change.inferred:
                assert change.at == moment(period["first_seen"])
            until = moment(period["lease_valid_until"])
            ends = [c for c in told if c.at > change.at and c.change is not ChangeType.RECONFIGURED]
            if until is None or until >= ended:
                assert not ends
            else:
                assert abs(ends[0].at - until) < SOON


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        (
            "election-handover-and-crash",
            "created released acquired expired taken_over expired taken_over released",
        ),
        ("election-python-client", "created expired taken_over expired taken_over"),
        ("election-skewed-clock", "created expired taken_over released acquired expired"),
        (
            "delete-recreate",
            "created deleted created deleted created deleted created deleted",
        ),
        ("node-heartbeats", "created " * 8 + "expired deleted recovered"),
        ("node-heartbeats-bookmarks", "created " * 8 + "expired deleted recovered"),
        ("initial-events", "created created created replaced created deleted"),
    ],
)
def test_a_stream_tells_these_changes_and_no_others(stream: str, words: str) -> None:
    _, changes = replay(stream)
    assert [change.change.value for change in changes] == words.split()


def test_an_election_expires_exactly_when_its_last_renewal_has_lasted() -> None:
    _, changes = replay("election-skewed-clock")
    expiries = [change.at for change in changes if change.change is ChangeType.EXPIRED]
    periods = truth("election-skewed-clock")["holders"]
    assert expiries == [
        moment(periods[0]["lease_valid_until"]),
        moment(periods[2]["lease_valid_until"]),
    ]


def test_a_silent_node_seen_first_in_a_list_runs_out_by_its_renew_time() -> None:
    _, changes = replay("node-heartbeats-bookmarks")
    (expired,) = (change for change in changes if change.change is ChangeType.EXPIRED)
    assert expired.name == "node-5"
    assert expired.at == datetime.fromisoformat("2026-11-20T17:04:57.692467+00:00")


def test_a_coordinated_election_tells_exactly_its_changes() -> None:
    _, changes = replay("coordinated-election")
    expected = truth("coordinated-election")["leases"]["coordinated/demo-scheduler"]["changes"]
    assert [
        {
            "change": change.change.value,
            "at": change.at,
            "holder": change.holder,
            "previous_holder": change.previous_holder,
            "uid": change.uid,
            "resourceVersion": change.resource_version or None,
            "leaseTransitions": change.transitions,
            "missed": change.missed,
            "gap_seconds": change.gap_seconds,
            "fields": list(change.fields),
        }
        for change in changes
    ] == [
        {
            **{key: true[key] for key in true if key not in {"line", "by", "done_between"}},
            "at": moment(true["at"]),
            "fields": true.get("fields", []),
        }
        for true in expected
    ]


def test_the_gap_between_a_deletion_and_the_next_holder_is_told() -> None:
    _, changes = replay("delete-recreate")
    gaps = [change.gap_seconds for change in changes if change.change is ChangeType.CREATED]
    assert gaps == [None, 2.005212, 0.002727, 1.00491]


def test_learned_cadences_are_those_of_the_writers() -> None:
    store, _ = replay("node-heartbeats")
    for tracked in store.snapshot():
        assert tracked.cadence_seconds is not None
        assert abs(tracked.cadence_seconds - 10) < 0.1
        assert tracked.kind == "heartbeat"
        assert tracked.phase is Phase.HELD


def test_the_skew_of_a_holder_is_learned() -> None:
    store, _ = replay("election-skewed-clock")
    (tracked,) = store.snapshot()
    assert tracked.skew_seconds is not None
    assert abs(tracked.skew_seconds - 300) < 0.1


@pytest.mark.parametrize("stream", RECORDED)
def test_a_stream_told_twice_adds_nothing(stream: str) -> None:
    _, once = replay(stream)
    _, twice = replay(stream, twice=True)
    assert once == twice
    assert len({identity(change) + change.name for change in once}) == len(once)
