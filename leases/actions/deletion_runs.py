"""Run the deletion of many Leases: its records, and the report of what it came to.

All functions are for a thread, not for the event loop.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import msgspec
from django.contrib.auth.models import User
from django.db import DatabaseError, IntegrityError, OperationalError, connection, transaction
from django.db.models import Count, QuerySet

from leases.actions import delete_many
from leases.actions.audit import DONE, FAILED, REFUSED, Intent, running
from leases.domain.lease import ObjectName
from leases.history.database import from_stored, to_stored, to_stored_json
from leases.kube.lease_client import LeaseClient
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


def started_before(once: str, *, user: User, cluster: str) -> Deletion | None:
    """The deletion that this drawing of the form started."""
    if not once or not once.isprintable():
        return None
    return Deletion.objects.filter(once=once, user=user, cluster=cluster).first()


class Started(Exception):
    """This drawing of the form started a deletion before."""

    def __init__(self, deletion: Deletion) -> None:
        super().__init__("This form was sent before. Nothing was started a second time.")
        self.deletion = deletion


def start(
    intent: Intent, leases: Sequence[delete_many.ChosenLease], *, words: str, process: str
) -> Deletion:
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
        chosen=delete_many.pack(leases),
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


def clusters_at_work() -> set[str]:
    """The clusters that have a deletion which has not ended, of any process."""
    active = Deletion.objects.filter(state__in=Deletion.ACTIVE)
    return set(active.values_list("cluster", flat=True))


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


def note_beat(number: int, now: datetime, note: str) -> str:
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
    rows.update(state=state, ended_at=now, note=to_stored(note), chosen=delete_many.pack(left))


def _not_tried(deletion: Deletion) -> list[delete_many.ChosenLease]:
    rows = Edit.objects.filter(batch=deletion.batch)
    tried = set(rows.values_list("namespace", "name"))
    return [
        one
        for one in delete_many.unpack(bytes(deletion.chosen))
        if (one.namespace, one.name) not in tried
    ]


def ask_to_stop(number: int) -> bool:
    """Whether it had not ended before."""
    active = Deletion.objects.filter(pk=number, state__in=Deletion.ACTIVE)
    return bool(active.update(stop_asked=True))


def write_intents(
    deletion: Deletion, leases: Iterable[delete_many.ChosenLease], now: datetime
) -> list[Edit]:
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


def close_rows(rows: Sequence[Edit], answers: Sequence[delete_many.Answer], now: datetime) -> None:
    """Write what became of them. A row without an answer stays open, to be resolved later."""
    pairs = list(zip(rows, answers, strict=True))
    deleted = [row.pk for row, answer in pairs if answer.fate is delete_many.Fate.DELETED]
    with transaction.atomic():
        done = {"outcome": DONE, "answer": {"code": 200, "reason": ""}, "closed_at": now}
        Edit.objects.filter(pk__in=deleted).update(**done)
        for row, answer in pairs:
            detail = to_stored(answer.detail)
            if answer.fate is delete_many.Fate.UNKNOWN:
                Edit.objects.filter(pk=row.pk).update(detail=detail)
            elif answer.fate is not delete_many.Fate.DELETED:
                Edit.objects.filter(pk=row.pk).update(
                    outcome=FAILED if answer.fate is delete_many.Fate.NOT_TRIED else REFUSED,
                    answer={"code": answer.code, "reason": answer.reason, "message": detail},
                    detail=detail,
                    closed_at=now,
                )


def let_go(rows: Iterable[Edit]) -> None:
    """From now on an open row may be resolved against the cluster."""
    running.difference_update(row.pk for row in rows)


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
    for one in delete_many.unpack(bytes(deletion.chosen)):
        if (one.namespace, one.name) not in tried:
            yield ReportLine(
                namespace=one.namespace,
                name=one.name,
                uid=one.uid,
                fate=delete_many.Fate.NOT_TRIED.value,
            )


def names_to_try_again(deletion: Deletion) -> list[ObjectName]:
    """Those that a new deletion may try: refused, not tried, or without an answer."""
    finished = {
        delete_many.Fate.DELETED.value,
        delete_many.Fate.GONE.value,
        delete_many.Fate.LEFT_ALONE.value,
    }
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
        return delete_many.Fate.DELETED.value
    if outcome == Edit.INTENDED:
        return delete_many.Fate.UNKNOWN.value
    if outcome == FAILED:
        return delete_many.Fate.NOT_TRIED.value
    if outcome in ("not_done", "unknown"):
        return NOT_DELETED if outcome == "not_done" else delete_many.Fate.UNKNOWN.value
    fates = {LEFT_ALONE_CODE: delete_many.Fate.LEFT_ALONE, GONE_CODE: delete_many.Fate.GONE}
    return fates.get(code or 0, delete_many.Fate.REFUSED).value


logger = logging.getLogger(__name__)

BEAT_SECONDS = 1.0

InThread = Callable[[Callable[[], Any]], Awaitable[Any]]
T = TypeVar("T")


class DeletionRun:
    """`look` makes it look at once whether somebody asked it to stop."""

    def __init__(
        self,
        deletion: Deletion,
        client: Callable[[], LeaseClient],
        *,
        in_thread: InThread,
        clock: Callable[[], datetime],
    ) -> None:
        self.deletion = deletion
        self.look = asyncio.Event()
        self._in_thread = in_thread
        self._clock = clock
        self._stopped = asyncio.Event()
        self._why = ""
        self._requests = delete_many.DeleteRequests(client, stopped=self._stopped)

    async def run(self) -> None:
        """Delete until all were tried or somebody stops it."""
        deletion = self.deletion
        await self._store(partial(begin, deletion, self._clock()))
        leases = delete_many.unpack(bytes(deletion.chosen))
        async with asyncio.TaskGroup() as group:
            beating = group.create_task(self._beat(), name=f"beat of deletion {deletion.pk}")
            for first in range(0, len(leases), delete_many.MAX_AT_ONCE):
                await self._requests.ready()
                if self._stopped.is_set():
                    break
                await self._delete(leases[first : first + delete_many.MAX_AT_ONCE])
            beating.cancel()
        stopped = self._stopped.is_set()
        state, why = (Deletion.STOPPED, self._why) if stopped else (Deletion.DONE, "")
        await self._store(partial(end, deletion, state, self._clock(), why))
        logger.info("Deletion %d of %s: %s", deletion.pk, deletion.cluster, state)

    async def _delete(self, some: list[delete_many.ChosenLease]) -> None:
        """Write the intents, send all requests at once, write the answers."""
        now = self._clock
        rows = await self._store(partial(write_intents, self.deletion, some, now()))
        try:
            answers = await asyncio.gather(*map(self._requests.delete, some))
            await self._store(partial(close_rows, rows, answers, now()))
        finally:
            let_go(rows)

    async def _store(self, work: Callable[[], T]) -> T:
        """Wait for a database that is locked or away: what the cluster did is known only here."""
        while True:
            try:
                stored: T = await self._in_thread(work)
                return stored
            except OperationalError as error:
                logger.warning("Deletion %d waits for the database: %s", self.deletion.pk, error)
                await asyncio.sleep(BEAT_SECONDS)

    async def _beat(self) -> None:
        while not self._why:
            waits_for = self._requests.waits_for
            beat = partial(note_beat, self.deletion.pk, self._clock(), waits_for)
            try:
                self._why = await self._in_thread(beat)
            except DatabaseError as error:
                logger.warning("Deletion %d cannot be looked at: %s", self.deletion.pk, error)
            self.look.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(BEAT_SECONDS):
                    await self.look.wait()
        self._stopped.set()
