"""Where it ran: the node is down or being drained, or the Pod was evicted."""

from datetime import datetime

from leases.domain.cause.scene import Scene, Verdict, certain, clock, likely, possible, seen, span
from leases.domain.change import ChangeType
from leases.domain.incident import Cause, Evidence, Source
from leases.domain.kind import Kind

BY_EVICTION_API = "EvictionByEvictionAPI"
BY_TAINT = "DeletionByTaintManager"
TAINT_EVENT = "TaintManagerEviction"
# Reasons of the condition DisruptionTarget (k8s.io/api/core/v1/types.go) that end one Pod.
_EVICTED = {
    "PreemptionByScheduler": "preempted by the scheduler for a Pod of higher priority",
    "PreemptionByKubeScheduler": "preempted by the scheduler for a Pod of higher priority",
    "TerminationByKubelet": "evicted by the kubelet of its node",
    BY_TAINT: "evicted because of a taint of its node",
}
_EVENTS = {
    "Evicted": "evicted by the kubelet of its node",
    "Preempted": "preempted by the scheduler for a Pod of higher priority",
    "Preempting": "preempted by the kubelet of its node",
    TAINT_EVENT: "evicted because of a taint of its node",
}


def evicted(scene: Scene) -> Verdict | None:
    """The Pod was evicted or preempted."""
    pod = next((one for one in scene.own if one.disrupted in _EVICTED), None)
    if pod is not None and pod.disrupted == BY_TAINT and not _node_is_well(scene):
        pod = None
    pod = pod or next((one for one in scene.own if one.reason == "Evicted"), None)
    event = scene.event(*_EVENTS)
    if event is not None and event.reason == TAINT_EVENT and not _node_is_well(scene):
        event = None
    if pod is not None:
        how = _EVICTED.get(pod.disrupted, "evicted by the kubelet of its node")
        proof = pod.disrupted or pod.reason
        facts = [seen(Source.PODS, f"Pod {pod.key}: {proof}, on {pod.node or 'no node'}")]
    elif event is not None:
        how = _EVENTS[event.reason]
        facts = []
    else:
        return None
    if event is not None:
        event_text = f"Event {event.reason} at {clock(event.at)}: {event.message}"
        facts.append(seen(Source.EVENTS, event_text))
    return certain(Cause.EVICTED, f"{scene.pod_name}, which held {scene.lease}, was {how}", *facts)


def _node_is_well(scene: Scene) -> bool:
    """Whether a holder on it could still release, or its node was seen ready."""
    released = scene.episode.opening is ChangeType.RELEASED
    ready = any(one.ready == "True" for one in scene.nodes) and scene.node_lost() is None
    return released or ready


def drained(scene: Scene) -> Verdict | None:
    """The Pod was evicted through the API or deleted while its node was cordoned."""
    pod = next((one for one in scene.own if one.disrupted == BY_EVICTION_API), None)
    cordoned = scene.cordoned()
    if pod is None and not (cordoned and scene.stopped()):
        return None
    facts: list[Evidence] = []
    if pod is not None:
        facts.append(seen(Source.PODS, f"Pod {pod.key} was evicted through the eviction API"))
    sentence = f"{scene.pod_name}, which held {scene.lease}, was evicted"
    if not cordoned:
        # Deschedulers and autoscalers evict too; a node that is drained is cordoned first.
        # Where no node can be read, this may be part of a drain.
        conclude = likely if scene.nodes else possible
        return conclude(Cause.EVICTED, f"{sentence} through the API", *facts)
    facts.append(seen(Source.NODES, f"Node {scene.node} is cordoned"))
    sentence = f"{scene.node} was drained: {sentence} at {clock(scene.episode.at)}"
    return likely(Cause.DRAIN, sentence, *facts)


def node_down(scene: Scene) -> Verdict | None:
    """The node does not report any more."""
    episode = scene.episode
    if episode.opening not in (ChangeType.EXPIRED, ChangeType.TAKEN_OVER, ChangeType.REPLACED):
        return None
    lost = scene.node_lost()
    taint = scene.event(TAINT_EVENT)
    by_taint = next((one for one in scene.own if one.disrupted == BY_TAINT), None)
    if lost is None and by_taint is None and taint is None:
        return None
    at = clock(episode.lost_at)
    what = f"{scene.lease} ran out at {clock(episode.at)}"
    facts = []
    if lost is not None:
        state = "is gone" if lost.gone else f"Ready is {lost.ready} ({lost.ready_reason})"
        facts.append(seen(Source.NODES, f"Node {scene.node}: {state}"))
    if by_taint is not None:
        facts.append(seen(Source.PODS, f"Pod {by_taint.key} was deleted because of a taint"))
    if taint is not None:
        facts.append(seen(Source.EVENTS, f"Event {taint.reason}: {taint.message}"))
    node = scene.node or "the node"
    if episode.kind is Kind.HEARTBEAT:
        return likely(Cause.NODE_DOWN, f"{node}'s heartbeat stopped at {at}", *facts)
    return likely(Cause.NODE_DOWN, f"{node} went down after {at}: {what}", *facts)


def heartbeat(scene: Scene) -> Verdict | None:
    """A node's own Lease ran out."""
    episode = scene.episode
    if episode.kind is not Kind.HEARTBEAT or episode.opening is not ChangeType.EXPIRED:
        return None
    name, at = episode.key.name, clock(episode.lost_at)
    silent = (episode.last.change.at - episode.lost_at).total_seconds()
    if episode.happened(ChangeType.RECOVERED):
        sentence = f"{name}'s heartbeat stopped at {at} and came back {span(silent)} later"
        return possible(Cause.NODE_DOWN, sentence)
    sentence = f"{name}'s heartbeat stopped at {at}"
    fact = seen(Source.LEASES, f"{scene.lease} ran out at {clock(episode.at)}")
    lost = scene.node_lost()
    if lost is None:
        return likely(Cause.NODE_DOWN, sentence, fact)
    state = "is gone" if lost.gone else f"Ready is {lost.ready} since {_since(lost.ready_since)}"
    return likely(Cause.NODE_DOWN, sentence, fact, seen(Source.NODES, f"Node {name} {state}"))


def _since(moment: datetime | None) -> str:
    return "an unknown time" if moment is None else clock(moment)
