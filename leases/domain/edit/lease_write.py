"""What a form writes to a Lease: single fields, a release, a hand-over.

Sources: k8s.io/client-go/tools/leaderelection/leaderelection.go, `release` and `tryAcquireOrRenew`;
resourcelock/leaselock.go, `LeaderElectionRecordToLeaseSpec`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Protocol

import msgspec

from leases.domain.lease import MAX_INT32, Lease

RELEASED_SECONDS = 1
NOW = "now"  # instead of a time: the moment of writing
TIMES = ("acquireTime", "renewTime")


class LeaseWrite(Protocol):
    """A change of one Lease. `action` is its name in the audit trail."""

    @property
    def action(self) -> str: ...

    def patch(self, current: Lease, *, now: datetime) -> dict[str, Any]:
        """Return the merge patch for the current Lease, without metadata.resourceVersion."""


class FieldEdit(msgspec.Struct, frozen=True, kw_only=True):
    """The edited fields by their API names; None removes one, and no holder is written as "".

    A time is RFC 3339 text or NOW.
    """

    action: ClassVar[str] = "lease.edit"

    spec: Mapping[str, str | int | None] = {}
    labels: Mapping[str, str | None] = {}
    annotations: Mapping[str, str | None] = {}

    def patch(self, current: Lease, *, now: datetime) -> dict[str, Any]:
        spec: dict[str, Any] = dict(self.spec)
        for name in TIMES:
            if spec.get(name) == NOW:
                spec[name] = stamp(now)
        if "holderIdentity" in spec:
            spec["holderIdentity"] = spec["holderIdentity"] or ""
        metadata: dict[str, Any] = {}
        for part, wanted, known in (
            ("labels", self.labels, current.metadata.labels or {}),
            ("annotations", self.annotations, current.metadata.annotations or {}),
        ):
            sent = {
                key: value for key, value in wanted.items() if key in known or value is not None
            }
            metadata |= {part: sent} if sent else {}
        return ({"metadata": metadata} if metadata else {}) | ({"spec": spec} if spec else {})


class Release(msgspec.Struct, frozen=True):
    """Clear the holder as client-go does: an empty holder that lasted 1 s, both times now."""

    action: ClassVar[str] = "lease.release"

    def patch(self, current: Lease, *, now: datetime) -> dict[str, Any]:
        spec = {
            "holderIdentity": "",
            "leaseDurationSeconds": RELEASED_SECONDS,
            "acquireTime": stamp(now),
            "renewTime": stamp(now),
        }
        return {"spec": spec}


class HandOver(msgspec.Struct, frozen=True):
    """Name another holder.

    Of a coordinated Lease only preferredHolder is set: the API server ends the term itself.
    """

    action: ClassVar[str] = "lease.hand_over"

    to: str

    def patch(self, current: Lease, *, now: datetime) -> dict[str, Any]:
        if is_coordinated(current):
            return {"spec": {"preferredHolder": self.to}}
        counted = (current.spec.lease_transitions or 0) + 1
        spec = {
            "holderIdentity": self.to,
            "acquireTime": stamp(now),
            "renewTime": stamp(now),
            "leaseTransitions": min(counted, MAX_INT32),  # the API accepts no more
        }
        return {"spec": spec}


class YamlEdit(msgspec.Struct, frozen=True):
    """A patch between the YAML that was shown and the YAML that was sent.

    A removed holder is written as "", never null: null crashes a kube-apiserver 1.36 that has live
    candidates for the Lease.
    """

    action: ClassVar[str] = "lease.yaml"

    changes: Mapping[str, Any]

    def patch(self, current: Lease, *, now: datetime) -> dict[str, Any]:
        patch = dict(self.changes)
        spec = patch.get("spec")
        if isinstance(spec, dict) and "holderIdentity" in spec:
            patch["spec"] = spec | {"holderIdentity": spec["holderIdentity"] or ""}
        return patch


def is_coordinated(lease: Lease) -> bool:
    """Whether the API server elects the holder (coordinated leader election)."""
    return bool(lease.spec.strategy)


def stamp(moment: datetime) -> str:
    """Format a moment in UTC as a MicroTime."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
