"""Answer a casebook's questions from recorded watches: as a GET at that moment would have."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from leases.domain.cause.facts import EventFact, Fact, NodeFact, PodFact, Question, RefusedSource
from leases.domain.incident import Source
from leases.domain.lease import ObjectName
from tests.support.incidents.recording import Recording

Object = dict[str, Any]


class ObjectsAsOf:
    """The Pods, Nodes and Events of one recording at any moment; moments never go back."""

    def __init__(self, recording: Recording) -> None:
        lines = [
            (line.at, kind, line.body)
            for kind in ("pods", "nodes", "events")
            for line in recording.objects(kind)
        ]
        self._kinds = {kind for _, kind, _ in lines}
        self._lines = sorted(lines, key=lambda line: line[0])
        self._next = 0
        self._there: dict[str, dict[ObjectName, Object]] = {"pods": {}, "nodes": {}, "events": {}}

    def answer(self, question: Question, now: datetime) -> list[Fact]:
        self._advance(now)
        if question.source not in self._kinds:  # it was not recorded
            return [RefusedSource(question.source, now, "forbidden")]
        if question.source is Source.EVENTS:
            return list(self._events(question))
        if question.source is Source.NODES:
            node = self._there["nodes"].get(ObjectName("", question.key.name))
            return [_node(question.key.name, node, now)]
        pods = self._there["pods"]
        found = pods.get(question.key) or next(
            (pod for key, pod in pods.items() if key.name == question.key.name), None
        )
        return [_pod(question.key, found, now)]

    def _advance(self, now: datetime) -> None:
        while self._next < len(self._lines) and self._lines[self._next][0] <= now:
            _, kind, body = self._lines[self._next]
            self._next += 1
            event = json.loads(body)
            if event["type"] == "BOOKMARK":
                continue
            meta = event["object"]["metadata"]
            key = ObjectName(meta.get("namespace", ""), meta["name"])
            if event["type"] == "DELETED":
                self._there[kind].pop(key, None)
            else:
                self._there[kind][key] = event["object"]

    def _events(self, question: Question) -> list[EventFact]:
        wanted = [
            event
            for event in self._there["events"].values()
            if event["involvedObject"].get("kind") == question.kind
            and event["involvedObject"].get("name") == question.key.name
        ]
        here = [
            one
            for one in wanted
            if one["involvedObject"].get("namespace", "") == question.key.namespace
        ]
        return [_event(question.kind, one) for one in here or wanted]


def _pod(key: ObjectName, pod: Object | None, now: datetime) -> PodFact:
    if pod is None:
        return PodFact(key=key, read_at=now, gone=True)
    meta, status = pod["metadata"], pod["status"]
    owner: Object = next(iter(meta.get("ownerReferences", [])), {})
    containers = status.get("containerStatuses", [])
    ended: list[Object] = [
        state["terminated"]
        for one in containers
        for state in (one.get("state", {}), one.get("lastState", {}))
        if state.get("terminated")
    ]
    last: Object = max(ended, key=lambda one: one.get("finishedAt") or "", default={})
    started = [
        one["state"]["running"]["startedAt"]
        for one in containers
        if one.get("state", {}).get("running")
    ]
    waiting = (
        one["state"]["waiting"].get("reason", "")
        for one in containers
        if one.get("state", {}).get("waiting")
    )
    ready: Object = next(
        (one for one in status.get("conditions", []) if one["type"] == "Ready"), {}
    )
    labels = meta.get("labels", {})
    disrupted = (
        one.get("reason", "")
        for one in status.get("conditions", [])
        if one["type"] == "DisruptionTarget" and one["status"] == "True"
    )
    return PodFact(
        key=ObjectName(meta["namespace"], meta["name"]),
        read_at=now,
        uid=meta["uid"],
        node=pod["spec"].get("nodeName", ""),
        phase=status.get("phase", ""),
        reason=status.get("reason", ""),
        owner_kind=owner.get("kind", ""),
        owner_name=owner.get("name", ""),
        revision=labels.get("controller-revision-hash") or labels.get("pod-template-hash", ""),
        created_at=_moment(meta.get("creationTimestamp")),
        deleted_at=_moment(meta.get("deletionTimestamp")),
        restarts=sum(one.get("restartCount", 0) for one in containers),
        exit_reason=last.get("reason", ""),
        exit_code=last.get("exitCode"),
        exited_at=_moment(last.get("finishedAt")),
        ran_from=_moment(last.get("startedAt")),
        started_at=_moment(max(started, default=None)),
        waiting=next(waiting, ""),
        ready=ready.get("status", ""),
        ready_since=_moment(ready.get("lastTransitionTime")),
        disrupted=next(disrupted, ""),
    )


def _node(name: str, node: Object | None, now: datetime) -> NodeFact:
    if node is None:
        return NodeFact(name=name, read_at=now, gone=True)
    ready: Object = next(
        (one for one in node["status"].get("conditions", []) if one["type"] == "Ready"), {}
    )
    return NodeFact(
        name=name,
        read_at=now,
        ready=ready.get("status", ""),
        ready_since=_moment(ready.get("lastTransitionTime")),
        ready_reason=ready.get("reason", ""),
        cordoned=bool(node["spec"].get("unschedulable")),
    )


def _event(kind: str, event: Object) -> EventFact:
    about, meta = event["involvedObject"], event["metadata"]
    at = event.get("lastTimestamp") or event.get("eventTime") or meta["creationTimestamp"]
    return EventFact(
        kind=kind,
        key=ObjectName(about.get("namespace", ""), about["name"]),
        reason=event.get("reason", ""),
        message=event.get("message", ""),
        at=datetime.fromisoformat(at),
        component=event.get("source", {}).get("component") or event.get("reportingComponent", ""),
        host=event.get("source", {}).get("host", ""),
        times=event.get("count") or 1,
    )


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
