"""The security log, and the address that a request comes from.

Behind a proxy, uvicorn puts the address here that a trusted proxy names.
"""

import logging
from datetime import datetime
from enum import StrEnum
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

import msgspec
from django.db import Error, transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from dashboard import clock
from dashboard.log_lines import redact
from leases.history.database import is_text
from leases.models import SecurityRecord
from leases.wire.microtime import format_microtime

logger = logging.getLogger(__name__)
OK = "ok"
MAX_LENGTH = {"who": 150, "address": 64, "about": 300, "outcome": 100}  # of the columns


class SecurityEvent(StrEnum):
    SIGN_IN = "sign_in"
    SIGN_IN_REFUSED = "sign_in_refused"
    SIGN_OUT = "sign_out"
    TOKEN_CREATED = "token_created"  # noqa: S105
    TOKEN_USED_REFUSED = "token_used_refused"  # noqa: S105
    TOKEN_REVOKED = "token_revoked"  # noqa: S105
    ROLE_CHANGED = "role_changed"
    PASSWORD_CHANGED = "password_changed"  # noqa: S105
    LINK_CREATED = "link_created"
    LINK_REVOKED = "link_revoked"
    SCREEN_CODE_CREATED = "screen_code_created"
    SCREEN_OPENED = "screen_opened"
    SCREEN_REFUSED = "screen_refused"
    SCREEN_REVOKED = "screen_revoked"
    RECEIVER_CREATED = "receiver_created"
    RECEIVER_CHANGED = "receiver_changed"
    RECEIVER_TESTED = "receiver_tested"
    RECEIVER_DELETED = "receiver_deleted"
    CLUSTER_ADDED = "cluster_added"
    CLUSTER_CHANGED = "cluster_changed"
    CLUSTER_PAUSED = "cluster_paused"
    CLUSTER_RESUMED = "cluster_resumed"
    CLUSTER_REMOVED = "cluster_removed"
    EXPORT = "export"
    PROXY_REFUSED = "proxy_refused"
    DEACTIVATED = "deactivated"


def record(
    event: SecurityEvent, *, who: str, address: str, about: str = "", outcome: str = OK
) -> None:
    """Write one line. Not on the event loop.

    A database that refuses the line does not stop what the line is about: that goes to the log.
    """
    given = {"who": who, "address": address, "about": about, "outcome": outcome}
    texts = {name: _storable(text)[: MAX_LENGTH[name]] for name, text in given.items()}
    try:
        with transaction.atomic():
            SecurityRecord.objects.create(at=clock.now(), event=event, **texts)
    except Error as error:
        logger.warning("The security log lacks %s of %r: %s", event, texts["who"], error)


def record_by(request: HttpRequest, event: SecurityEvent, about: str) -> None:
    """Write what the user of a request did."""
    address = full_address(request.META.get("REMOTE_ADDR"))
    record(event, who=request.user.get_username(), address=address, about=about)


def _storable(text: str) -> str:
    """Without secrets and without what a database or a line cannot hold."""
    return "".join(
        one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in redact(text)
    )


IPV6_PREFIX = 64  # one network, one client: each of its machines picks addresses as it likes


def client_address(text: str | None) -> str | None:
    """The address, or an IPv6 network by its first address; None for what is neither."""
    try:
        address = ip_address(text or "")
    except ValueError:
        return None
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    network = ip_network((int(address), IPV6_PREFIX), strict=False)
    return str(network.network_address)


def full_address(text: str | None) -> str:
    """The address of one machine, IPv6 whole, for people to read; empty for what is none."""
    try:
        address = ip_address(text or "")
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def address_of(request: HttpRequest) -> str | None:
    """For django-axes."""
    return client_address(request.META.get("REMOTE_ADDR"))


FIELDS = ("id", "at", "event", "who", "address", "about", "outcome")


class SecurityFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What all lines must have; empty: anything. `text` is part of what it is about, or of the
    outcome."""

    event: str = ""
    who: str = ""
    address: str = ""
    text: str = ""
    since: datetime | None = None
    until: datetime | None = None


def matching(wanted: SecurityFilter) -> QuerySet[SecurityRecord]:
    """Return the lines, newest first."""
    exact = {
        "event": wanted.event,
        "who": wanted.who,
        "address": wanted.address,
        "at__gte": wanted.since,
        "at__lt": wanted.until,
    }
    rows = SecurityRecord.objects.filter(**{name: value for name, value in exact.items() if value})
    if wanted.text:
        rows = rows.filter(Q(about__icontains=wanted.text) | Q(outcome__icontains=wanted.text))
    return rows.order_by("-at", "-id")


def readable(row: SecurityRecord) -> SecurityRecord:
    """The line; if the database holds other bytes than text in it, one that says so."""
    if is_text(f"{row.event}{row.who}{row.address}{row.about}{row.outcome}"):
        return row
    said = f"Row {row.pk} is unreadable."
    return SecurityRecord(pk=row.pk, at=row.at, event="unreadable", outcome=said)


def as_item(row: SecurityRecord) -> dict[str, Any]:
    """Return one line as JSON values: a name for each of FIELDS."""
    row = readable(row)
    empty_is_null = {"address": row.address or None, "about": row.about or None}
    values = {name: getattr(row, name) for name in FIELDS} | empty_is_null
    return values | {"at": format_microtime(row.at)}
