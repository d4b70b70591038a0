"""What admins say the Leases of a cluster are for."""

from __future__ import annotations

from leases.domain.kind import Kind, Verdict
from leases.domain.lease import ObjectName
from leases.models import KindOverride


def load(cluster: str) -> dict[ObjectName, Verdict]:
    """Kind and reason of every Lease that an admin judged."""
    return {
        ObjectName(row.namespace, row.name): (Kind(row.kind), f"set by {row.username}")
        for row in KindOverride.objects.filter(cluster=cluster)
    }
