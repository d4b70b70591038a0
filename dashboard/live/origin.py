"""Which sites may open a socket: our own and the trusted ones. A program that names no origin is
no browser."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from urllib.parse import urlsplit


def may_open(headers: Iterable[tuple[bytes, bytes]], *, trusted: Collection[str]) -> bool:
    """Whether the socket's Origin is the host it asks, or one of the trusted origins."""
    values = dict(headers)
    origin = values.get(b"origin", b"").decode("latin-1")
    if not origin:
        return True
    host = values.get(b"host", b"").decode("latin-1")
    return urlsplit(origin).netloc == host or origin in trusted
