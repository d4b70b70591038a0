"""Claim messages to send, retry and log them, and repeat alerts that Alertmanager forgets.

A claim ends by itself: when a process dies while it sends, another sends again, under the same id.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from random import random

import msgspec
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q

from leases.domain.cause.going_on import longest
from leases.domain.lease import ObjectName
from leases.domain.notify import Choice, Message, Quiet, Sort, Stage, is_quiet, message_id
from leases.history.database import take_turn
from leases.history.outbox import (
    MUTED,
    chosen_leases,
    decode_choice,
    forget_quiet_times,
    quiet_times,
    stored_message,
)
from leases.history.rows import as_text, to_incident
from leases.history.watched_spans import blind_between
from leases.models import Acknowledgement, IncidentRecord, Notification, Receiver

CLAIM = timedelta(seconds=60)  # longer than any attempt may take
FARTHEST = timedelta(days=1)  # nothing is put off for longer
MAX_GROUP = 40  # messages in one delivery
LOOK_AGAIN = timedelta(seconds=30)  # at a message that a mute or a window holds back


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent at once. `id` is the same at each attempt."""

    id: str
    receiver: int
    name: str
    sort: Sort
    sealed: str
    address: str  # of the pages, as the last admin came to them
    rows: tuple[int, ...]  # () refreshes what goes on, for Alertmanager
    messages: tuple[Message, ...]
    attempt: int


def address_of_pages() -> str:
    """By which an admin came to save a receiver, one for all of them; "" where none is known."""
    known = Receiver.objects.exclude(address="").order_by("-pk")
    return known.values_list("address", flat=True).first() or ""


def note_address(address: str) -> None:
    """Let the messages to all receivers link to where the last admin came."""
    Receiver.objects.exclude(address=address).update(address=address)


def _waits(until: datetime, now: datetime) -> bool:
    return now < until <= now + FARTHEST


def _reached(field: str, now: datetime) -> Q:
    """As `_waits`: whether a stored moment is over, or was written by a clock far ahead."""
    return Q(**{f"{field}__lte": now}) | Q(**{f"{field}__gt": now + FARTHEST})


def claim(process: str, now: datetime, busy: Collection[int] = ()) -> list[Delivery]:
    """Take what is due: at most one delivery of each receiver is on its way at any time.

    `busy` are the receivers to which this process is sending: a claim may end while it does.
    """
    free = Q(claimed_until=None) | _reached("claimed_until", now)
    due = Notification.objects.filter(free, _reached("due_at", now), state=Notification.WAITING)
    if not due.exists():
        return []
    with transaction.atomic():
        take_turn("notifications")
        may = Q(retry_at=None) | _reached("retry_at", now)
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
    if any(row.claimed_until is not None and _waits(row.claimed_until, now) for row in rows):
        return None
    batches = [batch for batch in _batches(receiver, rows, quiet, now) if _in_order(batch, rows)]
    if not batches:
        return None
    chosen = min(batches, key=lambda batch: (batch[0].attempts, batch[0].pk))
    _tell_as_of(now, [row for row in chosen if row.attempts == 0])
    messages = tuple(filter(None, map(stored_message, chosen)))
    if len(messages) < len(chosen):
        bad = [row.pk for row in chosen if stored_message(row) is None]
        Notification.objects.filter(pk__in=bad).update(
            state=Notification.FAILED, ended_at=now, outcome="Not sent: it cannot be read."
        )
        return _claim_next(receiver, quiet, process, now)
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
        address=address_of_pages(),
        rows=numbers,
        messages=messages,
        attempt=chosen[0].attempts + 1,
    )


def _tell_as_of(now: datetime, rows: Sequence[Notification]) -> None:
    """Until a message is tried, a time without a holder that goes on grows."""
    numbers = {row.incident for row in rows}
    going_on = IncidentRecord.objects.filter(
        incident__in=numbers, ended=None, unheld_since__lte=now
    )
    waits = {
        (cluster, incident): since
        for cluster, incident, since in going_on.values_list("cluster", "incident", "unheld_since")
    }
    for row in rows:
        since, message = waits.get((row.cluster, row.incident)), stored_message(row)
        if since is None or message is None or message.ended is not None:
            continue
        blind = blind_between(row.cluster, since=since, until=now, now=now)
        gap = longest(message.worst_gap_seconds, since, now, blind)
        row.content = as_text(msgspec.structs.replace(message, worst_gap_seconds=gap))
    Notification.objects.bulk_update(rows, ["content"])


