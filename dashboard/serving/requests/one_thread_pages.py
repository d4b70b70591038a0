"""Django's ASGI handler, with each request in one thread of a bounded number.

In async mode Django switches to a thread and back for each synchronous middleware. Django has no
setting for this, so this module overrides two undocumented methods: `load_middleware` and
`get_response_async`. pyproject.toml pins Django to the minor version that calls them, and
tests/serving/requests/test_one_thread_pages.py fails when a version does not.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from dashboard.access.log_lines.request_id import answer_with_id
from dashboard.access.sign_in.client_address import client_address
from dashboard.access.sign_in.password_checks import checks_password
from dashboard.access.sign_in.slowed_addresses import SLOWED
from dashboard.serving.requests.busy import BUSY, SIGN_IN_BUSY, answer_busy, answer_slowed
from dashboard.serving.requests.cut_answer import CutAnswer
from dashboard.serving.requests.request_threads import Threads, TooBusy
from dashboard.serving.requests.thread_pools import ThreadPools

logger = logging.getLogger(__name__)


class OneThreadPages(ASGIHandler):
    """Answers 503 when no thread is free, and 429 to addresses that guess passwords."""

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
            remaining = SLOWED.remaining(client, timezone.now())
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
            await answer_busy(send, SIGN_IN_BUSY if checks_password(scope) else BUSY)
        took = time.monotonic() - begun
        if took >= settings.LEASEBOARD.slow_seconds:
            logger.warning("%s %s took %.1f s", scope["method"], scope["path"], took)

    async def _in_one_thread(
        self, threads: Threads, client: str | None, scope: Any, receive: Any, send: Any
    ) -> None:
        async with threads.one(client or ""):
            await super().__call__(scope, receive, send)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await sync_to_async(self.get_response, thread_sensitive=True)(request)
