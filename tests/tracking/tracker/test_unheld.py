"""The seconds without a holder of the metrics count watched time in which somebody was needed."""

from __future__ import annotations

import pytest

from leases.domain.lease import ObjectName
from leases.domain.steady_clock import Jump
from leases.wire.watch_decoding import Applied, Connected, Disconnected, Replayed
from tests.support.values.leases import after, lease
from tests.tracking.tracker.conftest import Watched

KEY = ObjectName("default", "controller")


def unheld(watched: Watched) -> float:
    tracked = watched.store.get(KEY)
    assert tracked is not None
    return watched.tracker.counters.election(tracked, watched.now)[1]


def release(watched: Watched, seconds: float, version: int) -> None:
    watched.at(seconds, Applied(lease("", renewed=seconds, duration=1, version=version)))


def acquire(watched: Watched, seconds: float, version: int) -> None:
    new = lease("b", renewed=seconds, acquired=seconds, transitions=1, version=version)
    watched.at(seconds, Applied(new))


async def test_a_gap_counts_while_it_goes_on_and_once_it_has_ended(watched: Watched) -> None:
    watched.live(lease("a"))
    release(watched, 5, 2)
    watched.at(9)
    assert unheld(watched) == pytest.approx(4)
    acquire(watched, 12, 3)
    assert unheld(watched) == pytest.approx(7)


async def test_the_time_of_a_lost_connection_does_not_count(watched: Watched) -> None:
    watched.live(lease("a"))
    release(watched, 5, 2)
    watched.at(8, Disconnected("cut"))
    watched.at(30, Connected())
    acquire(watched, 33, 3)
    assert unheld(watched) == pytest.approx((5 - 5) + 3, abs=0.01)


async def test_the_time_in_which_the_process_stood_still_does_not_count(watched: Watched) -> None:
    watched.live(lease("a"))
    release(watched, 5, 2)
    watched.at(8)
    watched.now = after(69)
    watched.tracker.stood_still(after(8))
    acquire(watched, 71, 3)
    assert unheld(watched) == pytest.approx((8 - 5) + (71 - 69), abs=0.01)


async def test_a_clock_that_is_set_makes_no_gap_longer(watched: Watched) -> None:
    watched.live(lease("a"))
    release(watched, 5, 2)
    watched.at(9)
    watched.now = after(3609)
    watched.tracker.clock_jumped(Jump(after(9), after(3609)))
    acquire(watched, 3612, 3)
    assert unheld(watched) == pytest.approx(7)


async def test_a_lease_that_may_be_vacant_needs_no_holder(watched: Watched) -> None:
    watched.live(lease("a"))
    watched.tracker.set_overrides({}, {KEY: "ada"})
    release(watched, 5, 2)
    watched.at(9)
    assert unheld(watched) == 0
    acquire(watched, 12, 3)
    assert unheld(watched) == 0


async def test_time_after_it_was_abandoned_does_not_count(watched: Watched) -> None:
    watched.live(lease("a"))
    release(watched, 5, 2)
    acquire(watched, 5 + 4000, 3)
    assert watched.now == after(4005)
    assert unheld(watched) == pytest.approx(3600)


async def test_a_change_of_holder_counts_where_it_was_seen(watched: Watched) -> None:
    def changed() -> int:
        tracked = watched.store.get(KEY)
        assert tracked is not None
        return watched.tracker.counters.election(tracked, watched.now)[0]

    watched.live(lease("a"))
    release(watched, 5, 2)
    acquire(watched, 6, 3)
    assert changed() == 1
    watched.at(8, Disconnected("cut"))
    new = lease("c", renewed=20, acquired=20, transitions=2, version=4)
    watched.at(30, Replayed(Applied(new)), Connected())
    assert changed() == 1
    release(watched, 33, 5)
    acquire(watched, 34, 6)
    assert changed() == 2
