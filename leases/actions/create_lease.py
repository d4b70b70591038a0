"""Create a Lease: first a dry run, then the write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from leases.actions.audit import Intent, answered, audited, sending
from leases.domain.lease import Lease, ObjectName
from leases.kube.lease_client import LeaseClient
from leases.wire.microtime import format_microtime

ACTION = "lease.create"


class NewLease(msgspec.Struct, frozen=True, kw_only=True):
    """What a person typed. No holder means vacant, no duration means untimed."""

    key: ObjectName
    holder: str = ""
    duration_seconds: int | None = None
    strategy: str = ""
    preferred_holder: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


def body_of(new: NewLease, *, now: datetime) -> dict[str, Any]:
    """Return the object to send.

    As client-go creates it (leaderelection.go, tryAcquireOrRenew): a holder acquires and renews
    now, and transitions start at 0. Nobody is written as "", never as null: a null holder beside a
    live LeaseCandidate has crashed a kube-apiserver.
    """
    spec: dict[str, Any] = {"holderIdentity": new.holder}
    if new.duration_seconds is not None:
        spec["leaseDurationSeconds"] = new.duration_seconds
    if new.holder:
        spec |= {"acquireTime": format_microtime(now), "renewTime": format_microtime(now)}
        spec["leaseTransitions"] = 0
    optional = {"strategy": new.strategy, "preferredHolder": new.preferred_holder}
    spec |= {name: value for name, value in optional.items() if value}
    metadata: dict[str, Any] = {"namespace": new.key.namespace, "name": new.key.name}
    maps = {"labels": dict(new.labels), "annotations": dict(new.annotations)}
    metadata |= {name: values for name, values in maps.items() if values}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": spec,
    }


class Preview(msgspec.Struct, frozen=True):
    """The object that the server would store, its warnings, and the fields that it would drop."""

    after: dict[str, Any]
    warnings: tuple[str, ...]
    dropped: tuple[str, ...]


async def preview(client: LeaseClient, new: NewLease, *, now: datetime) -> Preview:
    """Ask the server with dryRun=All. Raises ApiError with its causes."""
    wanted = body_of(new, now=now)
    warnings: list[str] = []
    after = await client.raw_create(wanted, dry_run=True, warnings=warnings)
    kept = after.get("spec") or {}
    dropped = tuple(name for name in wanted["spec"] if name not in kept)
    return Preview(after, tuple(warnings), dropped)


async def create_lease(
    client: LeaseClient, new: NewLease, *, intent: Intent, clock: Callable[[], datetime]
) -> Lease:
    """Create the Lease with its audit row. Raises ApiError; AlreadyExists if there is one."""
    body = body_of(new, now=clock())
    wanted = {"metadata": body["metadata"], **body["spec"]}
    since = await client.newest_version()
    async with audited(intent, before=None, wanted=wanted, clock=clock) as row:
        await sending(row, "create", body, current=None, at=clock(), since=since)
        made = await client.create(body)
        answered(row, made)
    return made
