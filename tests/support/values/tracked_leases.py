"""Leases as the tracker would have them, made by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from leases.domain.kind import Kind
from leases.domain.lease import Lease, LeaseSpec, ObjectMeta
from leases.domain.phase import EMPTY, Phase, with_sample
from leases.tracking.tracked_lease import Lasting, Tracked

NOW = datetime(2026, 11, 20, 12, 4, 23, tzinfo=UTC)


def tracked(
    name: str = "scheduler",
    *,
    namespace: str = "kube-system",
    holder: str | None = "cp-1",
    phase: Phase = Phase.HELD,
    kind: Kind = Kind.ELECTION,
    age: float = 1.0,
    held: float = 3600.0,
    duration: int | None = 15,
    now: datetime = NOW,
    **more: Any,
) -> Tracked:
    """`age` is seconds since the last renewal, `held` since the term began."""
    cadence = more.pop("cadence_seconds", 2.0)
    seen = now - timedelta(seconds=age)
    since = now - timedelta(seconds=held)
    ran_out = seen + timedelta(seconds=duration or 0)
    lease = Lease(
        ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"uid-{name}",
            resource_version="7",
            creation_timestamp=since,
        ),
        LeaseSpec(
            holder_identity=holder,
            lease_duration_seconds=duration,
            acquire_time=since,
            renew_time=seen if duration else None,
            lease_transitions=more.pop("transitions", 3),
        ),
    )
    known: dict[str, Any] = {
        "kind_reason": "made up",
        "phase_since": ran_out if phase is Phase.EXPIRED else seen,
        "intervals": EMPTY if cadence is None else with_sample(EMPTY, cadence),
        "renewals_seen": 9,
        "held_since": since if holder else None,
        "named": True,
    }
    first = Tracked(
        Lasting(
            key=lease.key, lease=lease, kind=kind, kind_reason="", phase=phase, phase_since=seen
        ),
        lease.spec.renew_time,
        seen,
        estimated=False,
    )
    return first.replace(**(known | more))
