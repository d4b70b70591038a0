"""The id of the request that this thread or task answers, for log lines and for the answer."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any

HEADER = b"x-request-id"
_SANE = re.compile(rb"[A-Za-z0-9._-]{1,64}")
Send = Callable[[dict[str, Any]], Awaitable[None]]

current: ContextVar[str] = ContextVar("request_id", default="")


def answer_with_id(scope: Mapping[str, Any], send: Send) -> Send:
    """Take the proxy's id or make one, keep it for this context, and put it on the answer."""
    given = next((value for name, value in scope.get("headers", ()) if name == HEADER), b"")
    value = given if _SANE.fullmatch(given) else secrets.token_hex(8).encode()
    current.set(value.decode())

    async def sending(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), (HEADER, value)]}
        await send(message)

    return sending
