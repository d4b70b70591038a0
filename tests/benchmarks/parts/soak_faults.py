"""What goes wrong in a soak, one fault after the other, the next when all is well again."""

from __future__ import annotations

import asyncio
import itertools
import re
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from operator import le

from aiohttp import web

from tests.benchmarks.parts.elections_story import ElectionsStory
from tests.benchmarks.parts.restarts import restart
from tests.support.balancer import Balancer
from tests.support.postgres import Postgres
from tests.support.processes import get
from tests.support.programs.api_process import ApiProcess
from tests.support.receiving import HttpReceiver
from tests.support.replicas import Replicas

CUT = 6.0  # seconds without an API server
DOWN = 5.0  # seconds without PostgreSQL
RELIST = 90.0  # seconds in which both replicas list again
UNSEEN = 4  # changes that are shown by a list alone
PAUSE = 8.0  # seconds between two faults
LISTS = re.compile(r'^leaseboard_relists_total{cluster="c",reason="gone"} (\S+)', re.MULTILINE)
REFUSALS = (500, 503, 429, 404)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The real parts of a soak."""

    replicas: Replicas
    postgres: Postgres
    database: str
    pages: Balancer
    storm: Balancer  # before the storm's API
    storm_port: int
    elections: Balancer  # before the embedded Lease API
    api: ApiProcess
    story: ElectionsStory
    receiver: HttpReceiver


async def make_faults(parts: Parts, until: float, restarts_until: float) -> None:
    """Make faults up to a moment of the monotonic clock; no replica ends after the second one."""
    faults = _faults(parts)
    restarts = _restarts(parts)
    refusals, taken = itertools.cycle(REFUSALS), 0
    while time.monotonic() < until:
        fault = next(restarts if time.monotonic() < restarts_until else faults)
        await fault()
        await _is_well(parts)
        if len(parts.receiver.taken) >= taken + 3:  # it refuses now and then, not for ever
            parts.receiver.answers.append(web.Response(status=next(refusals)))
            taken = len(parts.receiver.taken)
        await asyncio.sleep(PAUSE)


Fault = Callable[[], Awaitable[None]]


def _faults(parts: Parts) -> Iterator[Fault]:
    return itertools.cycle(
        [
            lambda: _cut(parts),
            lambda: _postgres(parts, "fast"),
            lambda: _gone(parts, signal.SIGTERM),
            lambda: _everything(parts),
            lambda: _postgres(parts, "immediate"),
            lambda: _gone(parts, signal.SIGKILL),
        ]
    )


def _restarts(parts: Parts) -> Iterator[Fault]:
    """Each of the faults, and after each one the restart of a replica."""
    ends = itertools.cycle(
        [
            lambda: restart(parts.replicas, "one"),
            lambda: restart(parts.replicas, "other", signal.SIGKILL),
            lambda: restart(parts.replicas, "one", signal.SIGKILL),
            lambda: restart(parts.replicas, "other"),
        ]
    )
    for fault, end in zip(_faults(parts), ends, strict=False):
        yield fault
        yield end


async def _cut(parts: Parts) -> None:
    print("the storm's API is cut")
    await parts.storm.cut_for(CUT)


async def _postgres(parts: Parts, mode: str) -> None:
    print(f"PostgreSQL stops ({mode})")
    await asyncio.to_thread(parts.postgres.stop, mode)
    await asyncio.sleep(DOWN)
    await asyncio.to_thread(parts.postgres.start)


async def _gone(parts: Parts, how: signal.Signals) -> None:
    """Write while nobody watches, and drop the window of past events: the watch is 410 Gone."""
    story, before = parts.story, await _lists_after_gone(parts)
    print(f"the Lease API is cut, ended by {how.name}, and forgets past events")
    async with story.pause:
        since = story.unseen_since()
        cut = asyncio.create_task(parts.elections.cut_for(2 * CUT))
        await asyncio.sleep(1.0)  # in which the connections end
        for _ in range(UNSEEN):
            await story.change()
        await asyncio.to_thread(parts.api.end, how)
        await asyncio.to_thread(parts.api.start)
        await cut
        try:
            async with asyncio.timeout(RELIST):
                while any(map(le, await _lists_after_gone(parts), before)):
                    await asyncio.sleep(0.5)
        except TimeoutError:
            print("no 410 came: the writes were seen after all")
        story.log_unseen(since)


async def _lists_after_gone(parts: Parts) -> list[float]:
    """How many complete lists of the embedded Lease API each replica has read after a 410."""
    both = [parts.replicas.one, parts.replicas.other]
    texts = [(await asyncio.to_thread(get, f"{one.url}/metrics"))[1] for one in both]
    return [sum(map(float, LISTS.findall(text))) for text in texts]


async def _everything(parts: Parts) -> None:
    print("both API servers and PostgreSQL are gone at once")
    cuts = parts.storm.cut_for(CUT), parts.elections.cut_for(CUT)
    await asyncio.gather(*cuts, _postgres(parts, "fast"))


async def _is_well(parts: Parts) -> None:
    """Wait until both replicas are ready, and reach their history."""
    while len(parts.pages.ready) < 2 or "not reachable" in await _said(parts):
        await asyncio.sleep(0.2)


async def _said(parts: Parts) -> str:
    both = (parts.replicas.one, parts.replicas.other)
    return "".join([(await asyncio.to_thread(get, f"{one.url}/readyz"))[1] for one in both])
