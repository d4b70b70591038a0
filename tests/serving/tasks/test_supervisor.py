"""Background tasks: a death is shown and counted, and the task starts again."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from dashboard.log_lines import cluster_at_work
from dashboard.serving.tasks.supervisor import Problem, Supervisor
from leases.kube.backoff import Backoff

EFFECT = "Nothing is counted."


class Clock:
    """Monotonic seconds, moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def supervisor(clock: Clock) -> AsyncIterator[Supervisor]:
    one = Supervisor(
        backoff=lambda: Backoff(first=0.001, limit=0.002, jitter=lambda: 0.0), monotonic=clock
    )
    yield one
    await one.stop()


async def until(seen: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not seen():
            await asyncio.sleep(0.001)


class Work:
    """Dies as often as there are errors, then goes on for ever."""

    def __init__(self, *errors: Exception | None) -> None:
        self.errors = list(errors)
        self.starts = 0

    async def __call__(self) -> None:
        self.starts += 1
        if self.errors:
            error = self.errors.pop(0)
            if error is not None:
                raise error
            return
        await asyncio.Event().wait()


async def test_a_task_that_raises_is_logged_counted_and_restarted(supervisor, clock, caplog):
    work, problems = Work(KeyError("a-secret"), KeyError("a-secret")), []
    supervisor.start("counter", work, effect=EFFECT, cluster="c", on_death=problems.append)
    await until(lambda: work.starts == 3)
    assert supervisor.restarts == {("counter", "c"): 2}
    (problem,) = supervisor.problems("c")
    assert (problem.task, problem.cluster, problem.error) == ("counter", "c", "KeyError")
    assert problem.sentence.startswith(EFFECT)
    assert "a-secret" not in problem.sentence
    assert [type(one) for one in problems] == [Problem, Problem]
    assert caplog.text.count("Traceback") == 2
    assert "The task counter of cluster c stopped" in caplog.text
    clock.now += 10
    assert supervisor.problems() == ()


async def test_a_task_that_ends_by_itself_is_started_again(supervisor):
    work = Work(None)
    supervisor.start("counter", work, effect=EFFECT)
    await until(lambda: work.starts == 2)
    (problem,) = supervisor.problems()
    assert problem.error == "TaskEnded"


async def test_a_cancelled_future_that_the_task_waited_for_is_a_death(supervisor):
    starts = 0

    async def work() -> None:
        nonlocal starts
        starts += 1
        waited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if starts == 1:
            waited.cancel()
        await waited

    supervisor.start("counter", work, effect=EFFECT)
    await until(lambda: starts == 2)
    assert supervisor.restarts == {("counter", ""): 1}


async def test_what_a_task_logs_names_its_cluster(supervisor):
    named: list[str] = []

    async def work() -> None:
        named.append(cluster_at_work.get())
        await asyncio.Event().wait()

    supervisor.start("watch", work, effect=EFFECT, cluster="prod")
    supervisor.start("recorder", work, effect=EFFECT)
    await until(lambda: len(named) == 2)
    assert named == ["prod", ""]


async def test_a_problem_of_one_cluster_is_no_problem_of_another(supervisor):
    supervisor.start("one", Work(KeyError()), effect="One.", cluster="a")
    supervisor.start("all", Work(KeyError()), effect="All.")
    await until(lambda: supervisor.restarts.total() == 2)
    assert {problem.task for problem in supervisor.problems("a")} == {"one", "all"}
    assert {problem.task for problem in supervisor.problems("b")} == {"all"}


async def test_cancelling_is_no_death(supervisor, caplog):
    work = Work()
    running = supervisor.start("counter", work, effect=EFFECT)
    await until(lambda: work.starts)
    await supervisor.stop()
    assert running.cancelled()
    assert not supervisor.restarts.total()
    assert caplog.text == ""


async def test_a_task_that_may_end_is_left_to_end(supervisor):
    closing = asyncio.Event()
    writing = supervisor.start("writer", closing.wait, effect=EFFECT, may_end=closing.is_set)
    await asyncio.sleep(0)
    await supervisor.stop()
    assert not writing.done()
    closing.set()
    await writing
    assert not supervisor.restarts.total()


async def test_a_stop_wakes_a_task_that_waits_to_be_restarted_so_that_it_can_finish():
    supervisor = Supervisor(backoff=lambda: Backoff(first=3600.0, limit=3600.0))
    work, ended = Work(KeyError(), None), asyncio.Event()
    writing = supervisor.start("writer", work, effect=EFFECT, may_end=ended.is_set)
    await until(supervisor.restarts.total)
    ended.set()
    await supervisor.stop()
    await writing
    assert work.starts == 2


async def test_a_failing_death_callback_does_not_keep_the_task_down(supervisor, caplog):
    def raises(_problem: Problem) -> None:
        raise ValueError

    work = Work(KeyError())
    supervisor.start("counter", work, effect=EFFECT, on_death=raises)
    await until(lambda: work.starts == 2)
    assert "could not be reported" in caplog.text


async def test_the_delay_grows_and_is_short_again_after_a_good_run(clock):
    delays: list[float] = []

    class Noted(Backoff):
        def delay(self, **given: Any) -> float:
            delays.append(super().delay(**given))
            return 0.0

    class Longer(Work):
        async def __call__(self) -> None:
            if self.starts == 2:
                clock.now += 11
            await super().__call__()

    supervisor = Supervisor(backoff=lambda: Noted(jitter=lambda: 0.0), monotonic=clock)
    work = Longer(*[KeyError() for _ in range(4)])
    supervisor.start("counter", work, effect=EFFECT)
    await until(lambda: work.starts == 5)
    await supervisor.stop()
    assert delays == [0.8, 1.6, 0.8, 1.6]


async def test_a_reported_failure_lasts_until_it_is_settled(supervisor, clock, caplog):
    caplog.set_level(logging.ERROR)
    supervisor.failed("drawing", KeyError("x"), effect="Old pictures.", cluster="c")
    assert [problem.task for problem in supervisor.problems("c")] == ["drawing"]
    clock.now += 10
    assert supervisor.problems("c") == ()
    assert supervisor.restarts == {("drawing", "c"): 1}


async def test_a_run_that_goes_on_keeps_nothing_of_the_one_that_died(supervisor, monkeypatch):
    # The log of a test keeps tracebacks, and they all that the frames held.
    monkeypatch.setattr(logging.getLogger(Supervisor.__module__), "disabled", True)
    held: list[weakref.ref[Work]] = []
    goes_on = asyncio.Event()

    async def work() -> None:
        if held:
            goes_on.set()
            await asyncio.Event().wait()
        large = Work()
        held.append(weakref.ref(large))
        raise ValueError

    supervisor.start("counting", work, effect=EFFECT)
    await goes_on.wait()
    assert held[0]() is None
