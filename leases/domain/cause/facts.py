"""What a cluster said of Pods, Nodes and Events around a change. Each fact has its moment.

Source: k8s.io/api/core/v1/types.go (Pod, ContainerStatus, Node, Event).
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from leases.domain.cause.incident import Source
from leases.domain.lease import ObjectName


class PodFact(msgspec.Struct, frozen=True, kw_only=True):
    """One Pod as it was at `read_at`. `gone`: the cluster had no Pod of that name then."""

    key: ObjectName
    read_at: datetime
    gone: bool = False
    uid: str = ""
    node: str = ""
    phase: str = ""
    reason: str = ""  # of the status, such as Evicted
    owner_kind: str = ""  # of the controller: ReplicaSet, StatefulSet, DaemonSet, Node
    owner_name: str = ""
    revision: str = ""  # label controller-revision-hash or pod-template-hash
    created_at: datetime | None = None
    deleted_at: datetime | None = None  # deletionTimestamp
    restarts: int = 0  # of all containers together
    exit_reason: str = ""  # of the container that ended last, such as OOMKilled, Error, Completed
    exit_code: int | None = None
    exited_at: datetime | None = None
    started_at: datetime | None = None  # of the container that started last
    disrupted: str = ""  # reason of the condition DisruptionTarget, such as EvictionByEvictionAPI


class NodeFact(msgspec.Struct, frozen=True, kw_only=True):
    """One Node as it was at `read_at`."""

    name: str
    read_at: datetime
    gone: bool = False
    ready: str = ""  # True, False or Unknown
    ready_since: datetime | None = None  # lastTransitionTime of the condition Ready
    ready_reason: str = ""
    cordoned: bool = False


class EventFact(msgspec.Struct, frozen=True, kw_only=True):
    """One Event. `kind` and `key` name the object it is about; a Node's namespace is empty."""

    kind: str
    key: ObjectName
    reason: str
    message: str
    at: datetime
    component: str = ""
    host: str = ""  # the node of the kubelet that wrote it
    times: int = 1


ASK_REFUSED_AGAIN = timedelta(minutes=10)


class RefusedSource(msgspec.Struct, frozen=True):
    """The cluster does not serve a source, or forbids it: an answer is not to be expected."""

    source: Source
    at: datetime
    detail: str  # the API's sentence
    namespace: str = ""  # where: roles may differ by namespace; a Node's is empty


Fact = PodFact | NodeFact | EventFact | RefusedSource


class Question(msgspec.Struct, frozen=True):
    """What to look up: one object, and the Events about it if `source` is EVENTS.

    A Lease often lies in another namespace than its holder's Pod. So if there is no Pod in
    `key.namespace`, look for its name in all namespaces. The fact has the namespace where the Pod
    was found, or that of the question if it is gone.
    """

    source: Source
    key: ObjectName  # a Node's namespace is empty
    kind: str = ""  # of EVENTS: Pod, Node, Lease
