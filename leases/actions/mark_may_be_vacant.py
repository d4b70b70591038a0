"""Say that a Lease may be vacant, or take that back."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from leases.actions.audit import DONE
from leases.domain.lease import ObjectName
from leases.models import Edit, VacancyMark

ACTION = "lease.may_be_vacant"


def mark_may_be_vacant(
    *, user: User, cluster: str, key: ObjectName, may_be_vacant: bool, at: datetime
) -> None:
    """Store or end the mark with its audit row, without asking the cluster. Twice changes nothing.

    An ended mark stays, so that the pages of the past know it.
    """
    place: dict[str, Any] = {"cluster": cluster, "namespace": key.namespace, "name": key.name}
    by = user.get_username()
    with transaction.atomic():
        if may_be_vacant:
            _, changed = VacancyMark.objects.get_or_create(
                **place, ended_at=None, defaults={"username": by, "at": at}
            )
        else:
            changed = bool(VacancyMark.objects.filter(**place, ended_at=None).update(ended_at=at))
        if not changed:
            return
        Edit.objects.create(
            **place,
            at=at,
            closed_at=at,
            user=user,
            username=by,
            action=ACTION,
            before={"may_be_vacant": not may_be_vacant},
            after={"may_be_vacant": may_be_vacant},
            outcome=DONE,
            detail="may be vacant" if may_be_vacant else "must have a holder again",
        )
