"""Who may open a socket: pages of our own sites, and people who signed in."""

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from urllib.parse import urlparse

import msgspec
from channels.db import database_sync_to_async
from channels.security.websocket import OriginValidator
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.db import Error as DatabaseError
from django.http import HttpRequest

from dashboard.access.known_rights import user_of
from dashboard.access.proxy import ProxyRefused, user_by_proxy

logger = logging.getLogger(__name__)
Headers = Iterable[tuple[bytes, bytes]]
App = Callable[[Any, Any, Any], Awaitable[None]]
ORIGIN_REFUSED = 4403
ORIGIN_FAILED = 1011  # the page tries again
NO_DATABASE = "The database does not answer. The page tries again."
UNKNOWN_HOST = "Leaseboard does not answer to this host name: add it to LEASEBOARD_ALLOWED_HOSTS."
OTHER_SITE = "Another site may not open this socket: see LEASEBOARD_TRUSTED_ORIGINS."


def allowed_host(headers: Headers) -> str | None:
    """Return the one Host header if the pages answer to that host."""
    hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
    if len(hosts) != 1:
        return None
    request = HttpRequest()
    request.META["HTTP_HOST"] = hosts[0]
    try:
        return request.get_host()
    except DisallowedHost:
        return None


def is_origin_allowed(headers: Headers, host: str) -> bool:
    """Whether the Origin is `host`, over http or https, or one of CSRF_TRUSTED_ORIGINS."""
    origin = dict(headers).get(b"origin", b"").decode("latin-1")
    sites = [f"http://{host}", f"https://{host}", *settings.CSRF_TRUSTED_ORIGINS]
    try:
        validator = OriginValidator(None, sites)  # type: ignore[arg-type]  # judges, calls nothing
        return not origin or validator.valid_origin(urlparse(origin))
    except ValueError:  # not a URL
        return False


def own_sites_only(app: App) -> App:
    """Refuse the other sockets before the database is asked."""

    async def checked(scope: Any, receive: Any, send: Any) -> None:
        host = allowed_host(scope["headers"])
        if host is None:
            await _close(receive, send, ORIGIN_REFUSED, UNKNOWN_HOST)
        elif not is_origin_allowed(scope["headers"], host):
            await _close(receive, send, ORIGIN_REFUSED, OTHER_SITE)
        else:
            await app(scope, receive, send)

    return checked


def closed_without_database(app: App) -> App:
    """Close the socket with a reason if the database fails before it opens."""

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
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
                await send(
                    {"type": "websocket.close", "code": ORIGIN_FAILED, "reason": NO_DATABASE}
                )
            else:
                await _close(receive, send, ORIGIN_FAILED, NO_DATABASE)

    return guarded


class _OfSocket(msgspec.Struct):
    session: Any


def signed_in(app: App) -> App:
    """Give the socket the user of its session, who may be known also without the database."""

    async def known(scope: Any, receive: Any, send: Any) -> None:
        user = await database_sync_to_async(user_of)(_OfSocket(scope["session"]))
        await app({**scope, "user": user}, receive, send)

    return known


def signed_in_by_proxy(app: App) -> App:
    """Give the socket the user whom the proxy names; close it if the header is refused."""

    async def signed_in(scope: Any, receive: Any, send: Any) -> None:
        if not settings.LEASEBOARD.proxy_addresses:
            await app(scope, receive, send)
            return
        try:
            user = await database_sync_to_async(user_by_proxy)(scope)
        except ProxyRefused as error:
            await _close(receive, send, ORIGIN_REFUSED, str(error))
            return
        await app(scope if user is None else {**scope, "user": user}, receive, send)

    return signed_in


async def _close(receive: Any, send: Any, code: int, reason: str) -> None:
    """Accept first: without it a browser sees code 1006 instead of `code`."""
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": code, "reason": reason})
