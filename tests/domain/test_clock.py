"""The steady clock: even, exact, follows slow drift, reports jumps. The test moves both clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from leases.domain.steady_clock import Jump, SteadyClock, moved
from tests.support.values.leases import NOON, after

SECOND = 1_000_000_000
HOUR = timedelta(hours=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Machine:
    """A machine's two clocks."""

    def __init__(self) -> None:
        self.wall = (NOON - EPOCH) // timedelta(microseconds=1) * 1000
        self.passed = 5 * SECOND
        self.torn = 0
        self.clock = SteadyClock(wall=self._wall, passed=lambda: self.passed)

    def _wall(self) -> int:
        self.wall += self.torn
        self.passed += self.torn
        return self.wall

    def goes_on(self, seconds: float, *, rate: float = 1.0) -> None:
        """Time passes; the wall clock may be slewed meanwhile."""
        self.passed += round(seconds * SECOND)
        self.wall += round(seconds * rate * SECOND)

    def is_set_by(self, by: timedelta) -> None:
        self.wall += by // timedelta(microseconds=1) * 1000


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_it_starts_with_the_wall_clock_and_goes_on_with_what_passed(machine):
    assert machine.clock.now() == NOON
    machine.goes_on(12.345678)
    assert machine.clock.now() == after(12.345678)
    assert machine.clock.look() is None


@pytest.mark.parametrize("by", [HOUR, -HOUR, timedelta(days=3650), -timedelta(days=3650)])
def test_a_jump_is_reported_once_and_then_followed(machine, by):
    machine.goes_on(60)
    machine.is_set_by(by)
    assert machine.clock.now() == after(60)  # until somebody looks
    jump = machine.clock.look()
    assert jump == Jump(after(60), after(60) + by)
    assert jump.by == by
    assert machine.clock.now() == after(60) + by
    assert machine.clock.look() is None
    machine.goes_on(1)
    assert machine.clock.now() == after(61) + by


def test_a_step_below_the_jump_threshold_is_followed_slowly(machine):
    machine.is_set_by(timedelta(milliseconds=60))
    seen = []
    for _ in range(400):
        before = machine.clock.now()
        machine.goes_on(0.25)
        assert machine.clock.look() is None
        seen.append(machine.clock.now() - before)
    assert machine.clock.now() == after(100.06)
    assert max(seen) <= timedelta(seconds=0.25125)


@pytest.mark.parametrize("rate", [1.0005, 0.9995, 1.004, 0.996])
def test_slewing_is_followed_and_no_jump(machine, rate):
    for _ in range(4 * 3600):
        machine.goes_on(0.25, rate=rate)
        assert machine.clock.look() is None
        wall = EPOCH + timedelta(microseconds=machine.wall // 1000)
        assert abs(machine.clock.now() - wall) <= timedelta(milliseconds=2)


def test_clock_readings_too_far_apart_are_discarded(machine):
    machine.torn = 2 * SECOND  # the thread waited between the two readings
    assert machine.clock.look() is None
    machine.torn = 0
    assert machine.clock.look() is None
    assert machine.clock.now() == after(2)


@given(
    st.lists(
        st.tuples(
            st.floats(0.0, 100.0),
            st.integers(-(10**12), 10**12).filter(lambda ms: ms == 0 or abs(ms) > 200),
        ),
        max_size=20,
    )
)
def test_elapsed_time_is_exact_whatever_the_wall_clock_does(steps):
    machine = Machine()
    jumped, began, kept = timedelta(0), machine.passed, machine.clock.now()
    for seconds, milliseconds in steps:
        machine.goes_on(seconds)
        machine.is_set_by(timedelta(milliseconds=milliseconds))
        assume(machine.wall >= 0)  # a clock set to before 1970 counts as 1970
        jump = machine.clock.look()
        if jump is not None:
            kept = moved(kept, jump.by)
            jumped += jump.by
        passed = timedelta(microseconds=(machine.passed - began) / 1000)
        assert abs(machine.clock.now() - kept - passed) <= timedelta(microseconds=2 + len(steps))


@pytest.mark.parametrize("wall", [-(10**30), 10**30])
def test_a_wall_clock_of_no_calendar_is_bounded(machine, wall):
    machine.wall = wall
    jump = machine.clock.look()
    assert jump is not None
    assert 1970 <= (machine.clock.now() + timedelta(days=365 * 900)).year <= 9999


def test_a_moment_moves_as_far_as_a_calendar_reaches():
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    assert moved(NOON, HOUR) == after(3600)
    assert moved(None, HOUR) is None
    assert moved(first, -HOUR) == first
    assert moved(last, HOUR) == last
