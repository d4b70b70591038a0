"""Set the reliability objective of a cluster."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction

from leases.actions.audit import DONE
from leases.models import Edit, ReliabilityObjective

ACTION = "reliability.objective"


def set_objective(*, user: User, cluster: str, percent: float, at: datetime) -> None:
    """Store it with its audit row, without asking the cluster. Twice changes nothing."""
    by = user.get_username()
    with transaction.atomic():
        known = ReliabilityObjective.objects.filter(cluster=cluster).first()
        if known is not None and known.percent == percent:
            return
        ReliabilityObjective.objects.update_or_create(
            cluster=cluster, defaults={"percent": percent, "username": by, "at": at}
        )
        Edit.objects.create(
            cluster=cluster,
            at=at,
            closed_at=at,
            user=user,
            username=by,
            action=ACTION,
            before={"objective": known.percent if known else None},
            after={"objective": percent},
            outcome=DONE,
            detail=f"{percent:g} % of watched time",
        )