def _batches(
    receiver: Receiver, rows: Sequence[Notification], quiet: Sequence[Quiet], now: datetime
) -> Iterable[list[Notification]]:
    """Yield what may be sent now: deliveries to repeat, then one of new messages."""
    repeated: dict[str, list[Notification]] = {}
    for row in rows:
        if row.delivery:
            repeated.setdefault(row.delivery, []).append(row)
    yield from (batch for batch in repeated.values() if not _waits(batch[0].due_at, now))
    new = [row for row in rows if not row.delivery]
    if quiet:
        choice = decode_choice(receiver.choice)
        new = [row for row in new if not _is_held_back(row, choice, quiet, now)]
    group = timedelta(seconds=receiver.group_seconds)
    # What may still go on waits by itself: see outbox.SETTLES.
    new = [row for row in new if row.due_at <= row.made_at + group or not _waits(row.due_at, now)]
    if not receiver.group_seconds:
        yield from ([row] for row in new if not _waits(row.due_at, now))
    elif any(not _waits(row.due_at, now) for row in new):
        yield new[:MAX_GROUP]


def _in_order(batch: Sequence[Notification], rows: Iterable[Notification]) -> bool:
    """Whether no earlier message about one of these incidents still waits."""
    numbers = {row.pk for row in batch}
    about = {(row.cluster, row.incident): row.step for row in reversed(batch)}
    return not any(
        row.pk not in numbers and row.step < about.get((row.cluster, row.incident), -1)
        for row in rows
    )


def _is_held_back(row: Notification, choice: Choice, quiet: Sequence[Quiet], now: datetime) -> bool:
    """Whether all that its receiver chose of it is muted or in a window. That an incident is over
    is sent nevertheless.
    """
    if row.stage in (Stage.OVER, Stage.TEST):
        return False
    record = IncidentRecord.objects.filter(cluster=row.cluster, incident=row.incident)
    heavy = ("members", "evidence") if choice.kinds else ("story", "members", "evidence")
    first = record.defer(*heavy).first()
    leases: tuple[ObjectName, ...] = ()
    if first is not None:
        story = first.story if choice.kinds else ""
        leases = chosen_leases(choice, to_incident(first), story)
    if not is_quiet(quiet, row.cluster, leases, now):
        return False
    ends = [one.until for one in quiet if one.until is not None and one.until > now]
    row.due_at, row.outcome = min([now + LOOK_AGAIN, *ends]), MUTED
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


KEPT = timedelta(days=30)
MAX_KEPT = 50_000  # the newest, of all receivers
BATCH = 500  # rows deleted in one transaction


def forget_messages(now: datetime) -> int:
    """Delete one batch of old rows. Those of incidents that go on stay: they say what was sent."""
    forget_quiet_times(now - KEPT)
    open_now = IncidentRecord.objects.filter(
        cluster=OuterRef("cluster"), incident=OuterRef("incident"), ended=None
    )
    done = Notification.objects.filter(~Exists(open_now), ended_at__isnull=False)
    old = list(done.filter(ended_at__lt=now - KEPT).values_list("pk", flat=True)[:BATCH])
    if not old:
        beyond = done.order_by("-ended_at", "-pk").values_list("pk", flat=True)
        old = list(beyond[MAX_KEPT : MAX_KEPT + BATCH])
    return Notification.objects.filter(pk__in=old).delete()[0] if old else 0


def messages_of(cluster: str, incident: str) -> list[Notification]:
    """The messages about one incident, oldest first."""
    rows = Notification.objects.filter(cluster=cluster, incident=incident)
    return list(rows.select_related("receiver").order_by("made_at", "pk"))


class FailingReceiver(msgspec.Struct, frozen=True):
    """A receiver that did not take the last delivery; `failures` is the number of attempts since
    it took one."""

    number: int
    name: str
    failures: int
    retry_at: datetime | None


def failing_receivers() -> list[FailingReceiver]:
    """Those that are switched on, by name."""
    rows = Receiver.objects.filter(enabled=True, failures__gt=0).order_by("name")
    return [FailingReceiver(one.pk, one.name, one.failures, one.retry_at) for one in rows]


def drop_waiting(receiver: int, now: datetime) -> None:
    """Send nothing of what waits for a receiver that is switched off."""
    waiting = Notification.objects.filter(receiver=receiver, state=Notification.WAITING)
    outcome = "Not sent: the receiver was switched off."
    waiting.update(state=Notification.WITHDRAWN, ended_at=now, outcome=outcome)


