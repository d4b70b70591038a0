"""A bounded number of threads that answer requests; each closes what it opened.

Django would take a new thread, with a new database connection, for each request.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from asgiref.sync import ThreadSensitiveContext
from django.db import connections

at_work: set[ThreadPoolExecutor] = set()  # whose thread answers a request


class TooBusy(Exception):
    """All threads work, and enough requests wait for one."""


@dataclass
class Threads:
    """`size` threads, each for one request at a time; `waiting` requests wait for one, of which
    one address may have `per_client`.
    """

    name: str
    size: int
    waiting: int
    per_client: int
    _free: list[ThreadPoolExecutor] = field(default_factory=list)
    _made: int = 0
    _line: deque[tuple[str, asyncio.Future[ThreadPoolExecutor]]] = field(default_factory=deque)
    _in_line: Counter[str] = field(default_factory=Counter)

    @asynccontextmanager
    async def one(self, client: str) -> AsyncIterator[None]:
        """Give the block one thread for all its work. Raises TooBusy."""
        executor = await self._take(client)
        at_work.add(executor)
        try:
            async with ThreadSensitiveContext(executor=executor):
                yield
        finally:
            # The thread may still be at work for a client that went away: this waits for it.
            await asyncio.shield(asyncio.ensure_future(self._give_back(executor)))

    async def _take(self, client: str) -> ThreadPoolExecutor:
        if self._free:
            return self._free.pop()
        if self._made < self.size:
            self._made += 1
            return ThreadPoolExecutor(1, thread_name_prefix=f"{self.name}-{self._made}")
        if len(self._line) >= self.waiting or self._in_line[client] >= self.per_client:
            raise TooBusy
        place: asyncio.Future[ThreadPoolExecutor] = asyncio.get_running_loop().create_future()
        self._line.append((client, place))
        self._in_line[client] += 1
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._pass_on(place.result())
            raise
        finally:
            self._leave_line(client, place)

    def _leave_line(self, client: str, place: asyncio.Future[ThreadPoolExecutor]) -> None:
        if (client, place) in self._line:
            self._line.remove((client, place))
        self._in_line[client] -= 1
        if not self._in_line[client]:
            del self._in_line[client]

    async def _give_back(self, executor: ThreadPoolExecutor) -> None:
        await asyncio.get_running_loop().run_in_executor(executor, connections.close_all)
        at_work.discard(executor)
        self._pass_on(executor)

    def _pass_on(self, executor: ThreadPoolExecutor) -> None:
        while self._line:
            _, place = self._line.popleft()
            if not place.done():
                place.set_result(executor)
                return
        self._free.append(executor)
