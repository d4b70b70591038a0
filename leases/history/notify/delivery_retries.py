"""How a delivery ended: when to try it again after a failure, and when to give up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from random import random

from django.db import transaction

from leases.history.notify.claims import Delivery
from leases.models import Notification, Receiver

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
    jitter: Callable[[], float] = random,
) -> None:
    """Note how an attempt ended; `error` is "" if the receiver took the delivery."""
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
            old = rows.filter(made_at__lt=now - GIVE_UP)
            old.update(state=Notification.FAILED, outcome=error, ended_at=now, claimed_until=None)
            rows.filter(claimed_by=process).update(
                due_at=receiver.retry_at, outcome=error, claimed_until=None
            )
        receiver.save(update_fields=["failures", "retry_at", "last_error", "last_sent_at"])
