"""When the next phase turns."""

from __future__ import annotations

from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from leases.domain.lease import ObjectName
from leases.tracking.deadlines import Alarm, Deadlines
from tests.support.values.leases import after


def alarm(name: str) -> Alarm:
    return Alarm(key=ObjectName("default", name))


def test_an_alarm_fires_once_at_its_time() -> None:
    deadlines: Deadlines[Alarm] = Deadlines()
    one = alarm("one")
    deadlines.arm(one, after(5))
    assert deadlines.next() == after(5)
    assert list(deadlines.due(after(4.9))) == []
    assert list(deadlines.due(after(5))) == [one]
    assert list(deadlines.due(after(99))) == []
    assert deadlines.next() is None


def test_a_deadline_that_moves_away_costs_no_entry() -> None:
    deadlines: Deadlines[Alarm] = Deadlines()
    one = alarm("one")
    for seconds in range(5, 500):
        deadlines.arm(one, after(seconds))
    assert len(deadlines) == 1
    assert deadlines.next() == after(5)


def test_a_deadline_that_comes_nearer_fires_at_its_new_time_only() -> None:
    deadlines: Deadlines[Alarm] = Deadlines()
    one = alarm("one")
    deadlines.arm(one, after(50))
    deadlines.arm(one, after(5))
    assert list(deadlines.due(after(10))) == [one]
    assert list(deadlines.due(after(60))) == []


def test_a_disarmed_deadline_does_not_fire() -> None:
    deadlines: Deadlines[Alarm] = Deadlines()
    one = alarm("one")
    deadlines.arm(one, after(5))
    deadlines.disarm(one)
    assert deadlines.next() is None
    assert list(deadlines.due(after(60))) == []


steps = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.sampled_from(["arm", "disarm", "due"]), st.integers(0, 40)
    ),
    max_size=40,
)


@given(steps)
def test_the_heap_agrees_with_a_naive_scan(steps: list[tuple[str, str, int]]) -> None:
    deadlines: Deadlines[Alarm] = Deadlines()
    alarms = {name: alarm(name) for name in "abc"}
    naive: dict[str, datetime] = {}
    for name, step, seconds in steps:
        if step == "arm":
            deadlines.arm(alarms[name], after(seconds))
            naive[name] = min(after(seconds), naive.get(name, after(seconds)))
        elif step == "disarm":
            deadlines.disarm(alarms[name])
            naive.pop(name, None)
        else:
            fired = {alarm.key.name for alarm in deadlines.due(after(seconds))}
            assert fired == {name for name, when in naive.items() if when <= after(seconds)}
            naive = {name: when for name, when in naive.items() if name not in fired}
        assert deadlines.next() == min(naive.values(), default=None)
