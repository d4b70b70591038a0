"""Leases and moments for the tests of the rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from leases.domain.lease import Lease, LeaseSpec, ObjectMeta, OwnerReference

NOON = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)


def after(seconds: float) -> datetime:
    """So many seconds after noon."""
    return NOON + timedelta(seconds=seconds)


def lease(
    holder: str | None = "a",
    *,
    renewed: float | None = 0,
    acquired: float | None = 0,
    duration: int | None = 15,
    transitions: int | None = 0,
    strategy: str | None = None,
    preferred: str | None = None,
    version: int = 1,
    uid: str = "uid-1",
    name: str = "controller",
    namespace: str = "default",
    created: float = 0,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    owner: tuple[str, str] | None = None,
) -> Lease:
    """A Lease in client-go's shape; moments in seconds after noon."""
    return Lease(
        ObjectMeta(
            name=name,
            namespace=namespace,
            uid=uid,
            resource_version=str(version),
            creation_timestamp=after(created),
            labels=labels,
            annotations=annotations,
            owner_references=(OwnerReference(*owner),) if owner else None,
        ),
        LeaseSpec(
            holder_identity=holder,
            lease_duration_seconds=duration,
            acquire_time=None if acquired is None else after(acquired),
            renew_time=None if renewed is None else after(renewed),
            lease_transitions=transitions,
            strategy=strategy,
            preferred_holder=preferred,
        ),
    )
