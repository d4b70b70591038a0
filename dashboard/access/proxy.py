"""Signing in by the headers of an authenticating proxy.

Only the address at the other end of the connection counts. uvicorn replaces the client's address by
what X-Forwarded-For says, so `keep_peer` stores the true one first: nobody becomes the proxy by a
header.
"""

import logging
import unicodedata
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from ipaddress import IPv6Address, ip_address
from typing import Any

import msgspec
from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import AnonymousUser, Group, User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponseBase

from dashboard import clock
from dashboard.access.api_tokens import Refusals
from dashboard.access.known_rights import KNOWN, ReadOnlyPerson, UserRight, ask
from dashboard.access.roles import ROLES, VIEW
from dashboard.access.security_log import SecurityEvent, client_address, full_address, record
from dashboard.config import Config
from leases.models import Person

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
    if unicodedata.normalize("NFKC", name) != name:
        # Accounts are found by their normal form: this one would sign in as somebody else.
        raise ProxyRefused("The proxy must name a user in Unicode's normal form NFKC.")
    return name


def _listed(values: list[bytes]) -> list[str]:
    names = ",".join(value.decode("utf-8", "replace") for value in values).split(",")
    return [name.strip() for name in names if name.strip()]


logger = logging.getLogger(__name__)

BY_PROXY = "signed_in_by_proxy"  # attribute of the user of a request or a socket
LOCAL = "This account was not made by the proxy. Ask an admin to let the proxy sign it in."
DEACTIVATED = "Your account was deactivated. Ask an admin."


refused_lately = Refusals()


def user_by_proxy(scope: Mapping[str, Any]) -> User | ReadOnlyPerson | None:
    """The user whom the proxy signs in with this request or socket; None: nobody.

    Raises ProxyRefused, and records it. Not on the event loop.
    """
    visitor = None
    try:
        visitor = visitor_of(scope)
        if visitor is None:
            return None
        return ask(("proxy", visitor), partial(_known_account, visitor, _address(scope)))
    except ProxyRefused as error:
        _record_refusal(scope, visitor, error)
        raise


def _known_account(visitor: ProxyVisitor, address: str) -> User | ReadOnlyPerson:
    user = account_of(visitor, address=address)
    if user.has_perm(VIEW):
        reader = ReadOnlyPerson(user)
        setattr(reader, BY_PROXY, True)
        KNOWN.note(("proxy", visitor), UserRight(user.pk, None), reader, None)
    return user


def account_of(visitor: ProxyVisitor, *, address: str) -> User:
    """The active account of this name, with the roles of its groups. Raises ProxyRefused."""
    name = User.normalize_username(visitor.username)
    user = User.objects.select_related("person").filter(username=name).first()
    if user is None:
        user = _make(name, address)
    if not hasattr(user, "person") or not user.person.by_proxy:
        raise ProxyRefused(LOCAL)
    if not user.is_active:
        raise ProxyRefused(DEACTIVATED)
    config: Config = settings.LEASEBOARD
    if config.proxy_roles:
        given = {role for group, role in config.proxy_roles if group in visitor.groups}
        _set_roles(user, {"admin"} if "admin" in given else given, address)
    setattr(user, BY_PROXY, True)
    return user


def _make(name: str, address: str) -> User:
    with transaction.atomic():  # of two first requests at once, one makes both rows
        user, made = User.objects.get_or_create(
            username=name, defaults={"password": make_password(None)}
        )
        if made:
            Person.objects.create(user=user, by_proxy=True)
    if made:
        record(SecurityEvent.SIGN_IN, who=name, address=address, about="made by the proxy")
    return User.objects.select_related("person").get(pk=user.pk)


def _set_roles(user: User, wanted: set[str], address: str) -> None:
    """Give these of the two roles, and take the others; further groups stay as they are."""
    had = set(user.groups.filter(name__in=ROLES).values_list("name", flat=True))
    if had == wanted:
        return
    with transaction.atomic():
        user.groups.remove(*Group.objects.filter(name__in=had - wanted))
        user.groups.add(*Group.objects.filter(name__in=wanted - had))
    about = f"{_shown(had)} to {_shown(wanted)}, by the proxy's groups"
    record(SecurityEvent.ROLE_CHANGED, who=user.get_username(), address=address, about=about)


def _shown(roles: set[str]) -> str:
    return " and ".join(sorted(roles)) or "no role"


def _address(scope: Mapping[str, Any]) -> str:
    return full_address((scope.get("client") or ("",))[0])


def _record_refusal(
    scope: Mapping[str, Any], visitor: ProxyVisitor | None, error: ProxyRefused
) -> None:
    """Under the address of the connection if it is not the proxy's: others can be invented."""
    peer = scope.get(PEER, "")
    address = full_address(peer) if isinstance(error, NotTheProxy) else _address(scope)
    who = visitor.username if visitor is not None else ""
    if refused_lately.is_new((f"{client_address(address)} {who}", None), clock.now()):
        logger.warning("The proxy's header is refused from %s: %s", address or "nowhere", error)
        record(SecurityEvent.PROXY_REFUSED, who=who, address=address, outcome=str(error))


class ProxySignIn:
    """After Django's AuthenticationMiddleware, whose user it replaces."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        try:
            user = user_by_proxy(getattr(request, "scope", {"headers": ()}))
        except ProxyRefused:
            request.user = AnonymousUser()
            raise
        if user is not None:
            request.user = user  # type: ignore[assignment]
            request.by_proxy = True  # type: ignore[attr-defined]
        return self._get_response(request)
