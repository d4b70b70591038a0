"""Restart the background tasks of the process when they fail, and report it.

A task that raises what nobody expected, or that ends although it should go on, has died. Its
traceback is logged, every page shows a sentence, `/readyz` names the task,
`leaseboard_task_restarts_total` counts, and the task starts again after a growing delay.

How to add a task: write an `async def` without arguments that runs until it is cancelled and that
can be called again after it raised (keep its state outside of it), then

    supervisor.start(
        "sessions", watch_sessions, effect="Rights of open pages are not checked again."
    )

`effect` is the sentence for the pages: what the reader cannot rely on while the task is down. Name
the `cluster` if the task serves one. `Supervisor.stop` cancels the task; that is no death. Expected
errors (no database, no cluster) are the business of the task: it catches them and waits.

What runs for a moment only, as the drawing of a region, calls `failed` in its `except Exception`:
it counts as down for ten seconds, or until it calls `recovered`. What serves one reader alone, as
the socket of an open page, calls `noted`: it is logged and counted, and no page warns.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from dashboard import clock
from dashboard.board import Problem
from dashboard.live.fleet import FleetHub
from dashboard.live.publisher import ClusterHub
from dashboard.log_lines import cluster_at_work
from leases.apiserver.errors import Failed, Keep
from leases.kube.backoff import Backoff

logger = logging.getLogger(__name__)

SETTLED_SECONDS = 10.0  # a task that ran this long since its restart has recovered

Work = Callable[[], Awaitable[None]]


class TaskEnded(Exception):
    """A task ended although it should run until it is cancelled."""


class _Down(msgspec.Struct):
    """A problem, and since when (monotonic seconds) the task runs again; None while it does not."""

    problem: Problem
    running_since: float | None = None


class Supervisor:
    """All background tasks of the process. `problems` and `restarts` may be read by any thread."""

    def __init__(
        self,
        *,
        backoff: Callable[[], Backoff] = Backoff,
        monotonic: Callable[[], float] = time.monotonic,
        settled: float = SETTLED_SECONDS,
    ) -> None:
        self.restarts: Counter[tuple[str, str]] = Counter()  # by task and cluster
        self._backoff = backoff
        self._monotonic = monotonic
        self._settled = settled
        self._down: dict[tuple[str, str], _Down] = {}
        self._tasks: dict[asyncio.Task[None], bool] = {}  # with whether it ends by itself
        self._of: dict[str, list[asyncio.Task[None]]] = {}  # by cluster
        self._stopping = asyncio.Event()

    def start(
        self,
        task: str,
        work: Work,
        *,
        effect: str,
        cluster: str = "",
        on_death: Callable[[Problem], None] | None = None,
        may_end: Callable[[], bool] | None = None,
    ) -> asyncio.Task[None]:
        """Run `work` until `stop`, again and again if it dies.

        `on_death` is called each time. Once `may_end` says so, an end without an exception is in
        order; `stop` does not cancel such a task, its owner lets it end.
        """
        self.restarts[task, cluster] += 0
        kept = self._keep((task, cluster), work, effect, on_death, may_end)
        name = f"{task} {cluster}".strip()
        running = asyncio.create_task(kept, name=name)
        self._tasks[running] = may_end is not None
        self._of.setdefault(cluster, []).append(running)
        return running

    async def end(self, cluster: str) -> None:
        """Cancel the tasks of one cluster, and forget what was wrong with them."""
        ended = self._of.pop(cluster, [])
        for task in ended:
            task.cancel()
            del self._tasks[task]
        await asyncio.gather(*ended, return_exceptions=True)
        for place in [place for place in self._down if place[1] == cluster]:
            del self._down[place]
        for place in [place for place in self.restarts if place[1] == cluster]:
            del self.restarts[place]

    async def stop(self) -> None:
        """Cancel the tasks, and restart none any more."""
        self._stopping.set()
        cancelled = [task for task, ends_by_itself in self._tasks.items() if not ends_by_itself]
        for task in cancelled:
            task.cancel()
        await asyncio.gather(*cancelled, return_exceptions=True)

    def failed(self, task: str, error: BaseException, *, effect: str, cluster: str = "") -> Problem:
        """Log and report an unexpected failure of work that is tried again."""
        place = (task, cluster)
        known = self._down.get(place)
        since = known.problem.since if known and not self._is_settled(known) else clock.now()
        problem = Problem(
            task=task, cluster=cluster, effect=effect, since=since, error=type(error).__name__
        )
        logger.error("%s", _log_line(problem), exc_info=error)
        self._down[place] = _Down(problem, self._monotonic())
        self.restarts[place] += 1
        return problem

    def noted(self, task: str, error: Exception, *, cluster: str = "") -> None:
        """Log and count a failure that concerns only the client that the task served."""
        logger.error("A task %s of cluster %s failed", task, cluster, exc_info=error)
        self.restarts[task, cluster] += 1

    def problems(self, cluster: str | None = None) -> tuple[Problem, ...]:
        """What is down; with a cluster, what concerns its pages."""
        found = [down for down in tuple(self._down.values()) if not self._is_settled(down)]
        return tuple(
            down.problem
            for down in found
            if cluster is None or down.problem.cluster in ("", cluster)
        )

    def _is_settled(self, down: _Down) -> bool:
        since = down.running_since
        return since is not None and self._monotonic() - since >= self._settled

    async def _keep(
        self,
        place: tuple[str, str],
        work: Work,
        effect: str,
        on_death: Callable[[Problem], None] | None,
        may_end: Callable[[], bool] | None,
    ) -> None:
        task, cluster = place
        cluster_at_work.set(cluster)  # for this task and those that it starts
        backoff = self._backoff()
        while True:
            began = self._monotonic()
            try:
                await work()
                if may_end is not None and may_end():
                    return
                raise TaskEnded(f"The task {task} ended by itself.")
            except asyncio.CancelledError as error:
                if _is_cancelled():
                    raise
                death: BaseException = error  # something it waited for was cancelled, not it
            except Exception as error:
                death = error
            problem = self.failed(task, death, effect=effect, cluster=cluster)
            del death  # its traceback holds all that the dead run held
            self._down[place].running_since = None
            if on_death is not None:
                self._notify(on_death, problem)
            if self._stopping.is_set():
                return
            if self._monotonic() - began >= self._settled:
                backoff.reset()
            with suppress(TimeoutError):
                async with asyncio.timeout(backoff.delay()):
                    await self._stopping.wait()
            self._down[place].running_since = self._monotonic()

    def _notify(self, on_death: Callable[[Problem], None], problem: Problem) -> None:
        try:
            on_death(problem)
        except Exception:
            logger.exception("The death of the task %s could not be reported", problem.task)


def _is_cancelled() -> bool:
    """Whether somebody asked the running task to stop."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _log_line(problem: Problem) -> str:
    of = f" of cluster {problem.cluster}" if problem.cluster else ""
    return f"The task {problem.task}{of} stopped on an unexpected error. {problem.effect}"


