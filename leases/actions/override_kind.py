"""Set the kind of a Lease, or let the rules decide again."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from leases.actions.audit import DONE
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.models import Edit, KindOverride

ACTION = "lease.overrule_kind"


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
            action=ACTION,
            before={"kind": before.value},
            after={"kind": kind.value if kind else None},
            outcome=DONE,
            detail=said,
        )
