"""The log of messages: reading it, and deleting what is old."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
from django.db.models import Exists, OuterRef

from leases.history.notify.quiet_times import forget_quiet_times
from leases.models import IncidentRecord, Notification, Receiver

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
