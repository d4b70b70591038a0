"""How requests get threads: a bounded number, by kind, and refused while all are busy.

Django would take a new thread, with a new database connection, for each request.

In async mode Django switches to a thread and back for each synchronous middleware. Django has no
setting for this, so this module overrides three undocumented methods: `load_middleware`,
`get_response_async` and `listen_for_disconnect`. pyproject.toml pins Django to the minor version
that calls them, and tests/serving/requests/test_one_thread_pages.py fails when a version does not.
"""

import asyncio
import logging
import math
import re
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache, partial
from typing import Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.conf import settings
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.db import connections
from django.http import HttpRequest, HttpResponseBase
from django.template.loader import render_to_string
from django.utils import timezone

from dashboard.access import sign_in_limits
from dashboard.access.security_log import client_address
from dashboard.log_lines import answer_with_id

Send = Callable[[dict[str, Any]], Awaitable[None]]

BUSY_SECONDS = 5
POLICY = b"default-src 'none'; style-src 'self'; img-src 'self' data:; font-src 'self'"
BUSY = "Too many pages are being made. Reload this one in a few seconds."
SIGN_IN_BUSY = "Too many people are signing in. Go back and send the form again in a few seconds."
TOO_BUSY = (
    "Too many wrong passwords came from your address. Go back and try again in {seconds} seconds."
)


async def answer_busy(send: Send, text: str) -> None:
    """503: somebody else is being served."""
    await _answer(send, 503, _page("Busy", text), BUSY_SECONDS)


async def answer_slowed(send: Send, remaining: timedelta) -> None:
    """429: this client asked too often."""
    seconds = max(1, math.ceil(remaining.total_seconds()))
    await _answer(send, 429, _page("Not so fast", TOO_BUSY.format(seconds=seconds)), seconds)


@cache
def _page(title: str, text: str) -> bytes:
    context = {"title": title, "text": text, "theme": ""}
    return render_to_string("500.html", context).encode()


async def _answer(send: Send, status: int, page: bytes, retry_after: int) -> None:
    headers = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-length", b"%d" % len(page)),
        (b"cache-control", b"no-store"),
        (b"retry-after", b"%d" % retry_after),
        (b"x-content-type-options", b"nosniff"),
        (b"content-security-policy", POLICY),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": page})


ENDING = "Leaseboard is about to start again. Reload this page in a few seconds."


class CutAnswer:
    """Sends the answer to one request until `refuse` is called."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False
        self._refused = False

    async def __call__(self, message: dict[str, Any]) -> None:
        if not self._refused:
            self._begun = True
            await self._send(message)

    async def refuse(self) -> None:
        """Answer 503 if nothing was sent yet. Otherwise the connection ends in the middle."""
        if not (self._begun or self._refused):
            self._refused = True
            await answer_busy(self._send, ENDING)
        self._refused = True


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


_HEALTH = frozenset({"/healthz", "/readyz", "/metrics"})
_OF_ONE_LEASE = re.compile(r"/c/[^/]+/leases/[^/]+/[^/]+/[a-z-]+/|/clusters/(new|\d+)/")


class ThreadPools:
    """All threads of one application."""

    def __init__(self) -> None:
        # Health answers while all pages wait.
        self.health = Threads("health", size=2, waiting=64, per_client=64)
        self.pages = Threads("pages", size=12, waiting=512, per_client=512)
        # These wait for a cluster's API, which may take its time.
        self.of_one_lease = Threads("one-lease", size=8, waiting=128, per_client=128)
        checks = partial(Threads, size=sign_in_limits.AT_ONCE, waiting=sign_in_limits.WAITING)
        self.sign_in = checks("sign-in", per_client=sign_in_limits.WAITING_PER_ADDRESS)
        self.known_sign_in = checks(
            "known-sign-in", per_client=sign_in_limits.WAITING_PER_KNOWN_ADDRESS
        )

    def of(self, scope: Mapping[str, Any]) -> Threads:
        """The threads for a request."""
        path = scope["path"]
        if path in _HEALTH:
            return self.health
        if sign_in_limits.checks_password(scope):
            return (
                self.known_sign_in
                if sign_in_limits.is_known_browser(scope["headers"])
                else self.sign_in
            )
        return self.of_one_lease if _OF_ONE_LEASE.fullmatch(path) else self.pages


logger = logging.getLogger(__name__)


class ReleasedRequest(ASGIRequest):
    """Lets go of what middlewares keep on it: that holds the request, so both would stay until the
    next collection of garbage.
    """

    def close(self) -> None:
        super().close()
        vars(self).clear()


class OneThreadPages(ASGIHandler):
    """Answers 503 when no thread is free, and 429 to addresses that guess passwords."""

    request_class = ReleasedRequest

    def __init__(self) -> None:
        super().__init__()
        self.threads = ThreadPools()

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        client = client_address((scope.get("client") or ("",))[0])
        threads = self.threads.of(scope)
        send = answer_with_id(scope, send)
        if threads is self.threads.sign_in:
            remaining = sign_in_limits.SLOWED.remaining(client, timezone.now())
            if remaining is not None:
                await answer_slowed(send, remaining)
                return
        begun, answer = time.monotonic(), CutAnswer(send)
        page = asyncio.ensure_future(self._in_one_thread(threads, client, scope, receive, answer))
        try:
            await asyncio.shield(page)  # its thread goes on, whatever happens to this task
        except asyncio.CancelledError:  # the process ends; uvicorn would answer 500
            await answer.refuse()
        except TooBusy:
            await answer_busy(send, SIGN_IN_BUSY if sign_in_limits.checks_password(scope) else BUSY)
        took = time.monotonic() - begun
        if took >= settings.LEASEBOARD.slow_seconds:
            logger.warning("%s %s took %.1f s", scope["method"], scope["path"], took)

    async def _in_one_thread(
        self, threads: Threads, client: str | None, scope: Any, receive: Any, send: Any
    ) -> None:
        async with threads.one(client or ""):
            await super().__call__(scope, receive, send)

    async def listen_for_disconnect(self, receive: Any) -> None:
        """Return where Django raises: the raised error would hold the request and its answer until
        the next collection of garbage.
        """
        with suppress(RequestAborted):
            await super().listen_for_disconnect(receive)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await sync_to_async(self.get_response, thread_sensitive=True)(request)
