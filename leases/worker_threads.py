"""Threads for what would hold up the event loop, and an end of the process that waits for none.

Each pool has a name, a size and one purpose: what hangs in one holds up no other. Nothing of ours
uses asyncio's own pool, which everything would share. A thread cannot be killed, so what waits for
strangers should not run in one; where it must, as a look-up of a name, `names` bounds it.
"""

import asyncio
import contextvars
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)

_at_work: dict[object, str] = {}  # the pool's name for each call that runs


def at_work() -> list[str]:
    """The names of the pools in which something runs now. Any thread may call it."""
    return sorted(set(_at_work.copy().values()))


class WorkerThreads:
    """At most `size` threads, made when they are needed."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self._pool = ThreadPoolExecutor(size, thread_name_prefix=name)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work` in a thread. A cancelled call goes on there, and nobody waits for it."""
        called = partial(contextvars.copy_context().run, work, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._call, called)

    def _call(self, work: Callable[[], T]) -> T:
        call = object()
        _at_work[call] = self.name
        try:
            return work()
        finally:
            del _at_work[call]


AddressInfo = tuple[Any, Any, int, str, Any]  # as `socket.getaddrinfo` returns it
NAMES_AT_ONCE = 8


class NameLookups:
    """Asks the system's resolver for addresses. It answers or gives up in its own time, minutes at
    worst: each name takes one thread, however often it is asked for.
    """

    def __init__(self, name: str) -> None:
        self._threads = WorkerThreads(name, NAMES_AT_ONCE)
        self._asked: dict[tuple[str, int, int], asyncio.Task[list[AddressInfo]]] = {}

    async def find(self, host: str, port: int, family: int = 0) -> list[AddressInfo]:
        """The addresses of a TCP port. Raises OSError; give it a limit of time."""
        question = host, port, family
        asked = self._asked.get(question)
        if asked is None or asked.done() or asked.get_loop() is not asyncio.get_running_loop():
            asked = self._asked[question] = asyncio.ensure_future(self._ask(question))
            asked.add_done_callback(partial(self._answered, question))
        return await asyncio.shield(asked)

    async def _ask(self, question: tuple[str, int, int]) -> list[AddressInfo]:
        host, port, family = question
        look = partial(socket.getaddrinfo, host, port, family, socket.SOCK_STREAM)
        return await self._threads.run(look)

    def _answered(
        self, question: tuple[str, int, int], asked: asyncio.Task[list[AddressInfo]]
    ) -> None:
        if self._asked.get(question) is asked:
            del self._asked[question]
        if not asked.cancelled():
            asked.exception()  # nobody may wait for it any more


END_SECONDS = 4.5  # from a signal to the end of the process, whatever hangs
AFTER_DRAIN = 3.5  # at least so long after the drain
SAY_SECONDS = 0.1  # for a log that may hang too


def end_after_signals(*, drain_seconds: float = 0.0) -> None:
    """From now on the process ends END_SECONDS after SIGTERM or SIGINT at the latest.

    A first SIGTERM begins a drain of `drain_seconds`: then at the latest AFTER_DRAIN after it. A
    thread of its own looks, because the event loop may hang. Call it from the main thread; whoever
    else calls `signal.set_wakeup_fd`, as `loop.add_signal_handler` does, takes its place.
    """
    theirs, ours = socket.socketpair()
    ours.setblocking(False)
    signal.set_wakeup_fd(ours.detach(), warn_on_full_buffer=False)
    watch = partial(_end_in_time, theirs, drain_seconds)
    threading.Thread(target=watch, name="end", daemon=True).start()


def _end_in_time(signals: socket.socket, drain_seconds: float) -> None:
    end = float("inf")
    while (left := end - time.monotonic()) > 0:
        signals.settimeout(None if left == float("inf") else left)
        try:
            numbers = signals.recv(64)
        except TimeoutError:
            break
        for number in numbers:
            if number in (signal.SIGTERM, signal.SIGINT):
                drains = number == signal.SIGTERM and end == float("inf")
                wait = max(END_SECONDS, drain_seconds + AFTER_DRAIN) if drains else END_SECONDS
                end = min(end, time.monotonic() + wait)
    saying = threading.Thread(target=_say, daemon=True)
    saying.start()
    saying.join(SAY_SECONDS)
    os._exit(0)


def _say() -> None:
    hanging = ", ".join(at_work()) or "the event loop or a request"
    logger.error(
        "The process did not end in time after a signal, and is ended now. At work: %s. "
        "History goes on at the next start.",
        hanging,
    )
