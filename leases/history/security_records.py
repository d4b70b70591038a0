"""Find lines of the security log."""

from datetime import datetime
from typing import Any

import msgspec
from django.db.models import Q, QuerySet

from leases.history.database import is_text
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