FIRST_RETRY, LAST_RETRY = 5.0, 300.0  # seconds
GIVE_UP = timedelta(hours=24)  # after the message was made
MAX_ERROR = 300  # characters


def finish(
    delivery: Delivery,
    process: str,
    now: datetime,
    *,
    error: str = "",
    retry_after: float = 0.0,
    may_give_up: bool = True,
    jitter: Callable[[], float] = random,
) -> None:
    """Note how an attempt ended; `error` is "" if the receiver took the delivery.

    `may_give_up` is False while the clock may be wrong.
    """
    if not delivery.rows:
        return
    with transaction.atomic():
        receiver = Receiver.objects.filter(pk=delivery.receiver).first()
        if receiver is None:  # it was deleted meanwhile, and the rows with it
            return
        rows = Notification.objects.filter(pk__in=delivery.rows, state=Notification.WAITING)
        ended = partial(rows.update, ended_at=now, claimed_until=None)
        if not error:
            ended(state=Notification.SENT, outcome="")
            receiver.failures, receiver.retry_at = 0, None
            receiver.last_error, receiver.last_sent_at = "", now
        else:
            error = error[:MAX_ERROR]
            receiver.failures += 1
            base = min(FIRST_RETRY * 2 ** min(receiver.failures - 1, 10), LAST_RETRY)
            delay = max(base * (1 + jitter() / 4), min(retry_after, LAST_RETRY))
            receiver.retry_at = now + timedelta(seconds=delay)
            receiver.last_error = error
            if may_give_up:
                old = rows.filter(made_at__lt=now - GIVE_UP)
                failed = Notification.FAILED
                old.update(state=failed, outcome=error, ended_at=now, claimed_until=None)
            rows.filter(claimed_by=process).update(
                due_at=receiver.retry_at, outcome=error, claimed_until=None
            )
        receiver.save(update_fields=["failures", "retry_at", "last_error", "last_sent_at"])


REFRESH = timedelta(seconds=60)
MAX_REFRESHED = 500  # alerts of one receiver
_GOING_ON = (Stage.OPENED.value, Stage.WORSENED.value)


def claim_refreshes(
    now: datetime, *, watched: Collection[str], busy: Collection[int] = ()
) -> list[Delivery]:
    """Return one delivery of each Alertmanager that is to be reminded; one replica gets it.

    `watched` are the clusters that are watched: of others nobody would report the end. `busy` are
    the receivers to which this process is sending: the end of an incident that is on its way must
    not be overtaken by an older reminder.
    """
    due = Q(refreshed_at=None) | _reached("refreshed_at", now - REFRESH)
    may = Q(retry_at=None) | _reached("retry_at", now)
    receivers = Receiver.objects.filter(due & may, enabled=True, sort=Sort.ALERTMANAGER.value)
    found = []
    for one in receivers.exclude(pk__in=busy):
        mine = Receiver.objects.filter(due, pk=one.pk).update(refreshed_at=now)
        rows = _going_on(one, watched) if mine else []
        if rows:
            found.append(
                Delivery(
                    id=f"refresh-{one.pk}-{now.timestamp():.0f}",
                    receiver=one.pk,
                    name=one.name,
                    sort=Sort.ALERTMANAGER,
                    sealed=one.sealed,
                    address=address_of_pages(),
                    rows=(),
                    messages=tuple(filter(None, map(stored_message, rows))),
                    attempt=1,
                )
            )
    return found


def _going_on(receiver: Receiver, watched: Collection[str]) -> list[Notification]:
    """The newest message about each incident that it has heard of and that goes on."""
    rows = Notification.objects.filter(receiver=receiver, stage__in=_GOING_ON)
    newest: dict[tuple[str, str], Notification] = {}
    going_on = IncidentRecord.objects.filter(ended=None, cluster__in=watched)
    decided = Acknowledgement.objects.exclude(over_at=None).values_list("cluster", "incident")
    open_now = set(going_on.values_list("cluster", "incident")) - set(decided)
    if not open_now:
        return []
    sent = rows.filter(state=Notification.SENT, incident__in={number for _, number in open_now})
    for row in sent.order_by("-step"):
        if (row.cluster, row.incident) in open_now:
            newest.setdefault((row.cluster, row.incident), row)
    return list(newest.values())[:MAX_REFRESHED]