EFFECTS = {
    "regions": "Parts of open pages of {} are not drawn anew.",
    "strips": "Some clusters are not drawn anew on the page of all of them.",
    "picture": "The picture of all heartbeats of {} is not drawn anew.",
}
API_EFFECTS = {
    "lease-api": "The embedded Lease API does not answer.",
    "elections": "The embedded Lease API elects no holders (CoordinatedLeaderElection).",
}


def report_failures(supervisor: Supervisor, cluster: str, hub: ClusterHub | FleetHub) -> None:
    """Let the supervisor know what fails in the channel of one cluster, or of all."""

    def failed(part: str, error: Exception) -> None:
        effect = EFFECTS.get(part)
        if effect is None:
            supervisor.noted(part, error, cluster=cluster)
        else:
            supervisor.failed(part, error, effect=effect.format(cluster), cluster=cluster)

    hub.failed = failed


def keep_lease_api(supervisor: Supervisor) -> Keep:
    """Runs the tasks of the embedded Lease API."""

    def keep(
        task: str, work: Callable[[], Awaitable[None]], *, may_end: Callable[[], bool]
    ) -> asyncio.Task[None]:
        return supervisor.start(task, work, effect=API_EFFECTS[task], may_end=may_end)

    return keep


def lease_api_failed(supervisor: Supervisor) -> Failed:
    """Told what went wrong in a part of the embedded Lease API, which goes on."""

    def failed(part: str, error: Exception) -> None:
        effect = "The embedded Lease API failed on a request or on an event."
        supervisor.failed(part, error, effect=effect)

    return failed
