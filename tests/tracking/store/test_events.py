"""The state of a cluster after events of the watch and turns of the clock."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from leases.domain.change import Change, identity
from leases.domain.kind import Kind
from leases.domain.phase import Phase, next_turn
from leases.tracking.deadlines import SPAN
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Usual
from leases.wire.watch_decoding import Deleted
from tests.support.values.leases import after, lease
from tests.tracking.store.one_store import KEY, known, put, renewing, words


def test_a_creation_seen_live_is_observed_and_not_estimated() -> None:
    store = Store("c")
    update = put(store, 5, renewed=4)
    assert words(update) == ["created"]
    assert (known(store).observed_at, known(store).estimated) == (after(5), False)
    assert (known(store).held_since, known(store).kind) == (after(5), Kind.ELECTION)


def test_a_plain_renewal_moves_freshness_and_nothing_else() -> None:
    store = Store("c")
    renewing(store, 6)
    before = store.seq
    update = put(store, 8.1, renewed=8, version=9)
    assert update is not None
    assert (update.renewed, update.changes, update.redraw, update.seq) == ((KEY,), (), (), before)
    now = known(store)
    assert (now.observed_at, now.renewals_seen, now.cadence_seconds) == (after(8.1), 4, 2.0)
    assert now.skew_seconds == pytest.approx(0.0)
    assert now.phase is Phase.HELD


def test_the_clock_turns_held_to_late_to_expired() -> None:
    store = Store("c")
    renewing(store, 6)
    assert store.next_deadline() is not None
    assert store.turn(after(10)) is None
    late = store.turn(after(10.000001))
    assert late is not None
    assert (late.redraw, late.changes, known(store).phase) == ((KEY,), (), Phase.LATE)
    expired = store.turn(after(21.3))
    assert expired is not None
    (change,) = expired.changes
    assert (change.change, change.at, change.observed_at) == ("expired", after(21), after(21.3))
    assert (change.inferred, change.resource_version) == (False, "")
    assert (known(store).phase_since, known(store).gap_since) == (after(21), after(21))
    assert (store.next_deadline(), store.turn(after(9999))) == (None, None)


def test_an_event_that_beats_the_timer_reports_the_expiry_first() -> None:
    store = Store("c")
    renewing(store, 6)
    update = put(store, 21.5, holder="b", acquired=21.5, renewed=21.5, transitions=1, version=50)
    assert words(update) == ["expired", "taken_over"]
    assert update is not None
    assert update.changes[1].gap_seconds == 0.5
    assert known(store).gap_since is None
    store.turn(after(40))
    assert words(
        put(store, 45, holder="b", acquired=21.5, renewed=45, transitions=1, version=51)
    ) == ["recovered"]


def test_a_preferred_holder_renews_nothing() -> None:
    store = Store("c")
    last = renewing(store, 6)
    assert words(put(store, 9, renewed=6, preferred="b", version=last + 1)) == ["reconfigured"]
    assert known(store).observed_at == after(6)
    assert words(store.turn(after(21))) == ["expired"]


def test_a_shorter_duration_brings_the_deadline_nearer() -> None:
    store = Store("c")
    put(store, 0, duration=3600)
    assert store.next_deadline() == after(2400)
    put(store, 1, renewed=1, duration=3600, version=2)
    put(store, 2, renewed=1, duration=3, version=3)
    assert store.next_deadline() == after(4)


def test_the_first_renewal_judges_a_lock_again() -> None:
    store = Store("c")
    put(store, 0, transitions=None)
    assert known(store).kind is Kind.LOCK
    put(store, 2, renewed=2, transitions=None, version=2)
    assert known(store).kind is Kind.ELECTION
    put(store, 30, holder="b", acquired=30, renewed=30, transitions=None, version=3)
    assert known(store).kind is Kind.ELECTION


def test_a_vacant_lease_keeps_its_kind_and_reason() -> None:
    store = Store("c")
    put(store, 0, acquired=None, renewed=None, duration=None, transitions=None)
    reason = known(store).kind_reason
    put(
        store, 5, holder="", acquired=None, renewed=None, duration=None, transitions=None, version=2
    )
    assert (known(store).kind, known(store).kind_reason) == (Kind.LOCK, reason)
    assert (known(store).phase, known(store).gap_since) == (Phase.VACANT, after(5))


def test_a_heartbeat_without_a_holder_is_held_by_its_own_name_until_it_names_one() -> None:
    store = Store("c")
    bare: dict[str, Any] = {"acquired": None, "transitions": None}
    update = put(store, 0, holder=None, **bare)
    assert update is not None
    assert (update.changes[0].holder, known(store).phase) == ("controller", Phase.HELD)
    assert words(store.turn(after(15))) == ["expired"]
    assert words(put(store, 20, holder=None, renewed=20, version=2, **bare)) == ["recovered"]
    assert words(put(store, 21, holder="controller", renewed=21, version=3, **bare)) == []
    assert words(put(store, 22, holder="", renewed=22, version=4, **bare)) == ["released"]
    assert known(store).phase is Phase.VACANT


def test_an_event_that_is_not_newer_is_skipped_even_after_the_deletion() -> None:
    store = Store("c")
    put(store, 0, version=9)
    assert put(store, 1, version=9) is None
    assert put(store, 1, version=10, renewed=1) is not None
    assert put(store, 2, holder="b", version=9) is None
    gone = Deleted(lease(version=11))
    assert words(store.follow((gone,), after(3))) == ["deleted"]
    assert store.follow((gone,), after(4)) is None
    assert put(store, 5, version=10) is None
    assert store.snapshot() == ()


def test_another_uid_means_an_unseen_deletion() -> None:
    store = Store("c")
    renewing(store, 4)
    update = put(store, 9, uid="uid-2", created=7, acquired=9, renewed=9, version=20)
    assert words(update) == ["deleted", "created"]
    assert update is not None
    deleted, created = update.changes
    assert (deleted.uid, deleted.inferred, deleted.inferred_since) == ("uid-1", True, after(4))
    assert (deleted.at, deleted.previous_holder) == (after(7), "a")
    assert (created.uid, created.inferred, created.gap_seconds) == ("uid-2", False, None)
    assert (update.removed, update.redraw) == ((), (KEY,))


def test_a_re_creation_ends_the_gap_that_began_before_the_deletion() -> None:
    store = Store("c")
    put(store, 0)
    store.turn(after(15))
    store.follow((Deleted(lease(version=2)),), after(20))
    update = put(store, 25, uid="uid-2", version=3)
    assert update is not None
    assert update.changes[0].gap_seconds == 10


def test_a_holder_put_back_by_hand_runs_out_a_second_time() -> None:
    store = Store("c")
    reported: list[Change] = []
    for version, holder in enumerate("aba"):
        update = put(store, version * 20, holder=holder, version=version + 1)
        expired = store.turn(after(version * 20 + 15))
        reported += [change for u in (update, expired) if u for change in u.changes]
    assert [change.change.value for change in reported] == [
        "created",
        "expired",
        "taken_over",
        "expired",
        "taken_over",
        "expired",
    ]
    assert len({identity(change) for change in reported}) == 6


def test_a_renewed_lease_takes_less_memory_and_is_the_same() -> None:
    store = Store("c")
    version = renewing(store, 6)
    renewed = known(store)
    assert type(renewed.lasting) is Usual
    expected = lease(renewed=6, version=version)
    assert renewed.lease == expected
    assert (renewed.lapses, renewed.lasting.released_by, renewed.abandoned) == ((), None, False)
    store.turn(after(30))
    assert known(store).gap_since == after(21)


def test_what_is_unusual_of_a_lease_outlives_its_renewals() -> None:
    store = Store("c")
    renewing(store, 2)
    store.set_overrides({}, after(3), {KEY: "admin"})
    put(store, 4, renewed=4, version=20)
    put(store, 6, renewed=6, version=21)
    assert known(store).lasting.may_be_vacant == "admin"


def test_an_early_alarm_fires_exactly_only_at_a_real_deadline() -> None:
    store = Store("c")
    renewing(store, 20)
    row = store._rows.get(KEY)
    assert row is not None
    assert row.outlook.turn_delay is not None
    soonest = row.tracked.observed_at + row.outlook.turn_delay
    store.turn(soonest - timedelta(seconds=0.1))
    turn, due = next_turn(row.tracked), store.next_deadline()
    assert turn is not None
    assert due is not None
    assert turn - SPAN < due <= turn
