"""What admins say of Leases and clusters: a kind, that it may be vacant, an objective."""

from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from leases.actions.audit import DONE
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.models import Edit, KindOverride, ReliabilityObjective, VacancyMark

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


OVERRULE_KIND = "lease.overrule_kind"


def override_kind(
    *, user: User, cluster: str, key: ObjectName, kind: Kind | None, before: Kind, at: datetime
) -> None:
    """Store the override with its audit row, without asking the cluster. None: the rules decide."""
    place: dict[str, Any] = {"cluster": cluster, "namespace": key.namespace, "name": key.name}
    by = user.get_username()
    said = "left to the rules again" if kind is None else f"is {kind.value}, was {before.value}"
    with transaction.atomic():
        if kind is None:
            KindOverride.objects.filter(**place).delete()
        else:
            KindOverride.objects.update_or_create(
                **place, defaults={"kind": kind.value, "username": by, "at": at}
            )
        Edit.objects.create(
            **place,
            at=at,
            closed_at=at,
            user=user,
            username=by,
            action=OVERRULE_KIND,
            before={"kind": before.value},
            after={"kind": kind.value if kind else None},
            outcome=DONE,
            detail=said,
        )


SET_OBJECTIVE = "reliability.objective"


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
            action=SET_OBJECTIVE,
            before={"objective": known.percent if known else None},
            after={"objective": percent},
            outcome=DONE,
            detail=f"{percent:g} % of watched time",
        )
