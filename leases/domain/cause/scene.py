"""One episode with everything that is known around it, and the verdict on it."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from leases.domain.cause.clue import Contender, Episode
from leases.domain.cause.facts import (
    EARLIEST,
    Break,
    EventFact,
    Knowledge,
    NodeFact,
    PodFact,
    node_of_events,
)
from leases.domain.change import ChangeType
from leases.domain.figures import Span, watched_seconds
from leases.domain.incident import Cause, Confidence, Evidence, Source
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName

BLUR = timedelta(seconds=2)  # Kubernetes writes whole seconds, and clocks differ
STATIC_NAMESPACE = "kube-system"
LOST_TRACK = ("Unknown", "ContainerStatusUnknown")  # the kubelet saw no end of the container
LONG_AGO = timedelta(minutes=3)
_EXACT = 1e-6  # rounding error of a tenth
GRACE_PERIOD = timedelta(seconds=35)  # a deletionTimestamp is its end


class Scene:
    """What is known of the loser's Pod, its node and its owner. Built anew for each judgement.

    A StatefulSet gives each of its Pods the name of the one before. `pods` are the readings of the
    one that held the Lease, and of those that came after it; `live` those in which it is there;
    `own` those of the one that held it.
    """

    def __init__(
        self, episode: Episode, known: Knowledge, now: datetime, until: datetime | None = None
    ) -> None:
        """`until`: nobody could renew the Lease before: what ended its holder may lie after the
        loss, up to then.
        """
        self.episode, self.known, self.now = episode, known, now
        self.ends_by = max(episode.at, until or episode.at) + BLUR
        self.lease = f"{episode.key.namespace}/{episode.key.name}"
        self.pods, born = pods_of(episode, known)
        self.pod_name = self.pods[0].key.name if self.pods else self._host()
        self.live = [one for one in self.pods if not one.gone]
        made_by = episode.lost_at + BLUR
        self.own = [one for one in self.live if (one.created_at or made_by) <= made_by]
        self.until = episode.at + BLUR * 5  # what stopped it later did not lose it
        since = episode.lost_at - LONG_AGO
        events = known.events("Pod", self.pod_name)
        self.pod_events = [e for e in events if e.at >= since and e.at > born]
        self.node = node_of(episode, known)
        self.nodes: list[NodeFact] = known.nodes(self.node) if self.node else []
        self.deployment = self._deployment()
        self.owner_events: list[EventFact] = [
            event
            for kind, name in self.deployment
            for event in known.events(kind, name)
            if event.at >= since
        ]

    def names(self) -> set[str]:
        """Return the names of the objects whose facts may change the verdict."""
        names = {key.name for key in pod_keys(self.episode)} | {self.pod_name, self.node}
        names |= {name for _, name in self.deployment}
        for one in (self.episode.loser, self.episode.winner):
            if one is not None:
                names.add(one.host)
        names |= {key.name for key in set_neighbours(self)}
        return names - {""}

    def ended(self) -> PodFact | None:
        """Return a reading that shows a container's end between the last renewal and the loss."""
        episode = self.episode
        since, until = episode.lost_at - BLUR, self.ends_by
        for one in self.own:
            if one.exited_at is not None and since <= one.exited_at <= until:
                return one
        for one in self.own:  # its container ended, was started again, and ended again
            if one.ran_from is not None and episode.lost_at < one.ran_from <= until:
                return one
        return None

    def ended_later(self) -> PodFact | None:
        """Return a reading that shows a container's end after the loss."""
        for one in self.own:
            if one.exited_at is not None and one.exited_at > self.ends_by:
                return one
        return None

    def stopped(self) -> bool:
        """Whether the Pod was deleted about then: it is terminating, gone, or was asked to stop."""
        deleted = any(one.deleted_at is not None for one in self.own)
        terminating = (deleted and min(self.asked_at()) <= self.until) or self._made_anew()
        last = self.episode.last.change
        back = last.at if last.change is ChangeType.RECOVERED else None  # it was there until then
        gone = any(one.gone and (back is None or one.read_at <= back) for one in self.pods)
        gone = gone and (self._certainly_pod() or bool(self.live))
        asked = self.stopped_at() is not None
        return terminating or (gone and not self.replaced_pod()) or (asked and self._gone_since())

    def _made_anew(self) -> bool:
        """Whether its StatefulSet made a Pod of this name after the loss: the old one was deleted.

        It does so too for a Pod that failed, which released nothing.
        """
        if self.episode.opening is not ChangeType.RELEASED:
            return False
        since = self.episode.at - BLUR
        return any(
            one.owner_kind == "StatefulSet"
            and one.created_at is not None
            and one.created_at >= since
            for one in self.live
        )

    def asked_at(self) -> list[datetime]:
        """Return when its Pod was asked to stop: an Event knows better than a deletionTimestamp."""
        asked = [e.at for e in self.pod_events if _asks_to_stop(e)]
        ends = [one.deleted_at for one in self.own if one.deleted_at is not None]
        return asked or [at for end in ends for at in (end - GRACE_PERIOD, end)]

    def stopped_at(self) -> datetime | None:
        """Return when the kubelet was asked to stop the Pod, if an Event says so."""
        asked = (e.at for e in reversed(self.pod_events) if _asks_to_stop(e) and e.at <= self.until)
        return next(asked, None)

    def died(self) -> bool | None:
        """Whether the process died with its node; None: unknown.

        After a reboot the kubelet finds its containers dead and cannot say how they ended. One that
        ended by itself, while nothing was heard of the node, shows that the node lived.
        """
        since = self.episode.lost_at - BLUR
        if any(
            e.reason == "Rebooted" and e.at >= since for e in self.known.events("Node", self.node)
        ):
            return True
        if not self.live:
            return None
        ends = [one for one in self.own if one.exited_at is not None and one.exited_at >= since]
        return any(one.exit_reason in LOST_TRACK for one in ends) or self.replaced_pod()

    def replaced_pod(self) -> bool:
        """Whether another Pod of the same name is there now."""
        return len({one.uid for one in self.live}) > 1

    def event(self, *reasons: str) -> EventFact | None:
        """Return the newest Event about the Pod with one of these reasons."""
        return next((e for e in reversed(self.pod_events) if e.reason in reasons), None)

    def node_lost(self) -> NodeFact | None:
        """Return a reading of the node that shows it gone or not ready."""
        for one in self.nodes:
            if one.gone and self.live:
                return one
            lost = one.ready in ("Unknown", "False")
            since = one.ready_since
            if lost and (since is None or since >= self.episode.lost_at - BLUR):
                return one
        return None

    def disrupted(self) -> bool:
        """Whether the Pod was to be evicted, whoever asked for it."""
        return any(one.disrupted for one in self.own)

    def cordoned(self) -> bool:
        return any(one.cordoned for one in self.nodes)

    def _gone_since(self) -> bool:
        return not self.live or self._certainly_pod()

    def _certainly_pod(self) -> bool:
        loser = self.episode.loser
        return bool(self.live) or (loser is not None and loser.is_pod)

    def _host(self) -> str:
        loser = self.episode.loser
        return "" if loser is None else loser.host

    def _deployment(self) -> list[tuple[str, str]]:
        """The objects that own the Pod: kind and name."""
        owner = next((one for one in self.live if one.owner_name), None)
        loser = self.episode.loser
        if owner is not None and owner.owner_kind == "ReplicaSet":
            return [("ReplicaSet", owner.owner_name), ("Deployment", _stem(owner.owner_name))]
        if owner is not None and owner.owner_kind in ("StatefulSet", "DaemonSet"):
            return [(owner.owner_kind, owner.owner_name)]
        if owner is None and loser is not None and loser.template:
            name = f"{loser.workload}-{loser.template}"
            return [("ReplicaSet", name), ("Deployment", loser.workload)]
        return []


