"""Edits by hand: what is wanted of a Lease becomes a merge patch like the writes of client-go.

Source: k8s.io/client-go/tools/leaderelection/leaderelection.go, `release` and `tryAcquireOrRenew`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from leases.domain.lease import Lease

RELEASED_SECONDS = 1


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """Who is to hold the Lease (None: nobody) and how long a renewal lasts (seconds; None:
    untimed)."""

    holder: str | None
    duration_seconds: int | None


def term_of(lease: Lease) -> str:
    """One holder's unbroken possession as one word: it stays the same over renewals and changes
    with the term."""
    acquired = lease.spec.acquire_time
    parts = (
        lease.uid,
        lease.holder or "",
        acquired.isoformat() if acquired else "",
        str(lease.spec.lease_transitions or 0),
    )
    return "|".join(parts)


def changes_nothing(current: Lease, wanted: Edit) -> bool:
    """Whether the Lease already says what is wanted."""
    return (current.holder, current.spec.lease_duration_seconds) == (
        wanted.holder,
        wanted.duration_seconds,
    )


def merge_patch(current: Lease, wanted: Edit, *, now: datetime) -> dict[str, Any]:
    """The patch that makes the Lease say what is wanted, guarded by its resourceVersion.

    A new holder begins a term now and counts as a transition. Nobody is written as "" and never
    as null,
    with a duration of 1 s unless another was asked for: what client-go writes on release.
    """
    spec: dict[str, Any] = {}
    if wanted.duration_seconds != current.spec.lease_duration_seconds:
        spec["leaseDurationSeconds"] = wanted.duration_seconds
    if wanted.holder != current.holder:
        spec["holderIdentity"] = wanted.holder or ""
        spec["acquireTime"] = spec["renewTime"] = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        if wanted.holder is None:
            spec.setdefault("leaseDurationSeconds", RELEASED_SECONDS)
        else:
            spec["leaseTransitions"] = (current.spec.lease_transitions or 0) + 1
    return {"metadata": {"resourceVersion": current.resource_version}, "spec": spec}
