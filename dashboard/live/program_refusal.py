"""Refuse a socket to an API token: HTTP 401 with a JSON problem instead of an opened socket.

A browser's script could not read such an answer, but no browser sends a token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dashboard.access.programs.problem import CONTENT_TYPE, INVALID_TOKEN, problem_body

EXTENSION = "websocket.http.response"  # of ASGI; not every server has it


def sends_token(scope: Mapping[str, Any]) -> bool:
    sent = dict(scope["headers"]).get(b"authorization", b"").lower()
    return sent.startswith(b"bearer ") and EXTENSION in (scope.get("extensions") or {})


async def answer_401(send: Callable[[Any], Any], reason: str) -> None:
    """Answer the handshake."""
    body = problem_body(401, reason)
    headers = [
        (b"content-type", CONTENT_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"www-authenticate", INVALID_TOKEN.encode()),
    ]
    await send({"type": f"{EXTENSION}.start", "status": 401, "headers": headers})
    await send({"type": f"{EXTENSION}.body", "body": body})