def _asks_to_stop(event: EventFact) -> bool:
    """Whether the kubelet stops the Pod, and not only a container that it starts again.

    Source: k8s.io/kubernetes pkg/kubelet/kuberuntime/kuberuntime_manager.go, "will be restarted".
    """
    return event.reason == "Killing" and "will be restarted" not in event.message


def pods_of(episode: Episode, known: Knowledge) -> tuple[list[PodFact], datetime]:
    """Return the readings of the loser's Pod, oldest first, and when it was made, as far as known.

    One that was gone, or made anew under its name, before the last renewal did not lose the Lease.
    """
    readings = _readings(pod_keys(episode), known)
    dates = [one.created_at or (one.read_at if one.gone else EARLIEST) for one in readings]
    by = lived_at(episode)
    born = max((at for at in dates if at <= by), default=EARLIEST)
    found = [
        one
        for one in readings
        if (one.read_at > by if one.gone else (one.created_at or one.read_at) >= born)
    ]
    return found, born


def lived_at(episode: Episode) -> datetime:
    """Return a time at which the loser's Pod was there: it renewed later."""
    return episode.lost_at - BLUR


def _readings(keys: list[ObjectName], known: Knowledge) -> list[PodFact]:
    """Return those of the first of these Pods that was there."""
    found: list[PodFact] = []
    for key in keys:
        readings = known.pods(key.name, key.namespace)
        if any(not one.gone for one in readings):
            return readings
        found = found or readings
    return found


def pod_keys(episode: Episode) -> list[ObjectName]:
    """Return the names that the loser's Pod may have."""
    loser = episode.loser
    if loser is None or episode.kind is Kind.HEARTBEAT:
        return []
    return pod_keys_of(episode.key, loser)


def pod_keys_of(lease: ObjectName, holder: Contender) -> list[ObjectName]:
    """Return the names that a holder's Pod may have: its host's, or a static Pod's."""
    keys = [ObjectName(lease.namespace, holder.host)]
    if not holder.is_pod and lease.namespace == STATIC_NAMESPACE:
        keys.append(ObjectName(lease.namespace, f"{lease.name}-{holder.host}"))
    return keys


