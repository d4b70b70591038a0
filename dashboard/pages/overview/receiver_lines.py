"""The line of the Attention list for the receivers of messages that fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from django.urls import reverse

from dashboard.pages.overview.attention_line import Attention
from dashboard.parts.change_sentence import Part
from dashboard.parts.formatting import counted, listed, when
from leases.history.notify.delivery_log import FailingReceiver


def receiver_lines(failing: Sequence[FailingReceiver], now: datetime) -> Iterator[Attention]:
    """One line at most: it stands behind all Leases, for none of them is in trouble by it."""
    if not failing:
        return
    query = f"?receiver={failing[0].number}" if len(failing) == 1 else ""
    who = "It does" if len(failing) == 1 else f"{counted(len(failing), 'receiver')} do"
    retry_at = min((one.retry_at for one in failing if one.retry_at is not None), default=None)
    yield Attention(
        rank=9.5,
        phase="deleted",
        icon="i-warn",
        namespace="",
        label=listed([one.name for one in failing]),
        url=f"{reverse('notification_log')}{query}",
        word="Not notified.",
        why=(Part(f"{who} not take messages. An admin finds the reason in the delivery log."),),
        amount=counted(sum(one.failures for one in failing), "attempt"),
        moment="" if retry_at is None else f"next at {when(retry_at, now)}",
    )
