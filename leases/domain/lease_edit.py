"""Turn an edit by a person into a merge patch, written as client-go would write it.

Source: k8s.io/client-go/tools/leaderelection/leaderelection.go, `release` and `tryAcquireOrRenew`.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from leases.domain.lease import MAX_INT32, Lease

RELEASED_SECONDS = 1


class LeaseEdit(msgspec.Struct, frozen=True, kw_only=True):
    """The edited fields; an UNSET field keeps its value.

    `holder` None means nobody; `duration_seconds` None means untimed.
    """

    holder: str | UnsetType | None = UNSET
    duration_seconds: int | UnsetType | None = UNSET


class Result(msgspec.Struct, frozen=True):
    holder: str | None
    duration_seconds: int | None


def term_of(lease: Lease) -> str:
    """Return a digest that identifies the current term; renewals do not change it."""
    spec = lease.spec
    parts = (lease.uid, lease.holder, spec.acquire_time, spec.lease_transitions or 0)
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def result_of(current: Lease, wanted: LeaseEdit) -> Result:
    """Apply the edited fields.

    A release leaves a duration of 1 s unless the duration was edited, as client-go does.
    """
    holder = current.holder if wanted.holder is UNSET else wanted.holder
    duration = wanted.duration_seconds
    if duration is UNSET:
        released = holder is None and current.holder is not None
        duration = RELEASED_SECONDS if released else current.spec.lease_duration_seconds
    return Result(holder, duration)


def changes_nothing(current: Lease, wanted: LeaseEdit) -> bool:
    return result_of(current, wanted) == Result(current.holder, current.spec.lease_duration_seconds)


def merge_patch(current: Lease, wanted: LeaseEdit, *, now: datetime) -> dict[str, Any]:
    """Return the patch for an edit, guarded by resourceVersion.

    It contains only changed fields. A new holder starts a term now and counts as a transition.
    Nobody is written as "", not null, as client-go does on release.
    """
    after = result_of(current, wanted)
    spec: dict[str, Any] = {}
    if after.duration_seconds != current.spec.lease_duration_seconds:
        spec["leaseDurationSeconds"] = after.duration_seconds
    if after.holder != current.holder:
        spec["holderIdentity"] = after.holder or ""
        spec["acquireTime"] = spec["renewTime"] = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        if after.holder is not None:
            counted = (current.spec.lease_transitions or 0) + 1
            spec["leaseTransitions"] = min(counted, MAX_INT32)  # the API accepts no more
    return {"metadata": {"resourceVersion": current.resource_version}, "spec": spec}
