"""Find lines of the security log."""

from datetime import datetime
from typing import Any

import msgspec
from django.db.models import Q, QuerySet

from leases.models import SecurityRecord
from leases.wire.microtime import format_microtime

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


def as_item(row: SecurityRecord) -> dict[str, Any]:
    """Return one line as JSON values: a name for each of FIELDS."""
    empty_is_null = {"address": row.address or None, "about": row.about or None}
    values = {name: getattr(row, name) for name in FIELDS} | empty_is_null
    return values | {"at": format_microtime(row.at)}
