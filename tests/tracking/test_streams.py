"""Recorded watch streams against what those who did it say truly happened."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Container, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from leases.domain.changes.change import Change, ChangeType
from leases.domain.changes.change_identity import identity
from leases.domain.lease import Lease
from leases.domain.past.as_of import PastPhase, as_of
from leases.domain.past.terms import Life, fold
from leases.domain.phase import Phase
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update
from leases.wire.renewal_fingerprints import Reader
from leases.wire.status import Gone
from leases.wire.watch_events import Applied, Bookmark, Listed, Renewed, WatchEvent

STREAMS = Path(__file__).parents[1] / "conformance" / "streams"
SOON = timedelta(seconds=0.05)  # between a doer's log and our line
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
    told: list[Update | None] = []
    initial: list[Lease] | None = [] if "initial" in stream or "bookmarks" in stream else None
    for at, event in lines(stream, store.fingerprints if marked else ()):
        told.extend(turn_to(store, at))
        if isinstance(event, Bookmark):
            if initial is not None:
                told.append(store.replace(Listed(tuple(initial), event.resource_version), at))
                initial = None
        elif initial is not None:
            assert isinstance(event, Applied)
            initial.append(event.lease)
        else:
            told.append(store.follow((event,), at))
            if twice:
                assert store.follow((event,), at) is None
    told.extend(turn_to(store, ended_at(stream)))
    return store, [change for update in told if update for change in update.changes]


def lives(changes: list[Change]) -> dict[str, Life]:
    """What the changes add up to, by the Lease's name."""
    by_name: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        by_name[change.name].append(change)
    return {name: fold(mine) for name, mine in by_name.items()}


def held_spans(life: Life) -> list[tuple[str, str, datetime, datetime | None]]:
    """Holder, uid, begin and end of each span in which it was validly held."""
    spans = []
    for term in life.terms:
        since = term.since
        for gap in term.gaps:
            spans.append((term.holder, term.uid, since, gap.since))
            since = gap.until
        if since is not None:
            spans.append((term.holder, term.uid, since, term.until))
    return spans


def truth(stream: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads((STREAMS / f"{stream}.truth.json").read_bytes())
    return answer


def moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


NOT_COORDINATED = [name for name in RECORDED if name != "coordinated-election"]


def test_every_recorded_stream_of_leases_is_replayed() -> None:
    """Those without a truth of Leases are of candidates, or hold nothing but an error."""
    told = {path.name.removesuffix(".truth.json") for path in STREAMS.glob("*.truth.json")}
    assert told - set(RECORDED) == {"coordinated-election-candidates"}
    unprocessed_seconds = {path.stem for path in STREAMS.glob("*.ndjson")} - told
    assert unprocessed_seconds == {"gone-410"}
    with pytest.raises(Gone):
        list(lines("gone-410"))


@pytest.mark.parametrize("stream", RECORDED)
def test_what_is_known_by_its_mark_tells_what_decoding_tells(stream: str) -> None:
    store, changes = replay(stream)
    decoded, told = replay(stream, marked=False)
    assert changes == told
    assert store.snapshot() == decoded.snapshot()


def test_most_heartbeats_are_known_by_their_mark() -> None:
    store, _ = replay("node-heartbeats")
    known = [type(event) is Renewed for _, event in lines("node-heartbeats", store.fingerprints)]
    assert sum(known) > len(known) / 2


@pytest.mark.parametrize("stream", NOT_COORDINATED)
def test_every_term_and_gap_begins_and_ends_as_it_truly_did(stream: str) -> None:
    _, changes = replay(stream)
    listed = {change.name for change in changes if change.inferred}
    periods: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for period in truth(stream)["holders"]:
        periods[period["lease"]].append(period)
    folded = lives(changes)
    assert set(folded) == set(periods)
    for name, expected in periods.items():
        spans = held_spans(folded[name])
        assert [span[:2] for span in spans] == [(p["holder"], p["uid"]) for p in expected]
        for index, (span, period) in enumerate(zip(spans, expected, strict=True)):
            if index or name not in listed:
                assert span[2] == moment(period["first_seen"])
            valid_until = moment(period["lease_valid_until"])
            if valid_until is None or valid_until >= ended_at(stream):
                assert span[3] is None
            else:
                assert span[3] is not None
                assert abs(span[3] - valid_until) < SOON


@pytest.mark.parametrize("stream", NOT_COORDINATED)
def test_at_any_instant_it_stood_as_it_truly_did(stream: str) -> None:
    """Looked at in the middle of every true period, and of the time between two."""
    _, changes = replay(stream)
    folded = lives(changes)
    last: dict[str, dict[str, Any]] = {}
    for period in truth(stream)["holders"]:
        life, name = folded[period["lease"]], period["lease"]
        begin = moment(period["first_seen"])
        end = moment(period["lease_valid_until"]) or ended_at(stream)
        assert begin is not None
        stood = as_of(life, max(begin, begin + (end - begin) / 2))
        assert (stood.phase, stood.holder) == (PastPhase.HELD, period["holder"])
        if name in last and (before := moment(last[name]["lease_valid_until"])):
            between = as_of(life, before + (begin - before) / 2)
            ended_by = last[name]["ended_by"]
            if ended_by == "deleted":
                assert between.phase is PastPhase.DELETED
            elif ended_by == "released":
                assert between.phase is PastPhase.VACANT
            elif ended_by.startswith("crash"):
                assert (between.phase, between.holder) == (PastPhase.EXPIRED, last[name]["holder"])
        last[name] = period


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


def test_a_coordinated_elections_terms_are_those_of_its_truth() -> None:
    """Its `terms` count the controller's write of preferredHolder as a renewal; `changes`, as our
    rule, do not: where such a write came last, the term ends with the `expired` told there.
    """
    life = lives(replay("coordinated-election")[1])["demo-scheduler"]
    told = truth("coordinated-election")["leases"]["coordinated/demo-scheduler"]
    expected = told["terms"]
    assert [(term.holder, term.uid, term.since) for term in life.terms] == [
        (term["holder"], term["uid"], moment(term["began_at"])) for term in expected
    ]
    prefers = {c["at"] for c in told["changes"] if "preferredHolder" in c.get("fields", [])}
    expiries = [moment(c["at"]) for c in told["changes"] if c["change"] == "expired"]
    for term, true in zip(life.terms, expected, strict=True):
        assert list(term.gaps) == true["gaps"]
        if true["ended_by"] is None:
            assert (term.until, term.ended) == (None, None)
        elif true["ended_by"] in {"released", "deleted"}:
            assert (term.until, term.ended) == (moment(true["ended_at"]), true["ended_by"])
        else:
            assert term.ended is ChangeType.EXPIRED
            assert term.until in expiries
            if true["last_write"] not in prefers:
                assert term.until == moment(true["valid_until"])
    ends = [moment(c["at"]) for c in told["changes"] if c["gap_seconds"] is not None]
    assert [gap.until for gap in life.gaps if gap.until] == ends[:-1]  # the last ended an absence
    assert [mark.at for mark in life.reconfigurations] == [moment(at) for at in sorted(prefers)]


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
