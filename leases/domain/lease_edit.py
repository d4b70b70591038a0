"""Edits by hand: the fields that a person touched become a merge patch as client-go writes it.

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
    """The fields that a person touched; an UNSET field stays as the cluster has it.

    `holder` None means nobody; `duration_seconds` None means untimed.
    """

    holder: str | UnsetType | None = UNSET
    duration_seconds: int | UnsetType | None = UNSET


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What the Lease says after an edit."""

    holder: str | None
    duration_seconds: int | None


def term_of(lease: Lease) -> str:
    """Identify one holder's unbroken possession: a digest that renewals leave alone and that
    changes with the term. A digest is short, whatever the holder looks like.
    """
    spec = lease.spec
    parts = (lease.uid, lease.holder, spec.acquire_time, spec.lease_transitions or 0)
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def result_of(current: Lease, wanted: LeaseEdit) -> Result:
    """Apply the touched fields to the present Lease.

    A release whose duration nobody touched leaves 1 s, as client-go does.
    """
    holder = current.holder if wanted.holder is UNSET else wanted.holder
    duration = wanted.duration_seconds
    if duration is UNSET:
        released = holder is None and current.holder is not None
        duration = RELEASED_SECONDS if released else current.spec.lease_duration_seconds
    return Result(holder=holder, duration_seconds=duration)


def changes_nothing(current: Lease, wanted: LeaseEdit) -> bool:
    """Whether the Lease already says what is wanted."""
    after = result_of(current, wanted)
    present = (current.holder, current.spec.lease_duration_seconds)
    return present == (after.holder, after.duration_seconds)


def merge_patch(current: Lease, wanted: LeaseEdit, *, now: datetime) -> dict[str, Any]:
    """The patch that makes the Lease say what is wanted, guarded by its resourceVersion.

    It names only what the edit changes. A new holder begins a term now and counts as a
    transition. Nobody is written as "" and never as null, as client-go does on release.
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
            spec["leaseTransitions"] = min(counted, MAX_INT32)  # the API takes no more
    return {"metadata": {"resourceVersion": current.resource_version}, "spec": spec}
