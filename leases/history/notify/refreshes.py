"""What to send to Alertmanager again and again: it forgets alerts that nobody repeats."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db.models import Q

from leases.domain.notify.message import Stage
from leases.domain.notify.target import Sort
from leases.history.notify.claims import Delivery
from leases.history.notify.outbox import decode_message
from leases.models import IncidentRecord, Notification, Receiver

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
    due = Q(refreshed_at=None) | Q(refreshed_at__lte=now - REFRESH)
    may = Q(retry_at=None) | Q(retry_at__lte=now)
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
                    rows=(),
                    messages=tuple(decode_message(row.content) for row in rows),
                    attempt=1,
                )
            )
    return found


def _going_on(receiver: Receiver, watched: Collection[str]) -> list[Notification]:
    """The newest message about each incident that it has heard of and that goes on."""
    rows = Notification.objects.filter(receiver=receiver, stage__in=_GOING_ON)
    newest: dict[tuple[str, str], Notification] = {}
    going_on = IncidentRecord.objects.filter(ended=None, cluster__in=watched)
    open_now = set(going_on.values_list("cluster", "incident"))
    if not open_now:
        return []
    sent = rows.filter(state=Notification.SENT, incident__in={number for _, number in open_now})
    for row in sent.order_by("-step"):
        if (row.cluster, row.incident) in open_now:
            newest.setdefault((row.cluster, row.incident), row)
    return list(newest.values())[:MAX_REFRESHED]