def set_neighbours(scene: Scene) -> list[ObjectName]:
    """Return the names of the Pods before and after the loser's in its StatefulSet."""
    loser = scene.episode.loser
    mine = next((one for one in scene.live if one.owner_kind == "StatefulSet"), None)
    if loser is None or mine is None or not loser.ordinal.isdecimal():
        return []
    number = int(loser.ordinal)
    return [
        ObjectName(mine.key.namespace, f"{loser.workload}-{other}")
        for other in (number - 1, number + 1)
        if other >= 0
    ]


def node_of(episode: Episode, known: Knowledge) -> str:
    """Return the node where the loser ran, if anything names it."""
    if episode.kind is Kind.HEARTBEAT:
        return episode.key.name
    if episode.loser is None:
        return ""
    pods, _ = pods_of(episode, known)
    return _placed(pods, episode.loser, known)


def node_of_holder(lease: ObjectName, holder: Contender, known: Knowledge) -> str:
    """Return the node where a holder runs, if anything names it: a newer Pod of the same name is
    the holder's.
    """
    pods = _readings(pod_keys_of(lease, holder), known)
    if pods and pods[-1].gone:
        return ""
    return _placed(pods[::-1], holder, known)


def _placed(pods: list[PodFact], holder: Contender, known: Knowledge) -> str:
    """Return the node that the first of these readings names; else what names it otherwise."""
    if named := next((one.node for one in pods if one.node), ""):
        return named
    if any(not one.gone for one in known.nodes(holder.host)):
        return holder.host
    return node_of_events(known.events("Pod", holder.host))


def _stem(replica_set: str) -> str:
    return replica_set.rpartition("-")[0]


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """A cause with its sentence. The evidence is the sentence itself and what else was seen."""

    cause: Cause
    confidence: Confidence
    sentence: str
    evidence: tuple[Evidence, ...] = ()
    writer: str | None = None


def certain(cause: Cause, sentence: str, *evidence: Evidence) -> Verdict:
    return Verdict(cause, Confidence.CERTAIN, sentence, evidence)


def likely(cause: Cause, sentence: str, *evidence: Evidence) -> Verdict:
    return Verdict(cause, Confidence.LIKELY, sentence, evidence)


def possible(cause: Cause, sentence: str, *evidence: Evidence) -> Verdict:
    return Verdict(cause, Confidence.POSSIBLE, sentence, evidence)


def seen(source: Source, sentence: str) -> Evidence:
    return Evidence(sentence, source)


def clock(moment: datetime) -> str:
    """A time of day in UTC: 03:12:31."""
    return f"{moment:%H:%M:%S}"


def span(seconds: float) -> str:
    """A length of time, rounded down as on pages: 0.4 s, 12 s, 3 min 20 s."""
    seconds = max(0.0, seconds) + _EXACT
    if seconds < 10:
        return f"{int(10 * seconds) / 10:.1f} s"
    if seconds < 60:
        return f"{int(seconds)} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 Lease`, `2 Leases`, `1,000 Leases`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def some(names: list[str], most: int = 3) -> str:
    """A list of names in words, cut where it gets long."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


LONGEST = timedelta(minutes=30)  # of one incident

K = TypeVar("K")


class Judged(msgspec.Struct, frozen=True, gc=False):
    """An episode with its verdict, and the node where its loser ran."""

    episode: Episode
    verdict: Verdict
    at: datetime  # of its first change
    lost_at: datetime  # when the loser was last seen alive
    number: str  # the id of the incident that it begins
    serial: int  # another one for each judgement
    changed_at: datetime  # our clock at its last change
    node: str = ""
    stopped_at: datetime | None = None  # when its Pod was asked to stop
    died: bool | None = None  # its process died with its node; None: unknown
    gap: Break | None = None  # the time that nobody watched in which it was lost
    stays_away: bool = False  # judged as one that did not come back after an outage


def surest(verdict: Verdict) -> int:
    """A key for sorting, the surest first."""
    return list(Confidence).index(verdict.confidence)


class Group(msgspec.Struct, frozen=True):
    """The episodes of one incident, oldest first."""

    episodes: tuple[Judged, ...]
    verdict: Verdict
    hosts: tuple[str, ...] = ()


def chains(
    some_of: list[Judged],
    gap: timedelta,
    end: Callable[[Judged], datetime],
    longest: timedelta = LONGEST,
    few: int = 0,
    blind: Sequence[Span] = (),
) -> list[list[Judged]]:
    """Cut a list where more than `gap` passes between one episode and the next, and after the
    `longest` time, unless it has no more than a `few` episodes: no incident grows for ever.

    The times of `blind` do not count.
    """
    found: list[list[Judged]] = []
    until: datetime | None = None
    losses = 0
    for one in some_of:
        apart = 0.0 if until is None else watched_seconds([(until, one.lost_at)], blind)
        late = apart > gap.total_seconds()
        full = losses >= few and found and one.lost_at - found[-1][0].lost_at > longest
        if until is None or late or full:
            found.append([])
            until, losses = end(one), 0
        found[-1].append(one)
        losses += one.episode.losses
        until = max(until, end(one))
    return found


def several(by: dict[K, list[Judged]], least: int = 2) -> Iterator[list[Judged]]:
    """Yield those lists alone that can be a group: most episodes stand alone."""
    return (there for there in by.values() if len(there) >= least)
