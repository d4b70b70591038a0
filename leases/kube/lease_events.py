"""Read the Kubernetes Events of a Lease, if we may. client-go writes one when a holder starts or
stops.

Source: k8s.io/api/core/v1/types.go (Event).
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from leases.domain.lease import AwareDatetime, ObjectName
from leases.kube.lease_client import LeaseClient, segment

MAX_EVENTS = 500  # per request: the API lists them by name, not by time
SHOWN = 20


class _Source(msgspec.Struct, frozen=True):
    component: str = ""


class _Series(msgspec.Struct, frozen=True, rename="camel"):
    count: int = 0
    last_observed_time: AwareDatetime | None = None


class KubeEvent(msgspec.Struct, frozen=True, rename="camel"):
    """core/v1 Event: the fields that a page shows. Which times are set depends on its writer."""

    reason: str = ""
    message: str = ""
    type: str = ""
    count: int | None = None
    first_timestamp: AwareDatetime | None = None
    last_timestamp: AwareDatetime | None = None
    event_time: AwareDatetime | None = None
    reporting_component: str = ""
    source: _Source | None = None
    series: _Series | None = None

    @property
    def at(self) -> datetime | None:
        """When it last happened."""
        seen = self.series.last_observed_time if self.series else None
        return seen or self.last_timestamp or self.event_time or self.first_timestamp

    @property
    def times(self) -> int:
        return (self.series.count if self.series else 0) or self.count or 1

    @property
    def component(self) -> str:
        """Who wrote it."""
        return self.reporting_component or (self.source.component if self.source else "")


class _Events(msgspec.Struct, frozen=True):
    items: tuple[KubeEvent, ...] | None = None


async def events_of(
    client: LeaseClient, lease: ObjectName, *, within: float
) -> tuple[KubeEvent, ...]:
    """Return the newest Events about a Lease of this name, newest first. Raises ApiError.

    `within` is the limit in seconds. A cluster without Events raises NotFound.
    """
    about = f"involvedObject.kind=Lease,involvedObject.name={lease.name}"
    found = await client.read(
        f"/api/v1/namespaces/{segment(lease.namespace)}/events",
        _Events,
        "list of Events",
        query=(("fieldSelector", about), ("limit", str(MAX_EVENTS))),
        within=within,
    )
    newest = sorted(
        found.items or (), key=lambda one: one.at.timestamp() if one.at else 0.0, reverse=True
    )
    return tuple(newest[:SHOWN])
