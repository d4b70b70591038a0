"""Which sockets are opened at all: those that ask for a host of ours, from a site of ours or a
trusted one. A program that names no origin is no browser."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import Error as DatabaseError
from django.http.request import split_domain_port, validate_host

Headers = Iterable[tuple[bytes, bytes]]
App = Callable[[Any, Any, Any], Awaitable[None]]
logger = logging.getLogger(__name__)

REFUSED = 4403
FAILED = 1011  # the page tries again
NO_DATABASE = "The database does not answer. The page tries again."
UNKNOWN_HOST = "Leaseboard does not answer to this host name: add it to LEASEBOARD_ALLOWED_HOSTS."
OTHER_SITE = "Another site may not open this socket: see LEASEBOARD_TRUSTED_ORIGINS."


def is_host_allowed(headers: Headers, *, allowed: Collection[str]) -> bool:
    """Whether the one Host header names a host that the pages answer to, as Django judges it."""
    hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
    if len(hosts) != 1:
        return False
    domain, _port = split_domain_port(hosts[0])
    return bool(domain) and validate_host(domain, allowed)


def may_open(headers: Headers, *, trusted: Collection[str]) -> bool:
    """Whether the socket's Origin is the host it asks, or one of the trusted origins."""
    values = dict(headers)
    origin = values.get(b"origin", b"").decode("latin-1")
    if not origin:
        return True
    host = values.get(b"host", b"").decode("latin-1")
    try:
        site = urlsplit(origin).netloc
    except ValueError:
        return False
    return site == host or origin in trusted


def own_sites_only(app: App) -> App:
    """Refuse other sockets before anything is asked of the database."""

    async def checked(scope: Any, receive: Any, send: Any) -> None:
        headers = scope["headers"]
        if not is_host_allowed(headers, allowed=settings.ALLOWED_HOSTS):
            await _close(receive, send, REFUSED, UNKNOWN_HOST)
        elif not may_open(headers, trusted=settings.CSRF_TRUSTED_ORIGINS):
            await _close(receive, send, REFUSED, OTHER_SITE)
        else:
            await app(scope, receive, send)

    return checked


def told_of_database(app: App) -> App:
    """Close with a reason a socket whose user the database does not tell."""

    async def told(scope: Any, receive: Any, send: Any) -> None:
        accepted = False

        async def sending(message: dict[str, Any]) -> None:
            nonlocal accepted
            accepted = accepted or message["type"] == "websocket.accept"
            await send(message)

        try:
            await app(scope, receive, sending)
        except DatabaseError as error:
            logger.warning("A socket was not opened, the database refuses: %s", error)
            if accepted:
                await send({"type": "websocket.close", "code": FAILED, "reason": NO_DATABASE})
            else:
                await _close(receive, send, FAILED, NO_DATABASE)

    return told


async def _close(receive: Any, send: Any, code: int, reason: str) -> None:
    """Accepted first, or the browser would see 1006 and not our code."""
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": code, "reason": reason})
