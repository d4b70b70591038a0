"""Leases that nobody holds count as abandoned when time has passed, without any event."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from leases.domain.kind import Kind
from leases.domain.lease import Lease
from leases.domain.phase import Phase
from leases.domain.steady_clock import Jump
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked, Update
from leases.tracking.tracker import Tracker
from leases.wire.watch_decoding import Applied, Connected, Disconnected, Listed
from tests.support.values.leases import after, lease

KEY = lease().key
HOUR = 3600


def released(seconds: float, version: int) -> Lease:
    """As client-go writes it: renewTime is the moment of the release."""
    return lease(None, renewed=seconds, acquired=seconds, duration=1, version=version)


def listed(*leases: Lease) -> Store:
    store = Store("c", abandoned_after=timedelta(hours=1))
    store.replace(Listed(leases, "1"), after(0))
    return store


def known(store: Store) -> Tracked:
    tracked = store.get(KEY)
    assert tracked is not None
    return tracked


def vacant(seconds: float = 10) -> Store:
    """Released while we watched."""
    store = listed(lease(version=1))
    store.follow((Applied(released(seconds, version=2)),), after(seconds))
    return store


def test_a_vacant_lease_becomes_abandoned_at_its_deadline_and_its_pages_are_told():
    store = vacant()
    due = store.next_deadline()
    assert due is not None
    assert due <= after(10 + HOUR)
    assert store.turn(after(10 + HOUR - 0.001)) is None
    assert not known(store).abandoned
    seq = store.seq
    update = store.turn(after(10 + HOUR))
    assert update is not None
    assert (update.redraw, update.changes, update.seq) == ((KEY,), (), seq + 1)
    assert known(store).abandoned
    assert [one.key for one in store.excused()] == [KEY]
    assert known(store).phase is Phase.VACANT
    assert store.counts()[Kind.ELECTION][Phase.VACANT] == 1
    assert store.next_deadline() is None


def test_who_acquires_it_ends_that_and_a_later_release_begins_anew():
    store = vacant()
    store.turn(after(10 + HOUR))
    at = 20 + HOUR
    store.follow((Applied(lease("b", renewed=at, acquired=at, version=3)),), after(at))
    assert not known(store).abandoned
    assert store.excused() == []
    store.follow((Applied(released(at + 5, version=4)),), after(at + 5))
    store.turn(after(at + 6))
    assert not known(store).abandoned
    store.turn(after(at + 5 + HOUR))
    assert known(store).abandoned


def test_a_vacant_lease_that_is_edited_stays_abandoned():
    store = vacant()
    store.turn(after(10 + HOUR))
    edited = lease(None, renewed=10, acquired=10, duration=30, version=3)
    store.follow((Applied(edited),), after(20 + HOUR))
    store.turn(after(20 + HOUR))
    assert known(store).abandoned
    labelled = lease(None, renewed=10, acquired=10, duration=30, labels={"a": "b"}, version=4)
    store.follow((Applied(labelled),), after(30 + HOUR))
    assert known(store).abandoned


async def test_nothing_is_abandoned_while_nobody_watches() -> None:
    now = after(0)
    updates: list[Update] = []
    store = Store("c", abandoned_after=timedelta(minutes=1))
    tracker = Tracker(store, [updates.append], lambda: now)
    tracker.handle(Listed((released(0, version=1),), "1"))
    tracker.handle(Connected())
    tracker.handle(Disconnected("cut"))
    now = after(HOUR)
    tracker.tick()
    assert not known(store).abandoned
    tracker.handle(Connected())
    for now in (after(HOUR + seconds) for seconds in range(30)):  # noqa: B007 - the clock
        tracker.tick()
    assert known(store).abandoned
    assert updates[-1].redraw == (KEY,)
    tracker.stop()


def test_the_first_list_believes_when_a_lease_was_released():
    store = listed(released(-2 * HOUR, version=1))
    store.turn(after(0))
    assert known(store).abandoned
    store = listed(released(-HOUR / 2, version=1))
    store.turn(after(HOUR / 2 - 1))
    assert not known(store).abandoned
    store.turn(after(HOUR / 2))
    assert known(store).abandoned


def test_a_lease_that_nobody_ever_held_is_abandoned_after_half_a_minute():
    store = listed(
        lease(None, renewed=None, acquired=None, transitions=None, duration=None, version=1)
    )
    store.turn(after(29))
    assert not known(store).abandoned
    store.turn(after(30))
    assert known(store).abandoned


def test_an_expired_lease_that_its_holder_never_renewed_is_abandoned_after_the_threshold():
    store = listed()
    store.follow((Applied(lease(version=2)),), after(0))
    store.turn(after(15 + HOUR - 1))
    assert (known(store).phase, known(store).abandoned) == (Phase.EXPIRED, False)
    store.turn(after(15 + HOUR))
    assert known(store).abandoned


def test_an_expired_lease_that_was_renewed_stays_trouble():
    store = listed()
    store.follow((Applied(lease(version=2)),), after(0))
    store.follow((Applied(lease(renewed=2, version=3)),), after(2))
    store.turn(after(20))
    store.turn(after(10 * HOUR))
    assert (known(store).phase, known(store).abandoned) == (Phase.EXPIRED, False)
    assert store.next_deadline() is None


def test_a_holder_who_comes_back_and_stops_again_did_renew():
    store = listed()
    store.follow((Applied(lease(version=2)),), after(0))
    store.turn(after(20))
    store.turn(after(15 + HOUR))
    assert known(store).abandoned
    store.follow((Applied(lease(renewed=2 * HOUR, version=3)),), after(2 * HOUR))
    assert not known(store).abandoned
    store.turn(after(3 * HOUR))
    store.turn(after(9 * HOUR))
    assert (known(store).phase, known(store).abandoned) == (Phase.EXPIRED, False)


def test_a_restart_judges_by_its_own_threshold():
    first = vacant()
    first.turn(after(10 + HOUR))
    kept = msgspec.json.decode(msgspec.json.encode(first.snapshot()), type=tuple[Tracked, ...])
    for hours, expected in ((1, True), (2, False)):
        store = Store("c", abandoned_after=timedelta(hours=hours))
        store.restore(kept, after(20 + HOUR))
        assert known(store).abandoned is expected
    assert store.next_deadline() is not None


def test_a_checkpoint_of_an_earlier_version_is_read():
    stored = msgspec.json.decode(msgspec.json.encode(known(vacant())))
    del stored["lasting"]["abandoned"], stored["lasting"]["may_be_vacant"]
    tracked = msgspec.json.decode(msgspec.json.encode(stored), type=Tracked)
    assert (tracked.abandoned, tracked.lasting.may_be_vacant) == (False, "")


def test_a_clock_that_was_set_abandons_nothing_sooner():
    store = vacant()
    store.clock_jumped(Jump(before=after(20), after=after(20 + 5 * HOUR)))
    store.turn(after(10 + 6 * HOUR - 1))
    assert not known(store).abandoned
    store.turn(after(10 + 6 * HOUR))
    assert known(store).abandoned


def test_a_mark_excuses_at_once_and_for_good_and_can_be_taken_back():
    store = vacant()
    update = store.set_overrides({}, after(11), {KEY: "ada"})
    assert update is not None
    assert (update.redraw, update.changes) == ((KEY,), ())
    assert known(store).excused
    assert [one.key for one in store.excused()] == [KEY]
    assert store.set_overrides({}, after(12), {KEY: "ada"}) is None
    store.turn(after(10 + 2 * HOUR))
    assert not known(store).abandoned, "what may be vacant is not abandoned"
    store.set_overrides({}, after(11 + 2 * HOUR), {})
    assert known(store).abandoned
    assert known(store).lasting.may_be_vacant == ""


def test_a_mark_is_no_excuse_for_an_expired_lease():
    store = listed(lease(version=1))
    store.set_overrides({}, after(1), {KEY: "ada"})
    store.turn(after(20))
    assert known(store).phase is Phase.EXPIRED
    assert not known(store).excused


def test_a_mark_awaits_a_lease_that_is_not_there_and_outlasts_a_restart():
    store = listed()
    store.set_overrides({}, after(1), {KEY: "ada"})
    store.follow((Applied(released(2, version=2)),), after(2))
    assert known(store).excused
    kept = msgspec.json.decode(msgspec.json.encode(store.snapshot()), type=tuple[Tracked, ...])
    again = Store("c")
    again.restore(kept, after(3))
    assert known(again).excused
    assert again.set_overrides({}, after(4), {KEY: "ada"}) is None
    assert again.set_overrides({}, after(5), {}) is not None
    assert not known(again).excused


def test_a_kind_that_an_admin_sets_decides_at_once():
    store = vacant()
    store.turn(after(10 + HOUR))
    store.set_overrides({KEY: (Kind.LOCK, "set by ada")}, after(20 + HOUR))
    assert not known(store).abandoned
    store.set_overrides({}, after(30 + HOUR))
    assert known(store).abandoned
