"""Where a holder runs, in words: its Pod and Node, the Pod's Events, and how to read its log."""

import shlex
from collections.abc import Iterator
from datetime import datetime

import msgspec
from django.conf import settings

from dashboard.config import Config
from dashboard.parts.formatting import age, utc, when
from leases.domain.cause.facts import NodeFact, PodFact, Question
from leases.kube.cluster_source import ClusterSource, SourceKind
from leases.kube.holder_pods import HolderPlace, Reading

LINES = 5  # of the Events that are shown
SECONDS = 3.0  # for all that is asked of one holder


class ClusterTime(msgspec.Struct, frozen=True):
    """A time of the cluster, with its age at the moment we asked."""

    text: str
    at: str
    ago: str


class EventLine(msgspec.Struct, frozen=True):
    moment: ClusterTime
    reason: str
    message: str
    component: str
    times: int


class PlaceView(msgspec.Struct, frozen=True, kw_only=True):
    """`facts`: label, text, the phase that colours it. `logs`: what it shows, the command.

    `notes` say what could not be read, and why.
    """

    at: str
    facts: tuple[tuple[str, str, str], ...]
    events: tuple[EventLine, ...]
    events_at: str
    logs: tuple[tuple[str, str], ...]
    no_logs: bool
    notes: tuple[str, ...]


def cluster_time(moment: datetime, now: datetime) -> ClusterTime:
    return ClusterTime(when(moment, now), utc(moment), age((now - moment).total_seconds()))


def place_view(place: HolderPlace, source: ClusterSource, now: datetime) -> PlaceView:
    pod = place.pod if place.pod is not None and not place.pod.gone else None
    read = place.pod or place.node
    return PlaceView(
        at=when(read.read_at if read is not None else now, now),
        facts=tuple(_facts(pod, place.node, now)),
        events=tuple(
            EventLine(cluster_time(one.at, now), one.reason, one.message, one.component, one.times)
            for one in place.events[:LINES]
        ),
        events_at="" if place.events_at is None or pod is None else when(place.events_at, now),
        logs=() if pod is None else tuple(_logs(pod, source)),
        no_logs=source.kind is SourceKind.EMBEDDED,
        notes=tuple(_notes(place, pod)),
    )


def pod_state(pod: PodFact, now: datetime) -> tuple[str, str]:
    """How a Pod stands, and the phase that colours it: `runs since 12:04:31`, held."""
    if pod.gone:
        return "is gone", "expired"
    if pod.deleted_at is not None:
        return f"is being deleted since {when(pod.deleted_at, now)}", "expired"
    if pod.waiting:
        return f"waits: {pod.waiting}", "expired"
    if pod.phase != "Running":
        reason = f" ({pod.reason})" if pod.reason else ""
        return f"is {pod.phase or 'of unknown phase'}{reason}", "late"
    since = f" since {when(pod.started_at, now)}" if pod.started_at is not None else ""
    if pod.ready not in ("", "True"):
        return f"runs{since}, but is not ready", "late"
    return f"runs{since}", "held"


def _facts(
    pod: PodFact | None, node: NodeFact | None, now: datetime
) -> Iterator[tuple[str, str, str]]:
    if pod is not None:
        said, phase = pod_state(pod, now)
        yield "Pod", f"{pod.key.namespace}/{pod.key.name}", ""
        yield "State", said, phase
        yield "Restarts", f"{pod.restarts:,}", ""
        if pod.exit_reason or pod.exited_at is not None:
            yield "Last end", _last_end(pod, now), ""
    if node is not None:
        said, phase = _node_state(node, now)
        yield "Node", f"{node.name}, {said}", phase
    elif pod is not None and pod.node:
        yield "Node", pod.node, ""


def _last_end(pod: PodFact, now: datetime) -> str:
    words = [pod.exit_reason or "ended"]
    if pod.exit_code is not None:
        words.append(f"exit code {pod.exit_code}")
    if pod.exited_at is not None:
        words.append(f"at {when(pod.exited_at, now)}")
        if pod.ran_from is not None:
            words.append(f"after {age((pod.exited_at - pod.ran_from).total_seconds())}")
    return ", ".join(words)


def _node_state(node: NodeFact, now: datetime) -> tuple[str, str]:
    word = "ready" if node.ready == "True" else "not ready"
    if node.ready != "True" and node.ready_since is not None:
        word = f"{word} since {when(node.ready_since, now)}"
    return f"{word}, cordoned" if node.cordoned else word, "" if node.ready == "True" else "expired"


def _logs(pod: PodFact, source: ClusterSource) -> Iterator[tuple[str, str]]:
    """The commands that show what it says, and what it said before it ended."""
    words = ["kubectl"]
    if source.kind is SourceKind.CONTEXT:
        words += ["--context", source.value]
    elif source.kind is SourceKind.EMBEDDED:
        config: Config = settings.LEASEBOARD
        words += ["--kubeconfig", str(config.data / "kubeconfig")]
    words += ["--namespace", pod.key.namespace, "logs", pod.key.name]
    words += ["--container", pod.container] if pod.container else []
    if pod.ran_before:
        yield "The log before its last end", shlex.join([*words, "--previous"])
    yield "The log", shlex.join([*words, "--tail", "100"])


def _notes(place: HolderPlace, pod: PodFact | None) -> Iterator[str]:
    yield from dict.fromkeys(_unread(*one) for one in place.unread)
    if place.pod is not None and pod is None:
        name, namespace = place.pod.key.name, place.pod.key.namespace
        if place.node is None:
            yield (
                f"There is no Pod {name} in {namespace}: the holder runs in another namespace, "
                "outside of the cluster, or no longer."
            )


def _unread(question: Question, reading: Reading | None) -> str:
    """Why something was not read, in one sentence."""
    where = f" in {question.key.namespace}" if question.key.namespace else ""
    what = f"{question.source.capitalize()}{where}"
    if reading is None:
        return f"{what} were not read: the cluster did not answer within {SECONDS:g} s."
    return f"{what} cannot be read: {reading.problem.rstrip('.')}."
