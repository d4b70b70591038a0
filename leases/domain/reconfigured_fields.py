"""The configuration of a Lease: all fields but its holder and its renewals."""

from __future__ import annotations

from leases.domain.known_writers import HEARTBEAT_ANNOTATIONS
from leases.domain.lease import Lease


def reconfigured_fields(before: Lease, after: Lease) -> tuple[str, ...]:
    """Return the fields that differ, by their Kubernetes names."""
    old, new = before.spec, after.spec
    differ = {
        "leaseDurationSeconds": old.lease_duration_seconds != new.lease_duration_seconds,
        "strategy": (old.strategy or None) != (new.strategy or None),
        "preferredHolder": (old.preferred_holder or None) != (new.preferred_holder or None),
        "labels": (before.metadata.labels or {}) != (after.metadata.labels or {}),
        "annotations": _lasting(before.metadata.annotations)
        != _lasting(after.metadata.annotations),
    }
    return tuple(name for name, differs in differ.items() if differs)


def _lasting(annotations: dict[str, str] | None) -> dict[str, str]:
    """Return the annotations without those that only show a sign of life."""
    return {k: v for k, v in (annotations or {}).items() if k not in HEARTBEAT_ANNOTATIONS}
