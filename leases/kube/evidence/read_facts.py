"""Say what a Pod, a Node or an Event tells, in the terms of `leases.domain.cause`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from leases.domain.cause.facts import EventFact, NodeFact, PodFact
from leases.domain.lease import ObjectName
from leases.kube.evidence.kube_objects import (
    ContainerStatus,
    KubeEvent,
    NodeObject,
    Pod,
    Terminated,
)

REVISION_LABELS = ("controller-revision-hash", "pod-template-hash")
MAX_TEXT = 1024  # characters of a text that is kept with an incident; an Event's message has these
_NEVER = datetime.min.replace(tzinfo=UTC)


def pod_fact(pod: Pod, key: ObjectName, read_at: datetime) -> PodFact:
    """Say what the Pod of this name was at `read_at`."""
    meta, containers = pod.metadata, pod.status.container_statuses or ()
    labels = meta.labels or {}
    owner = next((one for one in meta.owner_references or () if one.controller), None)
    ended = max(_ends(containers), key=lambda end: end.finished_at or _NEVER, default=None)
    return PodFact(
        key=key,
        read_at=read_at,
        uid=meta.uid,
        node=_clip(pod.spec.node_name),
        phase=_clip(pod.status.phase),
        reason=_clip(pod.status.reason),
        owner_kind="" if owner is None else _clip(owner.kind),
        owner_name="" if owner is None else _clip(owner.name),
        revision=_clip(next((labels[name] for name in REVISION_LABELS if name in labels), "")),
        created_at=meta.creation_timestamp,
        deleted_at=meta.deletion_timestamp,
        restarts=sum(one.restart_count for one in containers),
        exit_reason="" if ended is None else _clip(ended.reason),
        exit_code=None if ended is None else ended.exit_code,
        exited_at=None if ended is None else ended.finished_at,
        started_at=max(_starts(containers), default=None),
        disrupted=_disruption(pod),
    )


def node_fact(node: NodeObject, name: str, read_at: datetime) -> NodeFact:
    """Say what the Node of this name was at `read_at`."""
    ready = node.ready
    return NodeFact(
        name=name,
        read_at=read_at,
        ready="" if ready is None else _clip(ready.status),
        ready_since=None if ready is None else ready.last_transition_time,
        ready_reason="" if ready is None else _clip(ready.reason),
        cordoned=node.spec.unschedulable,
    )


def event_fact(event: KubeEvent, kind: str, key: ObjectName) -> EventFact | None:
    """Say what the Event about this object tells; None if it has no time."""
    if event.at is None:
        return None
    return EventFact(
        kind=kind,
        key=key,
        reason=_clip(event.reason),
        message=_clip(event.message),
        at=event.at,
        component=_clip(event.component),
        host=_clip(event.host),
        times=event.times,
    )


def _ends(containers: tuple[ContainerStatus, ...]) -> Iterator[Terminated]:
    for one in containers:
        for state in (one.state, one.last_state):
            if state is not None and state.terminated is not None:
                yield state.terminated


def _starts(containers: tuple[ContainerStatus, ...]) -> Iterator[datetime]:
    for one in containers:
        running = None if one.state is None else one.state.running
        if running is not None and running.started_at is not None:
            yield running.started_at


def _disruption(pod: Pod) -> str:
    conditions = pod.status.conditions or ()
    found = (c for c in conditions if c.type == "DisruptionTarget" and c.status == "True")
    return next((_clip(one.reason) for one in found), "")


def _clip(text: str) -> str:
    return text[:MAX_TEXT]
