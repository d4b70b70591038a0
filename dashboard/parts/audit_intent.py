"""What the audit trail keeps of the person who asks for a write."""

from __future__ import annotations

from typing import cast

from django.contrib.auth.models import User
from django.http import HttpRequest

from dashboard import clock
from dashboard.access.sign_in.client_address import full_address
from dashboard.parts.kept.watched_cluster import WatchedCluster
from leases.actions.audit import Intent
from leases.domain.lease import ObjectName


def intent_of(
    request: HttpRequest,
    cluster: WatchedCluster,
    key: ObjectName,
    *,
    action: str,
    reason: str,
    once: str = "",
    batch: str = "",
) -> Intent:
    """Make the intent of the signed-in person. Reads `request.user`: not on the event loop."""
    user = cast("User", request.user)
    return Intent(
        user=user,
        cluster=cluster.name,
        key=key,
        action=action,
        reason=reason,
        at=clock.now(),
        once=once,
        batch=batch,
        address=full_address(request.META.get("REMOTE_ADDR")),
        as_user=cluster.acting_user(user),
    )
