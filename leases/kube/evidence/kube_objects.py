"""Pods, Nodes and Events: the fields that tell something about a holder.

Source: k8s.io/api/core/v1/types.go.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from leases.domain.lease import AwareDatetime, ObjectMeta, OwnerReference

# Neither a Pod (etcd takes 1.5 MiB) nor a page of Events comes near it.
MAX_BODY = 4 * 1024 * 1024


class Owner(OwnerReference, frozen=True, gc=False, rename="camel"):
    controller: bool = False


class Metadata(ObjectMeta, frozen=True, gc=False, rename="camel"):
    owner_references: tuple[Owner, ...] | None = None


_NO_METADATA = Metadata()


class Condition(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: AwareDatetime | None = None


class Terminated(msgspec.Struct, frozen=True, rename="camel"):
    """ContainerStateTerminated."""

    exit_code: int | None = None
    reason: str = ""
    finished_at: AwareDatetime | None = None


class Running(msgspec.Struct, frozen=True, rename="camel"):
    """ContainerStateRunning."""

    started_at: AwareDatetime | None = None


class ContainerState(msgspec.Struct, frozen=True):
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(msgspec.Struct, frozen=True, rename="camel"):
    restart_count: int = 0
    state: ContainerState | None = None
    last_state: ContainerState | None = None


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    reason: str = ""
    conditions: tuple[Condition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None


class Pod(msgspec.Struct, frozen=True):
    metadata: Metadata = _NO_METADATA
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class NodeSpec(msgspec.Struct, frozen=True):
    unschedulable: bool = False


class NodeStatus(msgspec.Struct, frozen=True):
    conditions: tuple[Condition, ...] | None = None


class NodeObject(msgspec.Struct, frozen=True):
    metadata: Metadata = _NO_METADATA
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> Condition | None:
        """The condition Ready, if its kubelet ever reported one."""
        return next((one for one in self.status.conditions or () if one.type == "Ready"), None)


class _Source(msgspec.Struct, frozen=True):
    component: str = ""
    host: str = ""


class _Series(msgspec.Struct, frozen=True, rename="camel"):
    count: int = 0
    last_observed_time: AwareDatetime | None = None


class KubeEvent(msgspec.Struct, frozen=True, rename="camel"):
    """core/v1 Event. Which times are set depends on its writer."""

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

    @property
    def host(self) -> str:
        """The node of its writer, if that is a kubelet."""
        return self.source.host if self.source else ""
