"""Whom the authenticating proxy names in its headers, and who is that proxy.

Only the address at the other end of the connection counts. uvicorn replaces the client's address by
what X-Forwarded-For says, so `keep_peer` stores the true one first: nobody becomes the proxy by a
header.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Any

import msgspec
from django.conf import settings
from django.core.exceptions import PermissionDenied

from dashboard.config import Config

PEER = "leaseboard.peer"  # key of the ASGI scope: the address at the other end of the connection
MAX_NAME = 150  # characters that an account's name may have

App = Callable[[Any, Any, Any], Awaitable[None]]


class ProxyRefused(PermissionDenied):
    """The headers sign nobody in; the text says why and fits into a close frame."""


class NotTheProxy(ProxyRefused):
    """The request comes from an address that may not name a user."""


class ProxyVisitor(msgspec.Struct, frozen=True):
    """Whom the proxy has signed in."""

    username: str
    groups: frozenset[str]


def keep_peer(app: App) -> App:
    """Store the address of the connection before any other layer changes it."""

    async def kept(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            scope[PEER] = (scope.get("client") or ("",))[0]
        await app(scope, receive, send)

    return kept


def is_proxy(address: str, config: Config) -> bool:
    """Whether the address is one of LEASEBOARD_PROXY_ADDRESSES."""
    try:
        peer = ip_address(address)
    except ValueError:
        return False
    if isinstance(peer, IPv6Address) and peer.ipv4_mapped is not None:
        peer = peer.ipv4_mapped
    return any(peer in network for network in config.proxy_addresses)


def visitor_of(scope: Mapping[str, Any]) -> ProxyVisitor | None:
    """Whom the headers name; None without them, or if no proxy is set. Raises ProxyRefused."""
    config: Config = settings.LEASEBOARD
    if not config.proxy_addresses:
        return None
    users = _values(scope, config.proxy_user_header)
    groups = _values(scope, config.proxy_groups_header)
    if not users and not groups:
        return None
    if not is_proxy(scope.get(PEER, ""), config):
        header = config.proxy_user_header if users else config.proxy_groups_header
        raise NotTheProxy(f"{header} is refused from your address. Sign in through the proxy.")
    if not users:
        return None
    if len(users) > 1:
        raise ProxyRefused("The proxy names more than one user: let it replace the header.")
    return ProxyVisitor(_name(users[0]), frozenset(_listed(groups)))


def _values(scope: Mapping[str, Any], header: str) -> list[bytes]:
    """Of the raw headers: in Django's own names, `-` and `_` are one."""
    wanted = header.lower().encode()
    return [text.strip() for name, text in scope["headers"] if name == wanted and text.strip()]


def _name(value: bytes) -> str:
    try:
        name = value.decode()
    except UnicodeDecodeError:
        name = ""
    if not name or len(name) > MAX_NAME or not name.isprintable():
        raise ProxyRefused(f"The proxy must name a user by 1 to {MAX_NAME} characters of UTF-8.")
    return name


def _listed(values: list[bytes]) -> list[str]:
    names = ",".join(value.decode("utf-8", "replace") for value in values).split(",")
    return [name.strip() for name in names if name.strip()]
