"""An embedded API that counts its deletes and sends some of them away."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from leases.apiserver.app import App
from leases.wire.status import TooManyRequests


class Busy(App):
    """The real API, which counts its deletes and sends some of them away for a second."""

    on_their_way = most = 0
    deletes = refused = 0
    refuse_every = 0  # every so many deletes are answered with 429
    closed_until = 0.0  # monotonic seconds; the time that Retry-After names
    too_early = 0  # deletes that came before that time: those that were on their way
    uncounted = "/of somebody else"  # the end of a path
    barrier: asyncio.Event | None = None  # deletes wait for it

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        cls = type(self)
        counts = scope["type"] == "http" and scope["method"] == "DELETE"
        if not counts or scope["path"].endswith(cls.uncounted):
            await super().__call__(scope, receive, send)
            return
        cls.deletes += 1
        cls.on_their_way += 1
        cls.too_early += time.monotonic() < cls.closed_until
        cls.most = max(cls.most, cls.on_their_way)
        try:
            if cls.barrier is not None:
                await cls.barrier.wait()
            if cls.refuse_every and cls.deletes % cls.refuse_every == 0:
                cls.refused += 1
                cls.closed_until = time.monotonic() + 1.0
                await _too_many(send)
                return
            await super().__call__(scope, receive, send)
        finally:
            cls.on_their_way -= 1


async def _too_many(send: Any) -> None:
    headers = [(b"content-type", b"text/plain"), (b"retry-after", b"1")]
    await send({"type": "http.response.start", "status": TooManyRequests.code, "headers": headers})
    await send({"type": "http.response.body", "body": b"too many requests"})
