"""Claim messages to send, so that of several replicas one sends each.

A claim ends by itself: when a process dies while it sends, another sends again, under the same id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta

import msgspec
from django.db import transaction
from django.db.models import F, Q

from leases.domain.lease import ObjectName
from leases.domain.notify.message import Message, Stage, message_id
from leases.domain.notify.quiet import Quiet, is_quiet
from leases.domain.notify.target import Sort
from leases.history.incident_row import to_incident
from leases.history.notify.outbox import decode_message
from leases.history.notify.quiet_times import quiet_times
from leases.history.write.replica_lock import take_turn
from leases.models import IncidentRecord, Notification, Receiver

CLAIM = timedelta(seconds=60)  # longer than any attempt may take
MAX_GROUP = 40  # messages in one delivery
LOOK_AGAIN = timedelta(seconds=30)  # at a message that a mute or a window holds back


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent at once. `id` is the same at each attempt."""

    id: str
    receiver: int
    name: str
    sort: Sort
    sealed: str
    rows: tuple[int, ...]  # () refreshes what goes on, for Alertmanager
    messages: tuple[Message, ...]
    attempt: int


def claim(process: str, now: datetime, busy: Collection[int] = ()) -> list[Delivery]:
    """Take what is due: at most one delivery of each receiver is on its way at any time.

    `busy` are the receivers to which this process is sending: a claim may end while it does.
    """
    free = Q(claimed_until=None) | Q(claimed_until__lte=now)
    due = Notification.objects.filter(free, state=Notification.WAITING, due_at__lte=now)
    if not due.exists():
        return []
    with transaction.atomic():
        take_turn("notifications")
        may = Q(retry_at=None) | Q(retry_at__lte=now)
        receivers = Receiver.objects.filter(may, enabled=True, pk__in=due.values("receiver"))
        receivers = receivers.exclude(pk__in=busy)
        quiet = [one for one in quiet_times() if one.until is None or now < one.until]
        found = (_claim_next(one, quiet, process, now) for one in receivers.order_by("pk"))
        return [one for one in found if one is not None]


def _claim_next(
    receiver: Receiver, quiet: Sequence[Quiet], process: str, now: datetime
) -> Delivery | None:
    waiting = Notification.objects.filter(receiver=receiver, state=Notification.WAITING)
    rows = list(waiting.order_by("pk"))
    if any(row.claimed_until is not None and row.claimed_until > now for row in rows):
        return None
    batches = [batch for batch in _batches(receiver, rows, quiet, now) if _in_order(batch, rows)]
    if not batches:
        return None
    chosen = min(batches, key=lambda batch: (batch[0].attempts, batch[0].pk))
    messages = tuple(decode_message(row.content) for row in chosen)
    delivery = chosen[0].delivery or messages[0].id
    numbers = tuple(row.pk for row in chosen)
    Notification.objects.filter(pk__in=numbers).update(
        delivery=delivery,
        claimed_by=process,
        claimed_until=now + CLAIM,
        attempts=F("attempts") + 1,
    )
    return Delivery(
        id=delivery,
        receiver=receiver.pk,
        name=receiver.name,
        sort=Sort(receiver.sort),
        sealed=receiver.sealed,
        rows=numbers,
        messages=messages,
        attempt=chosen[0].attempts + 1,
    )


def _batches(
    receiver: Receiver, rows: Sequence[Notification], quiet: Sequence[Quiet], now: datetime
) -> Iterable[list[Notification]]:
    """Yield what may be sent now: deliveries to repeat, then one of new messages."""
    repeated: dict[str, list[Notification]] = {}
    for row in rows:
        if row.delivery:
            repeated.setdefault(row.delivery, []).append(row)
    yield from (batch for batch in repeated.values() if batch[0].due_at <= now)
    new = [row for row in rows if not row.delivery]
    if quiet:
        new = [row for row in new if not _is_held_back(row, quiet, now)]
    if not receiver.group_seconds:
        yield from ([row] for row in new if row.due_at <= now)
    elif any(row.due_at <= now for row in new):
        yield new[:MAX_GROUP]


def _in_order(batch: Sequence[Notification], rows: Iterable[Notification]) -> bool:
    """Whether no earlier message about one of these incidents still waits."""
    numbers = {row.pk for row in batch}
    about = {(row.cluster, row.incident): row.step for row in reversed(batch)}
    return not any(
        row.pk not in numbers and row.step < about.get((row.cluster, row.incident), -1)
        for row in rows
    )


def _is_held_back(row: Notification, quiet: Sequence[Quiet], now: datetime) -> bool:
    """Whether a mute or a window holds it back. That an incident is over is sent nevertheless."""
    if row.stage in (Stage.OVER, Stage.TEST):
        return False
    record = IncidentRecord.objects.filter(cluster=row.cluster, incident=row.incident)
    first = record.defer("story", "members", "evidence").first()
    if first is None:
        leases: tuple[ObjectName, ...] = ()
    else:
        leases = to_incident(first).leases
    if not is_quiet(quiet, row.cluster, leases, now):
        return False
    row.due_at = now + LOOK_AGAIN
    row.outcome = "It waits for the end of a mute or a maintenance window."
    row.save(update_fields=["due_at", "outcome"])
    return True


def release(process: str) -> None:
    """Give back what an ending process has claimed: another replica sends it without a wait."""
    waiting = Notification.objects.filter(state=Notification.WAITING, claimed_by=process)
    waiting.update(claimed_until=None)


def queue_test(receiver: int, message: Message, now: datetime) -> str:
    """Queue a test message. Returns its id."""
    name = f"test-{now.timestamp():.6f}"
    number = message_id(receiver, "", name, 0)
    numbered = msgspec.structs.replace(message, id=number, incident=name)
    Notification.objects.create(
        receiver_id=receiver,
        cluster="",
        incident=name,
        step=0,
        stage=Stage.TEST.value,
        content=msgspec.json.encode(numbered).decode(),
        made_at=now,
        due_at=now,
    )
    return number
