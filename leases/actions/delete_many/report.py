"""What a deletion came to, counted and listed from the audit trail."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from django.db.models import Count, QuerySet

from leases.actions.audit import DONE, FAILED
from leases.actions.delete_many.choice import unpack
from leases.actions.delete_many.requests import Fate
from leases.domain.lease import ObjectName
from leases.history.database_text import from_stored
from leases.models import Deletion, Edit

NOT_DELETED = "not deleted"  # no answer came; the Lease is still there
LEFT_ALONE_CODE, GONE_CODE = 409, 404
CHUNK = 2000


class DeletionCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many Leases came to what; they add up to the total."""

    total: int
    deleted: int = 0
    left_alone: int = 0
    gone: int = 0
    refused: int = 0
    not_deleted: int = 0
    unknown: int = 0  # no answer yet, or none came

    @property
    def tried(self) -> int:
        return self.total - self.not_tried

    @property
    def not_tried(self) -> int:
        known = self.deleted + self.left_alone + self.gone + self.refused
        return self.total - known - self.not_deleted - self.unknown


class ReportLine(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one Lease."""

    namespace: str
    name: str
    uid: str
    fate: str
    detail: str = ""
    at: datetime | None = None


def counts_of(deletion: Deletion) -> DeletionCounts:
    counts: dict[str, int] = {}
    grouped = _rows(deletion).values_list("outcome", "answer__code").annotate(Count("pk"))
    for outcome, code, number in grouped.order_by():
        field = _fate(outcome, code).replace(" ", "_")
        counts[field] = counts.get(field, 0) + number
    counts.pop("not_tried", None)  # the rest, as those without a row
    return DeletionCounts(total=deletion.total, **counts)


def not_deleted(deletion: Deletion, limit: int) -> list[ReportLine]:
    """Those that were tried and are not known to be deleted, in the order of the tries."""
    rows = _rows(deletion).exclude(outcome__in=(DONE, FAILED)).order_by("pk")
    return [_line(row) for row in rows[:limit]]


def every(deletion: Deletion) -> Iterator[ReportLine]:
    """All that were chosen, one after another; those without a row come last, not tried."""
    tried = set()
    rows = _rows(deletion).order_by("pk")
    for row in rows.iterator(chunk_size=CHUNK):
        tried.add((row.namespace, row.name))
        yield _line(row)
    for one in unpack(bytes(deletion.chosen)):
        if (one.namespace, one.name) not in tried:
            yield ReportLine(
                namespace=one.namespace, name=one.name, uid=one.uid, fate=Fate.NOT_TRIED.value
            )


def names_to_try_again(deletion: Deletion) -> list[ObjectName]:
    """Those that a new deletion may try: refused, not tried, or without an answer."""
    finished = {Fate.DELETED.value, Fate.GONE.value, Fate.LEFT_ALONE.value}
    return [
        ObjectName(line.namespace, line.name)
        for line in every(deletion)
        if line.fate not in finished
    ]


def _rows(deletion: Deletion) -> QuerySet[Edit, Any]:
    return Edit.objects.filter(batch=deletion.batch)


def _line(row: Edit) -> ReportLine:
    return ReportLine(
        namespace=row.namespace,
        name=row.name,
        uid=row.request.get("uid", ""),
        fate=_fate(row.outcome, row.answer.get("code")),
        detail=from_stored(row.detail),
        at=row.closed_at,
    )


def _fate(outcome: str, code: int | None) -> str:
    if outcome == DONE:
        return Fate.DELETED.value
    if outcome == Edit.INTENDED:
        return Fate.UNKNOWN.value
    if outcome == FAILED:
        return Fate.NOT_TRIED.value
    if outcome in ("not_done", "unknown"):
        return NOT_DELETED if outcome == "not_done" else Fate.UNKNOWN.value
    fates = {LEFT_ALONE_CODE: Fate.LEFT_ALONE, GONE_CODE: Fate.GONE}
    return fates.get(code or 0, Fate.REFUSED).value
