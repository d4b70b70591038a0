"""Ignore a request's offer of another protocol."""

from __future__ import annotations

from collections.abc import Iterable


def head_without_upgrade(
    method: bytes, target: bytes, headers: Iterable[tuple[bytes, bytes]]
) -> bytes:
    """Return the request's head without the offer, with the empty line after it."""
    lines = [
        b"%s: %s\r\n" % (name, _without_upgrade(value) if name == b"connection" else value)
        for name, value in headers
        if name != b"upgrade"
    ]
    return b"%s %s HTTP/1.1\r\n%s\r\n" % (method, target, b"".join(lines))


def _without_upgrade(connection: bytes) -> bytes:
    """Return a Connection header without the offer."""
    tokens = [token.strip() for token in connection.split(b",")]
    return b", ".join(token for token in tokens if token.lower() != b"upgrade")
