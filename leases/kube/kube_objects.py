"""Pods, Nodes and Events: the fields that tell something about a holder, and how to read them.

Source: k8s.io/api/core/v1/types.go.

A Node object has 10 to 30 kB, mostly names of images; its table row and metadata have a tenth of
that.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from leases.domain import lease
from leases.kube.lease_client import PAGE, LeaseClient, segment
from leases.wire.status import Gone

# Neither a Pod (etcd takes 1.5 MiB) nor a page of Events comes near it.
MAX_BODY = 4 * 1024 * 1024


class Owner(lease.OwnerReference, frozen=True, gc=False, rename="camel"):
    controller: bool = False


class Metadata(lease.ObjectMeta, frozen=True, gc=False, rename="camel"):
    owner_references: tuple[Owner, ...] | None = None


_NO_METADATA = Metadata()


class Condition(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: lease.AwareDatetime | None = None


class Terminated(msgspec.Struct, frozen=True, rename="camel"):
    """ContainerStateTerminated."""

    exit_code: int | None = None
    reason: str = ""
    started_at: lease.AwareDatetime | None = None
    finished_at: lease.AwareDatetime | None = None


class Running(msgspec.Struct, frozen=True, rename="camel"):
    """ContainerStateRunning."""

    started_at: lease.AwareDatetime | None = None


class ContainerWaiting(msgspec.Struct, frozen=True):
    """ContainerStateWaiting."""

    reason: str = ""


class ContainerState(msgspec.Struct, frozen=True):
    waiting: ContainerWaiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    restart_count: int = 0
    state: ContainerState | None = None
    last_state: ContainerState | None = None

    @property
    def has_ended_before(self) -> bool:
        """Whether it ended and was started anew, or is to be: `kubectl logs --previous` has it."""
        return self.last_state is not None and self.last_state.terminated is not None


class Container(msgspec.Struct, frozen=True):
    name: str = ""


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    containers: tuple[Container, ...] | None = None


class PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    reason: str = ""
    conditions: tuple[Condition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None


class Pod(msgspec.Struct, frozen=True):
    metadata: Metadata = _NO_METADATA
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def ready(self) -> Condition | None:
        """The condition Ready, if its kubelet ever reported one."""
        return next((one for one in self.status.conditions or () if one.type == "Ready"), None)

    @property
    def usual_container(self) -> str:
        """The container that kubectl takes if nobody names one."""
        named = (self.metadata.annotations or {}).get("kubectl.kubernetes.io/default-container")
        return named or next((one.name for one in self.spec.containers or ()), "")


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
    last_observed_time: lease.AwareDatetime | None = None


class KubeEvent(msgspec.Struct, frozen=True, rename="camel"):
    """core/v1 Event. Which times are set depends on its writer."""

    reason: str = ""
    message: str = ""
    type: str = ""
    count: int | None = None
    first_timestamp: lease.AwareDatetime | None = None
    last_timestamp: lease.AwareDatetime | None = None
    event_time: lease.AwareDatetime | None = None
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


async def read_pod(client: LeaseClient, key: lease.ObjectName, *, within: float) -> Pod:
    """Return the Pod. Raises ApiError: NotFound if it is gone, and where no Pods are served."""
    path = f"/api/v1/namespaces/{segment(key.namespace)}/pods/{segment(key.name)}"
    return await client.read(path, Pod, "Pod", query=(), within=within, max_bytes=MAX_BODY)


async def read_node(client: LeaseClient, name: str, *, within: float) -> NodeObject:
    """Return the Node. Raises ApiError, as `read_pod` does."""
    path = f"/api/v1/nodes/{segment(name)}"
    return await client.read(path, NodeObject, "Node", query=(), within=within, max_bytes=MAX_BODY)


PATH = "/api/v1/namespaces/{}/events"
EVENTS_PAGE = 500
MAX_PAGES = 4  # the API lists by name, so the newest may come last
NODE_NAMESPACE = "default"  # of Events about objects without a namespace


class _ListMetadata(msgspec.Struct, frozen=True, rename={"next_page": "continue"}):
    next_page: str = ""


class _Events(msgspec.Struct, frozen=True):
    metadata: _ListMetadata = _ListMetadata()
    items: tuple[KubeEvent, ...] | None = None


async def newest_events(
    client: LeaseClient, kind: str, key: lease.ObjectName, *, count: int, within: float
) -> tuple[KubeEvent, ...]:
    """Return the `count` newest Events about the object, newest first. Raises ApiError.

    `within` is the limit of each request in seconds. A cluster without Events raises NotFound.
    """
    about = f"involvedObject.kind={kind},involvedObject.name={key.name}"
    path = PATH.format(segment(key.namespace or NODE_NAMESPACE))
    query = [("fieldSelector", about), ("limit", str(EVENTS_PAGE))]
    found: list[KubeEvent] = []
    token = ""
    for _ in range(MAX_PAGES):
        page = await client.read(
            path,
            _Events,
            "list of Events",
            query=[*query, ("continue", token)] if token else query,
            within=within,
            max_bytes=MAX_BODY,
        )
        found += page.items or ()
        token = page.metadata.next_page
        if not token:
            break
    found.sort(key=lambda one: one.at.timestamp() if one.at else 0.0, reverse=True)
    return tuple(found[:count])


NODES_PATH = "/api/v1/nodes"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
SECONDS = 60.0  # per page


class _Column(msgspec.Struct, frozen=True):
    name: str


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    labels: dict[str, str] | None = None


class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata


class _Row(msgspec.Struct, frozen=True, rename={"described": "object"}):
    cells: tuple[Any, ...]
    described: _Object


class _TableMetadata(msgspec.Struct, frozen=True, rename={"next_page": "continue"}):
    next_page: str = ""


class _Table(msgspec.Struct, frozen=True, rename="camel"):
    """meta.k8s.io/v1 Table; only the first page has the columns."""

    metadata: _TableMetadata
    column_definitions: tuple[_Column, ...] | None = None
    rows: tuple[_Row, ...] | None = None


async def list_nodes(client: LeaseClient, *, limit: int = PAGE) -> list[lease.Node]:
    """Return every Node. Raises ApiError. If the list expires meanwhile, it starts again once."""
    try:
        return await _pages(client, limit)
    except Gone:
        return await _pages(client, limit)


async def _pages(client: LeaseClient, limit: int) -> list[lease.Node]:
    found: list[lease.Node] = []
    columns: list[str] = []
    token = ""
    while True:
        query = [("limit", str(limit))] + ([("continue", token)] if token else [])
        page = await client.read(
            NODES_PATH, _Table, "table of Nodes", query=query, within=SECONDS, accept=TABLE
        )
        columns = [column.name for column in page.column_definitions or ()] or columns
        found += [_node(row, columns) for row in page.rows or ()]
        token = page.metadata.next_page
        if not token:
            return found


def _node(row: _Row, columns: Sequence[str]) -> lease.Node:
    labels = row.described.metadata.labels or {}
    status = row.cells[columns.index("Status")] if "Status" in columns else None
    return lease.Node(
        name=row.described.metadata.name,
        ready=None if not isinstance(status, str) else status.split(",")[0] == "Ready",
        zone=lease.first_label(labels, lease.ZONE_LABELS),
        pool=lease.first_label(labels, lease.POOL_LABELS),
    )
