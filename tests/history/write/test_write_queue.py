"""What goes into one transaction: a state never before its changes."""

from __future__ import annotations

import tracemalloc

import pytest

from leases.domain.change import Change
from leases.domain.lease import ObjectName
from leases.history import write_queue
from leases.history.write_queue import Waiting
from tests.support.values.changes import a_change


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_queue, "CHANGES_PER_WRITE", 2)
    monkeypatch.setattr(write_queue, "STATES_PER_WRITE", 3)


def of(name: str) -> tuple[Change, ObjectName]:
    return a_change(name=name), ObjectName("kube-system", name)


def names(states: list[ObjectName]) -> list[str]:
    return [key.name for key in states]


def test_a_state_waits_for_the_last_change_of_its_lease() -> None:
    queue = Waiting()
    for name in ("a", "b", "a", "c"):
        change, key = of(name)
        queue.add((change,), (key,))
    changes, states, complete = queue.take()
    assert ([change.name for change in changes], names(states)) == (["a", "b"], ["b"])
    assert not complete
    changes, states, complete = queue.take()
    assert ([change.name for change in changes], names(states)) == (["a", "c"], ["a", "c"])
    assert complete


def test_what_was_taken_leaves_no_room_behind() -> None:
    queue, many = Waiting(), [a_change(name=f"one-{number}") for number in range(5_000)]
    tracemalloc.start()
    try:
        queue.add(many, ())
        while queue.take()[0]:
            pass
        assert tracemalloc.get_traced_memory()[0] < 30_000
    finally:
        tracemalloc.stop()


def test_states_without_changes_go_along_a_few_at_a_time() -> None:
    queue = Waiting()
    queue.add((), [of(name)[1] for name in "abcde"])
    assert names(queue.take()[1]) == ["a", "b", "c"]
    assert names(queue.take()[1]) == ["d", "e"]
    assert queue.take() == ([], [], True)


def test_renewed_leases_go_along_and_hold_up_nothing() -> None:
    queue = Waiting()
    _, states, complete = queue.take([of(name)[1] for name in "ab"])
    assert (names(states), complete) == (["a", "b"], True)
    assert queue.take() == ([], [], True)


def test_a_renewed_lease_with_a_change_that_waits_is_left_for_later() -> None:
    queue = Waiting()
    queue.add([of(name)[0] for name in "abc"], [of("c")[1]])
    renewed = [of("c")[1], of("d")[1]]
    assert names(queue.take(renewed)[1]) == ["d"]
    assert names(queue.take()[1]) == ["c"]
    assert len(queue) == 0


def test_names_that_come_and_go_take_no_more_room_than_they_may() -> None:
    queue = Waiting(most_names=5)
    there = {of(name)[1] for name in "abc"}
    for number in range(1000):
        queue.add((), [of(f"gone-{number}")[1], *there])
        if queue.has_too_many_names:
            queue.let_go(there.__contains__)
        assert len(queue._changed) <= 6
    assert queue.let_names_go
    assert {name[0] for name in names(queue.take()[1])} <= {"a", "b", "c", "g"}


def test_names_of_leases_that_are_there_are_never_let_go() -> None:
    queue = Waiting(most_names=2)
    for name in "abcdefgh":
        queue.add((), [of(name)[1]])
        if queue.has_too_many_names:
            queue.let_go(lambda _: True)
    taken = [*queue.take()[1], *queue.take()[1], *queue.take()[1]]
    assert names(taken) == list("abcdefgh")


def test_a_batch_put_back_is_taken_again_unchanged() -> None:
    def filled() -> Waiting:
        queue = Waiting()
        for name in ("a", "b", "a", "c"):
            change, key = of(name)
            queue.add((change,), (key,))
        queue.add((), [of("d")[1]])
        return queue

    def drained(queue: Waiting) -> list[tuple[list[str], list[str], bool]]:
        taken = [queue.take() for _ in range(3)]
        return [([change.name for change in one], names(two), whole) for one, two, whole in taken]

    queue = filled()
    changes, states, _ = queue.take()
    queue.put_back(changes, states)
    assert len(queue) == 4
    assert drained(queue) == drained(filled())
