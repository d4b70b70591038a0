"""Who takes care of an incident."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from leases.domain.notify.message import Stage
from leases.models import Acknowledgement, Notification

MAX_OUTCOME = 300  # characters


def acknowledgement_of(cluster: str, incident: str) -> Acknowledgement | None:
    return Acknowledgement.objects.filter(cluster=cluster, incident=incident).first()


def acknowledge(cluster: str, incident: str, *, who: str, at: datetime) -> Acknowledgement:
    """Note who takes care of it. The first person stays. That it worsened is not sent any more,
    unless a receiver may have been sent it already."""
    with transaction.atomic():
        found, _ = Acknowledgement.objects.get_or_create(
            cluster=cluster, incident=incident, defaults={"who": who, "at": at}
        )
        Notification.objects.filter(
            cluster=cluster,
            incident=incident,
            stage=Stage.WORSENED.value,
            state=Notification.WAITING,
            attempts=0,
        ).update(
            state=Notification.WITHDRAWN,
            ended_at=at,
            outcome=f"Not sent: {found.who} takes care of the incident."[:MAX_OUTCOME],
        )
    return found


def take_back(cluster: str, incident: str) -> None:
    Acknowledgement.objects.filter(cluster=cluster, incident=incident).delete()
