"""The account of whom the proxy names: made on first sight, with the roles of its groups."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, User
from django.db import transaction

from dashboard import clock
from dashboard.access.programs.bearer import Refusals
from dashboard.access.proxy.headers import PEER, NotTheProxy, ProxyRefused, ProxyVisitor, visitor_of
from dashboard.access.roles import ROLES
from dashboard.access.security_log import SecurityEvent, record
from dashboard.access.sign_in.client_address import client_address, full_address
from dashboard.config import Config
from leases.models import Person

logger = logging.getLogger(__name__)

BY_PROXY = "signed_in_by_proxy"  # attribute of the user of a request or a socket
LOCAL = "This account was not made by the proxy. Ask an admin to let the proxy sign it in."
DEACTIVATED = "Your account was deactivated. Ask an admin."


refused_lately = Refusals()


def user_by_proxy(scope: Mapping[str, Any]) -> User | None:
    """The user whom the proxy signs in with this request or socket; None: nobody.

    Raises ProxyRefused, and records it. Not on the event loop.
    """
    visitor = None
    try:
        visitor = visitor_of(scope)
        return account_of(visitor, address=_address(scope)) if visitor is not None else None
    except ProxyRefused as error:
        _record_refusal(scope, visitor, error)
        raise


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
