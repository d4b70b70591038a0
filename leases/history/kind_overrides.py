"""The kinds that admins set for Leases."""

from __future__ import annotations

from leases.domain.kind import Kind, Verdict
from leases.domain.lease import ObjectName
from leases.models import KindOverride


def load(cluster: str) -> dict[ObjectName, Verdict]:
    """Return kind and reason of every Lease with an override."""
    return {
        ObjectName(row.namespace, row.name): (Kind(row.kind), f"set by {row.username}")
        for row in KindOverride.objects.filter(cluster=cluster)
    }
