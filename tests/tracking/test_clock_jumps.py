"""The wall clock is set while a cluster is watched: nothing happens to any Lease by that."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from leases.domain.change import Change, ChangeType
from leases.domain.lease import Lease, ObjectName
from leases.domain.phase import Phase
from leases.domain.steady_clock import Jump
from leases.domain.watched_times import ConnectionState
from leases.tracking.deadlines import BlindTimes, DeadlineGate
from leases.tracking.renewals import RenewalLog
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update
from leases.tracking.tracker import Tracker
from leases.wire.watch_decoding import (
    Applied,
    Arrived,
    Connected,
    Deleted,
    Listed,
    ReflectorEvent,
    Unreadable,
)
from tests.support.values.leases import NOON, after, lease

KEY = ObjectName("default", "controller")
HOUR, DECADE = timedelta(hours=1), timedelta(days=3650)
steps = pytest.mark.parametrize("by", [HOUR, -HOUR, DECADE, -DECADE], ids=str)


class Watched:
    """A tracker by a clock that passes by hand, seconds since noon, and is set by `set_by`."""

    def __init__(self) -> None:
        self.passed = 0.0
        self.ahead = timedelta(0)
        self.noticed = timedelta(0)
        self.updates: list[Update] = []
        self.store = Store("c")
        self.tracker = Tracker(self.store, [self.updates.append], self.now, self.look)

    def now(self) -> Any:
        return after(self.passed) + self.noticed

    def look(self) -> None:
        by = self.ahead - self.noticed
        if by:
            before = self.now()
            self.noticed = self.ahead
            self.tracker.clock_jumped(Jump(before, self.now()))

    def at(self, seconds: float, *events: ReflectorEvent) -> None:
        while self.passed < seconds:
            self.passed = min(self.passed + 0.05, seconds)
            self.tracker.tick()
        for event in events:
            self.tracker.handle(event)

    def live(self, *leases: Lease) -> None:
        self.at(0, Listed(leases, "1"), Connected())
        self.at(1.5)

    def renew(self, seconds: float, version: int, *, skew: timedelta, **given: Any) -> None:
        """By a holder whose clock differs from what ours was by `skew`."""
        renewed = seconds + skew.total_seconds()
        self.at(seconds, Applied(lease(renewed=renewed, version=version, **given)))

    @property
    def changes(self) -> list[Change]:
        return [change for update in self.updates for change in update.changes]

    def of(self, kind: ChangeType) -> Change:
        (one,) = [change for change in self.changes if change.change is kind]
        return one


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    watched = Watched()
    yield watched
    watched.tracker.stop()


@steps
async def test_no_lease_runs_out_or_recovers_by_it(watched: Watched, by: timedelta) -> None:
    watched.live(lease(), lease(name="vacant", holder=None), lease(name="long", duration=3000))
    before = watched.changes
    watched.ahead = by
    watched.at(14.9)
    assert watched.changes == before
    known = watched.store.get(KEY)
    assert known is not None
    assert known.runs_out_at == after(15) + by  # as much time is left as before
    assert watched.store.connection.state is ConnectionState.LIVE


@steps
async def test_an_expiry_after_a_jump_keeps_its_time_and_is_inferred(
    watched: Watched, by: timedelta
) -> None:
    watched.live(lease())
    watched.ahead = by
    watched.at(16)
    expired = watched.of(ChangeType.EXPIRED)
    assert expired.at == after(15) + by
    assert expired.observed_at - expired.at < timedelta(seconds=0.2)
    assert expired.inferred
    assert expired.inferred_since is not None
    assert by + NOON < expired.inferred_since < expired.at


@steps
async def test_no_gap_is_invented(watched: Watched, by: timedelta) -> None:
    watched.live(lease())
    watched.at(20)  # expired since 5 s
    watched.ahead = by
    watched.renew(21, 2, skew=timedelta(0))
    recovered = watched.of(ChangeType.RECOVERED)
    assert recovered.at == after(21) + by
    assert recovered.gap_seconds == 6.0
    assert not recovered.inferred


@steps
async def test_a_vacant_time_before_it_is_as_long_as_it_was(
    watched: Watched, by: timedelta
) -> None:
    watched.live(lease())
    watched.at(3, Applied(lease(None, version=2)))
    watched.ahead = by
    watched.at(7, Applied(lease("b", acquired=7, renewed=7, version=3)))
    assert watched.of(ChangeType.ACQUIRED).gap_seconds == 4.0


@steps
async def test_a_lease_made_anew_ends_the_gap_that_began_before_it(
    watched: Watched, by: timedelta
) -> None:
    watched.live(lease())
    watched.at(3, Deleted(lease(version=2)))
    watched.ahead = by
    watched.at(5, Applied(lease(version=3, uid="uid-2")))
    assert watched.changes[-1].gap_seconds == 2.0


@steps
@pytest.mark.parametrize("skew", [timedelta(0), None], ids=["own clock", "same clock"])
async def test_a_holder_keeps_renewing_and_the_watch_follows(
    watched: Watched, by: timedelta, skew: timedelta | None
) -> None:
    """Whether the holder runs on this machine, so that its clock jumped too, or on another."""
    skew = by if skew is None else skew
    watched.live(lease())
    for number in range(1, 8):
        watched.renew(2.0 * number, number + 1, skew=timedelta(0))
    watched.ahead = by
    for number in range(8, 12):
        watched.renew(2.0 * number, number + 1, skew=skew)
    watched.at(23, Applied(lease("b", acquired=23, renewed=23, version=20)))
    assert [change.change for change in watched.changes] == ["created", "replaced"]
    replaced = watched.changes[-1]
    assert replaced.at == replaced.observed_at == after(23) + by
    assert not replaced.inferred


@steps
async def test_learned_renewal_intervals_survive_a_jump(watched: Watched, by: timedelta) -> None:
    watched.live(lease())
    log = RenewalLog()
    for number in range(1, 8):
        watched.renew(2.0 * number, number + 1, skew=timedelta(0))
        log.look(watched.store.snapshot())
    before = watched.now()
    watched.ahead = by
    watched.tracker.tick()
    log.clock_jumped(Jump(before, watched.now()))
    watched.renew(16, 9, skew=by)
    log.look(watched.store.snapshot())
    known = watched.store.get(KEY)
    assert known is not None
    assert known.phase is Phase.HELD
    assert known.cadence_seconds == 2.0
    intervals = log.of(known)
    assert [interval.seconds for interval in intervals] == [2.0] * len(intervals)
    assert all(NOON <= interval.since - by <= after(20) for interval in intervals)
    log.forget(watched.now() - HOUR)
    assert log.of(known) == intervals


@steps
async def test_unchanged_phases_stay(watched: Watched, by: timedelta) -> None:
    watched.live(lease())
    watched.at(12)
    before = watched.store.get(KEY)
    assert before is not None
    assert before.phase is Phase.LATE
    watched.ahead = by
    watched.at(13)
    known = watched.store.get(KEY)
    assert known is not None
    assert known.phase is Phase.LATE
    assert known.phase_since == before.phase_since + by
    assert before.held_since is not None
    assert known.held_since == before.held_since + by


@steps
async def test_it_is_watched_up_to_now(watched: Watched, by: timedelta) -> None:
    watched.live(lease())
    reported = len(watched.updates)
    watched.ahead = by
    watched.at(3)
    assert watched.tracker.watched_until == after(3) + by
    (stands,) = [update.connection for update in watched.updates[reported:] if update.connection]
    assert stands.since == NOON + by


async def test_grace_after_a_break_lasts_as_long_as_ever(watched: Watched) -> None:
    watched.at(0, Listed((lease(duration=1),), "1"), Connected())
    watched.at(0.5)
    watched.ahead = HOUR
    watched.at(0.95)
    assert [change.change for change in watched.changes] == ["created"]
    watched.at(1.5)
    assert watched.of(ChangeType.EXPIRED).at == after(1) + HOUR


async def test_after_sleep_arriving_events_are_of_the_past(watched: Watched) -> None:
    watched.live(lease())
    watched.renew(2, 2, skew=timedelta(0))
    watched.passed = 602.0  # the machine slept
    watched.tracker.stood_still(after(2))
    watched.at(602, Applied(lease("b", acquired=300, renewed=601, version=40, transitions=1)))
    expired, taken_over = watched.changes[1:]
    assert (expired.change, expired.at) == (ChangeType.EXPIRED, after(17))
    assert expired.inferred
    assert taken_over.change is ChangeType.TAKEN_OVER
    assert taken_over.at == after(300)  # not when we woke
    watched.at(610)
    assert len(watched.changes) == 3


@steps
async def test_one_that_is_not_understood_stays_so_and_goes_on_from_what_was(
    watched: Watched, by: timedelta
) -> None:
    watched.live(lease())
    watched.at(3, Arrived((Unreadable(KEY, "It says nothing.", "uid-1", "5"),)))
    watched.ahead = by
    watched.at(10)
    known = watched.store.get(KEY)
    assert known is not None
    reported = known.lasting.not_understood
    assert reported is not None
    assert reported.since == after(3) + by
    watched.renew(11, 6, skew=by)
    watched.at(25)
    assert [change.change for change in watched.changes] == ["created"]


@steps
def test_what_was_followed_moves_too(by: timedelta) -> None:
    blind = BlindTimes()
    blind.lost(after(10))
    blind.follows(after(20))
    blind.clock_jumped(Jump(after(30), after(30) + by))
    assert blind.known_until == after(20) + by


@steps
def test_a_backlog_is_told_from_what_waits_as_before(by: timedelta) -> None:
    gate = DeadlineGate()
    gate.connected(after(0), lambda: 3.0)
    gate.clock_jumped(Jump(after(2), after(2) + by))
    for seconds, known in ((3, None), (5, after(2) + by)):
        now = after(seconds) + by
        gate.behind(now, None)
        assert gate.followed_until(now) == known


def test_the_ages_of_a_backlog_are_measured_anew() -> None:
    gate = DeadlineGate()
    gate.connected(after(0), lambda: 3.0)
    gate.arrived([Applied(lease(renewed=3))], after(3.1))
    gate.clock_jumped(Jump(after(3.2), after(3.2) + HOUR))
    for step in range(5):
        gate.arrived([Applied(lease(renewed=step))], after(3.3 + step / 10) + HOUR)
    now = after(6) + HOUR
    gate.behind(now, None)
    assert gate.followed_until(now) is None
