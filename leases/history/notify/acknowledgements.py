"""Who takes care of an incident."""

from __future__ import annotations

from datetime import datetime

from leases.models import Acknowledgement


def acknowledgement_of(cluster: str, incident: str) -> Acknowledgement | None:
    return Acknowledgement.objects.filter(cluster=cluster, incident=incident).first()


def acknowledge(cluster: str, incident: str, *, who: str, at: datetime) -> Acknowledgement:
    """Note who takes care of it. The first person stays."""
    found, _ = Acknowledgement.objects.get_or_create(
        cluster=cluster, incident=incident, defaults={"who": who, "at": at}
    )
    return found


def take_back(cluster: str, incident: str) -> None:
    Acknowledgement.objects.filter(cluster=cluster, incident=incident).delete()
