"""Refuse requests without a thread or a database while the process is too busy."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import cache
from typing import Any

from django.template.loader import render_to_string

Send = Callable[[dict[str, Any]], Awaitable[None]]

BUSY_SECONDS = 5
POLICY = b"default-src 'none'; style-src 'self'; img-src 'self' data:; font-src 'self'"
BUSY = "Too many pages are being made. Reload this one in a few seconds."
SIGN_IN_BUSY = "Too many people are signing in. Go back and send the form again in a few seconds."
SLOWED = (
    "Too many wrong passwords came from your address. Go back and try again in {seconds} seconds."
)


async def answer_busy(send: Send, text: str) -> None:
    """503: somebody else is being served."""
    await _answer(send, 503, _page("Busy", text), BUSY_SECONDS)


async def answer_slowed(send: Send, remaining: timedelta) -> None:
    """429: this client asked too often."""
    seconds = max(1, math.ceil(remaining.total_seconds()))
    await _answer(send, 429, _page("Not so fast", SLOWED.format(seconds=seconds)), seconds)


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
