"""What the database knows of deletions: the runs, and the audit row of each Lease.

All functions are for a thread, not for the event loop.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.db import IntegrityError, connection, transaction
from django.db.models import QuerySet

from leases.actions.audit import DONE, FAILED, REFUSED, Intent, running
from leases.actions.delete_many.choice import ChosenLease, pack, unpack
from leases.actions.delete_many.requests import Answer, Fate
from leases.history.database_text import to_stored, to_stored_json
from leases.models import Deletion, Edit
from leases.wire.microtime import format_microtime

ACTION = "lease.delete"
EDIT = "leases.edit_lease"
# What each row of the audit trail has from its deletion.
SHARED = ("user_id", "username", "address", "as_user", "cluster", "reason", "batch")
SILENT = timedelta(seconds=30)  # a process that was silent for so long no longer runs
INTERRUPTED = (
    "Leaseboard stopped before the end. Leases that it had not come to were not tried; where an "
    "answer is missing, the row says what the cluster has."
)


class Started(Exception):
    """This drawing of the form started a deletion before."""

    def __init__(self, deletion: Deletion) -> None:
        super().__init__("This form was sent before. Nothing was started a second time.")
        self.deletion = deletion


def start(intent: Intent, leases: Sequence[ChosenLease], *, words: str, process: str) -> Deletion:
    """Store a deletion, for this process to run. Raises Started if the form was sent before.

    The `key` of the intent is not used.
    """
    row = Deletion(
        batch=f"deletion-{secrets.token_hex(8)}",
        cluster=intent.cluster,
        user=intent.user,
        username=intent.user.get_username(),
        address=intent.address,
        as_user=intent.as_user,
        reason=to_stored(intent.reason),
        words=to_stored(words),
        chosen=pack(leases),
        total=len(leases),
        made_at=intent.at,
        process=process,
        beat_at=intent.at,
        once=intent.once or None,
    )
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        earlier = Deletion.objects.filter(once=intent.once).first() if intent.once else None
        if earlier is None:
            raise
        raise Started(earlier) from None
    return row


def next_of(cluster: str, process: str) -> Deletion | None:
    """The oldest deletion that waits for this process."""
    waiting = Deletion.objects.filter(cluster=cluster, process=process, state=Deletion.WAITING)
    return waiting.select_related("user").order_by("pk").first()


def interrupt_own(cluster: str, process: str, now: datetime) -> None:
    """Mark a deletion that this process runs no more, because its task has failed."""
    _interrupt(
        Deletion.objects.filter(cluster=cluster, process=process, state=Deletion.RUNNING), now
    )


def interrupt_lost(cluster: str, process: str, now: datetime) -> None:
    """Mark the deletions of processes that have ended. SQLite serves one process only."""
    lost = Deletion.objects.filter(cluster=cluster, state__in=Deletion.ACTIVE)
    lost = lost.exclude(process=process)
    if connection.vendor != "sqlite":
        lost = lost.filter(beat_at__lt=now - SILENT)
    _interrupt(lost, now)


def _interrupt(rows: QuerySet[Deletion], now: datetime) -> None:
    for row in rows:
        _end(rows.filter(pk=row.pk), row, Deletion.INTERRUPTED, now, INTERRUPTED)


def beat(number: int, now: datetime, note: str) -> str:
    """Say that the deletion runs. Returns why it is to stop, or ""."""
    Deletion.objects.filter(pk=number).update(beat_at=now, note=to_stored(note))
    row = Deletion.objects.select_related("user").get(pk=number)
    if row.stop_asked:
        return "Somebody stopped it."
    if not (row.user.is_active and row.user.has_perm(EDIT)):
        return f"{row.username} may not edit Leases any more."
    return ""


def begin(deletion: Deletion, now: datetime) -> None:
    Deletion.objects.filter(pk=deletion.pk).update(state=Deletion.RUNNING, beat_at=now)


def end(deletion: Deletion, state: str, now: datetime, note: str) -> None:
    _end(Deletion.objects.filter(pk=deletion.pk), deletion, state, now, note)


def _end(
    rows: QuerySet[Deletion], deletion: Deletion, state: str, now: datetime, note: str
) -> None:
    """Close it, and keep of its choice only the Leases that have no row in the audit trail."""
    left = [] if state == Deletion.DONE else _not_tried(deletion)
    rows.update(state=state, ended_at=now, note=to_stored(note), chosen=pack(left))


def _not_tried(deletion: Deletion) -> list[ChosenLease]:
    rows = Edit.objects.filter(batch=deletion.batch)
    tried = set(rows.values_list("namespace", "name"))
    return [one for one in unpack(bytes(deletion.chosen)) if (one.namespace, one.name) not in tried]


def ask_to_stop(number: int) -> bool:
    """Whether it had not ended before."""
    active = Deletion.objects.filter(pk=number, state__in=Deletion.ACTIVE)
    return bool(active.update(stop_asked=True))


def write_intents(deletion: Deletion, leases: Iterable[ChosenLease], now: datetime) -> list[Edit]:
    """Write the intents of a few deletes, right before they are sent."""
    shared = {name: getattr(deletion, name) for name in SHARED}
    rows = [
        Edit(
            **shared,
            at=now,
            namespace=one.namespace,
            name=one.name,
            action=ACTION,
            before=to_stored_json({"holderIdentity": one.holder} if one.holder else {}),
            request={
                "verb": "delete",
                "resource_version": one.resource_version,
                "uid": one.uid,
                "attempt": 1,
                "sent_at": format_microtime(now),
            },
        )
        for one in leases
    ]
    made = Edit.objects.bulk_create(rows)
    running.update(row.pk for row in made)
    return made


def close_rows(rows: Sequence[Edit], answers: Sequence[Answer], now: datetime) -> None:
    """Write what became of them. A row without an answer stays open, to be resolved later."""
    pairs = list(zip(rows, answers, strict=True))
    deleted = [row.pk for row, answer in pairs if answer.fate is Fate.DELETED]
    with transaction.atomic():
        done = {"outcome": DONE, "answer": {"code": 200, "reason": ""}, "closed_at": now}
        Edit.objects.filter(pk__in=deleted).update(**done)
        for row, answer in pairs:
            detail = to_stored(answer.detail)
            if answer.fate is Fate.UNKNOWN:
                Edit.objects.filter(pk=row.pk).update(detail=detail)
            elif answer.fate is not Fate.DELETED:
                Edit.objects.filter(pk=row.pk).update(
                    outcome=FAILED if answer.fate is Fate.NOT_TRIED else REFUSED,
                    answer={"code": answer.code, "reason": answer.reason, "message": detail},
                    detail=detail,
                    closed_at=now,
                )


def let_go(rows: Iterable[Edit]) -> None:
    """From now on an open row may be resolved against the cluster."""
    running.difference_update(row.pk for row in rows)
