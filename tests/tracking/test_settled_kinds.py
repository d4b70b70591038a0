"""A guessed kind is settled by the events of its Lease, and stays so over a restart."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
import pytest

from leases.domain.kind import (
    ALONE,
    MADE_ANEW,
    OTHER_HOLDER,
    RENEWED_ALONE,
    RENEWED_SINCE,
    Kind,
    Verdict,
)
from leases.domain.lease import Lease, ObjectName
from leases.domain.phase import Phase
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked, read_remembered
from leases.wire.watch_decoding import Applied, Deleted, Listed
from tests.support.values.leases import after, lease

KEY = ObjectName("default", "controller")


def guessed(holder: str | None = "a", **given) -> Lease:
    """A Lease of the shape that only allows a guess; the holder has renewed it."""
    return lease(holder, transitions=None, **({"renewed": 1, "version": 1} | given))


def watched(*leases: Lease) -> Store:
    store = Store("c")
    store.replace(Listed(leases or (guessed(),), "1"), after(1))
    return store


def known(store: Store) -> Tracked:
    tracked = store.get(KEY)
    assert tracked is not None
    return tracked


def verdict(store: Store) -> Verdict:
    return known(store).kind, known(store).kind_reason


def restarted(store: Store, at: datetime) -> Store:
    """The same Leases, as the next run reads them."""
    again = Store("c")
    again.restore(read_remembered([msgspec.json.encode(known(store))]), at)
    return again


def test_another_holder_within_one_uid_makes_it_an_election():
    store = watched()
    assert verdict(store) == RENEWED_SINCE
    store.follow((Applied(guessed("b", renewed=20, acquired=20, version=2)),), after(20))
    assert verdict(store) == OTHER_HOLDER
    store.follow((Applied(guessed("b", renewed=22, acquired=20, version=3)),), after(22))
    assert verdict(store) == OTHER_HOLDER


@pytest.mark.parametrize(("next_holder", "expected"), [("b", OTHER_HOLDER), ("a", RENEWED_SINCE)])
def test_the_last_holder_of_a_released_lease_is_remembered(next_holder, expected):
    store = watched()
    store.follow((Applied(guessed("", renewed=5, duration=1, version=2)),), after(5))
    assert verdict(store) == RENEWED_SINCE
    store = restarted(store, after(6))
    taken = guessed(next_holder, renewed=9, acquired=9, version=3)
    store.follow((Applied(taken),), after(9), inferred=True)
    assert verdict(store) == expected


def test_deleted_while_held_and_made_anew_it_is_a_lock():
    store = watched()
    store.follow((Deleted(guessed(version=2)),), after(3))
    store.follow((Applied(guessed("b", renewed=9, acquired=9, version=3, uid="u-2")),), after(9))
    assert verdict(store) == MADE_ANEW
    store.follow((Applied(guessed("b", renewed=11, acquired=9, version=4, uid="u-2")),), after(11))
    assert verdict(store) == MADE_ANEW  # it was a guess of an election again
    assert store.counts()[Kind.LOCK][Phase.HELD] == 1
    store.follow((Deleted(guessed("b", renewed=11, version=5, uid="u-2")),), after(12))
    store.follow((Applied(guessed("a", renewed=13, acquired=13, version=6, uid="u-3")),), after(13))
    assert verdict(store) == MADE_ANEW


def test_made_anew_where_only_a_list_shows_it():
    store = watched()
    store.replace(Listed((guessed("b", renewed=9, version=5, uid="u-2"),), "9"), after(9))
    assert verdict(store) == MADE_ANEW


def test_released_before_it_was_deleted_or_expired_it_stays_a_guess():
    store = watched()
    store.follow((Applied(guessed("", renewed=5, duration=1, version=2)),), after(5))
    store.follow((Deleted(guessed("", renewed=5, duration=1, version=3)),), after(6))
    store.follow((Applied(guessed(renewed=9, version=4, uid="u-2")),), after(9))
    assert verdict(store) == RENEWED_SINCE
    store.resumed(after(9))
    store.turn(after(30))
    assert known(store).phase is Phase.EXPIRED
    store.follow((Deleted(guessed(renewed=9, version=5, uid="u-2")),), after(31))
    store.follow((Applied(guessed(renewed=40, version=6, uid="u-3")),), after(40))
    assert verdict(store) == RENEWED_SINCE


def test_renewed_for_long_by_one_holder_alone_it_is_a_heartbeat():
    store = watched()
    assert store.settle_kinds(after(0) + ALONE - timedelta(seconds=1)) is None
    update = store.settle_kinds(after(0) + ALONE)
    assert update is not None
    assert (update.redraw, update.changes) == ((KEY,), ())
    assert verdict(store) == RENEWED_ALONE
    assert store.counts()[Kind.HEARTBEAT][Phase.HELD] == 1
    assert store.settle_kinds(after(9) + ALONE) is None
    again = restarted(store, after(10))
    assert verdict(again) == RENEWED_ALONE
    again.follow((Applied(guessed(renewed=12, version=2)),), after(12), inferred=True)
    assert verdict(again) == RENEWED_ALONE
    again.follow(
        (Applied(guessed("b", renewed=20, acquired=20, version=3)),), after(20), inferred=True
    )
    assert verdict(again) == OTHER_HOLDER


def test_what_the_rules_know_is_not_settled():
    store = watched(lease(renewed=1, version=1))
    before = verdict(store)
    assert store.settle_kinds(after(0) + ALONE) is None
    store.follow((Deleted(lease(renewed=1, version=2)),), after(3))
    store.follow((Applied(lease("b", renewed=9, acquired=9, version=3, uid="u-2")),), after(9))
    store.follow((Applied(lease("c", renewed=19, acquired=19, version=4, uid="u-2")),), after(19))
    assert verdict(store) == before


def test_a_field_that_tells_the_kind_beats_what_was_settled():
    store = watched()
    store.settle_kinds(after(0) + ALONE)
    store.follow((Applied(guessed(renewed=9, version=2, labels={"tfstate": "true"})),), after(9))
    assert verdict(store)[1].startswith("label tfstate=true")


def test_an_override_is_not_settled():
    store = watched()
    store.set_overrides({KEY: (Kind.ELECTION, "set by ada")}, after(2))
    assert store.settle_kinds(after(0) + ALONE) is None
