"""Recorded watch streams become exactly the changes that their writers made."""

from __future__ import annotations

from datetime import datetime

import pytest

from leases.domain.change import ChangeType, identity
from leases.domain.phase import Phase
from leases.wire.watch_decoding import Renewed
from tests.tracking.streams.replay import RECORDED, lines, moment, replay, truth


@pytest.mark.parametrize("stream", RECORDED)
def test_a_known_fingerprint_gives_what_decoding_gives(stream: str) -> None:
    store, changes = replay(stream)
    decoded, reported = replay(stream, marked=False)
    assert changes == reported
    assert store.snapshot() == decoded.snapshot()


def test_most_heartbeats_are_known_by_their_fingerprint() -> None:
    store, _ = replay("node-heartbeats")
    known = [type(event) is Renewed for _, event in lines("node-heartbeats", store.fingerprints)]
    assert sum(known) > len(known) / 2


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
def test_a_stream_makes_these_changes_and_no_others(stream: str, words: str) -> None:
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


def test_a_coordinated_election_makes_exactly_its_changes() -> None:
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
def test_a_stream_replayed_twice_adds_nothing(stream: str) -> None:
    _, once = replay(stream)
    _, twice = replay(stream, twice=True)
    assert once == twice
    assert len({identity(change) + change.name for change in once}) == len(once)
