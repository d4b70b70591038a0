"""What the pages ask of history: plain questions in, changes out, newest first."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import Any

import msgspec
from django.db.models import Q, QuerySet

from leases import models
from leases.domain.change import Change
from leases.history.rows import from_row


class BadCursor(ValueError):
    """A page cursor that this server did not make."""


class HistoryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which changes are wanted; an empty field wants them all. Times: since <= at < until."""

    change: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    namespace: str | None = None
    lease: str | None = None
    holder: str | None = None
    inferred: bool | None = None
    since: datetime | None = None
    until: datetime | None = None


def recent(cluster: str, limit: int) -> list[Change]:
    """The newest changes of one cluster."""
    rows = models.Change.objects.filter(cluster=cluster).order_by("-at", "-id")
    return [from_row(row) for row in rows[:limit]]


def of_lease(cluster: str, namespace: str, name: str, limit: int) -> list[Change]:
    """The newest changes of one Lease, over all its generations."""
    rows = models.Change.objects.filter(cluster=cluster, namespace=namespace, name=name)
    return [from_row(row) for row in rows.order_by("-at", "-id")[:limit]]


def find(
    cluster: str | None, wanted: HistoryFilter, *, before: str | None = None, limit: int
) -> tuple[list[Change], str | None, int]:
    """One page of changes, the cursor of the next older page or None, and how many match in all.

    Raises BadCursor for a `before` that is not a cursor of an earlier answer.
    """
    rows = matching(cluster, wanted)
    total = rows.count()
    if before:
        at, number = _read_cursor(before)
        rows = rows.filter(Q(at__lt=at) | Q(at=at, id__lt=number))
    page = list(rows.order_by("-at", "-id")[: limit + 1])
    more = len(page) > limit
    page = page[:limit]
    cursor = _write_cursor(page[-1]) if more else None
    return [from_row(row) for row in page], cursor, total


def matching(cluster: str | None, wanted: HistoryFilter) -> QuerySet[models.Change]:
    """The rows that match, unordered. No cluster means all of them."""
    exact: dict[str, Any] = {
        "cluster": cluster,
        "change__in": wanted.change or None,
        "kind__in": wanted.kind or None,
        "namespace": wanted.namespace,
        "name": wanted.lease,
        "inferred": wanted.inferred,
        "at__gte": wanted.since,
        "at__lt": wanted.until,
    }
    rows = models.Change.objects.filter(
        **{field: value for field, value in exact.items() if value is not None}
    )
    if wanted.holder is not None:
        rows = rows.filter(Q(holder=wanted.holder) | Q(previous_holder=wanted.holder))
    return rows


def _write_cursor(row: models.Change) -> str:
    return base64.urlsafe_b64encode(f"{row.at.isoformat()}|{row.pk}".encode()).decode().rstrip("=")


def _read_cursor(cursor: str) -> tuple[datetime, int]:
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        at, _, number = text.partition("|")
        moment = datetime.fromisoformat(at)
        if moment.tzinfo is None:
            raise ValueError(at)
        return moment, int(number)
    except (ValueError, binascii.Error) as error:
        raise BadCursor(
            f"{cursor!r} is not a page of this history; start again without `before`."
        ) from error
