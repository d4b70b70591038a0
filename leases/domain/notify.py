"""Which incidents are messages, for whom, when, and what the messages say."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase

import msgspec

from leases.domain.change import Change, ChangeType
from leases.domain.figures import LONG_GAP_SECONDS
from leases.domain.incident import Cause, Confidence, Incident, Standing
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.steady_clock import in_utc


class Sort(StrEnum):
    WEBHOOK = "webhook"
    SLACK = "slack"
    ALERTMANAGER = "alertmanager"
    EMAIL = "email"
    PAGERDUTY = "pagerduty"
    OPSGENIE = "opsgenie"
    TEAMS = "teams"


class Security(StrEnum):
    """How the connection to a mail server is encrypted."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """`url` and `secret` are of HTTP; the rest is of e-mail."""

    url: str = ""
    # Signs a webhook; the bearer token of Alertmanager, the key of PagerDuty or Opsgenie.
    secret: str = ""
    host: str = ""
    port: int = 587
    security: Security = Security.STARTTLS
    username: str = ""
    password: str = ""
    sender: str = ""
    to: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "Target([hidden])"


class Gravity(StrEnum):
    """As the label `severity` of Prometheus alerts."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


_PLANNED = frozenset({
    Cause.GRACEFUL_STOP, Cause.ROLLOUT, Cause.BY_HAND, Cause.DELETED, Cause.DRAIN,
    Cause.SCALED_DOWN, Cause.PREFERRED_HOLDER, Cause.RESTART_IN_PLACE,
})  # fmt: skip
_GRAVE = frozenset({Cause.NODE_DOWN, Cause.API_OUTAGE, Cause.PARTITION})


def gravity(incident: Incident) -> Gravity:
    gap = incident.worst_gap_seconds
    if incident.cause in _GRAVE or (gap is not None and gap >= LONG_GAP_SECONDS):
        return Gravity.CRITICAL
    return Gravity.INFO if incident.cause in _PLANNED else Gravity.WARNING


MAX_NAMED = 20  # Leases, and hosts, that a message names


class Stage(StrEnum):
    """What a message says of its incident."""

    OPENED = "opened"
    WORSENED = "worsened"
    OVER = "over"
    TEST = "test"


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """The field names are the contract of the webhook (docs/notifications.md)."""

    id: str  # the same at each attempt
    stage: Stage
    cluster: str
    incident: str
    cause: Cause
    confidence: Confidence
    severity: Gravity
    sentence: str
    began: datetime
    ended: datetime | None
    leases: tuple[str, ...]  # namespace/name, the first MAX_NAMED
    leases_total: int
    hosts: tuple[str, ...]
    hosts_total: int
    worst_gap_seconds: float | None
    part_of: str | None = None  # the incident that this one became a part of
    # Of Alertmanager: they identify the alert, so they stay as they were at the first message.
    labels: dict[str, str] = {}
    url: str = ""


def message_of(
    incident: Incident, stage: Stage, *, receiver: int, step: int, last: Message | None
) -> Message:
    """Make a message. Its id follows from its place: every replica makes the same one."""
    severity = gravity(incident)
    labels = {"alertname": "LeaseboardIncident", "cluster": incident.cluster}
    labels |= {"incident": incident.id, "cause": incident.cause.value, "severity": severity.value}
    namespaces = {lease.namespace for lease in incident.leases}
    if len(namespaces) == 1:
        labels["namespace"] = namespaces.pop()
    return Message(
        id=message_id(receiver, incident.cluster, incident.id, step),
        stage=stage,
        cluster=incident.cluster,
        incident=incident.id,
        cause=incident.cause,
        confidence=incident.confidence,
        severity=severity,
        sentence=incident.sentence,
        began=incident.began,
        ended=incident.ended,
        leases=tuple(map(str, incident.leases[:MAX_NAMED])),
        leases_total=incident.lease_count,
        hosts=incident.hosts[:MAX_NAMED],
        hosts_total=len(incident.hosts),
        worst_gap_seconds=incident.worst_gap_seconds,
        part_of=incident.part_of,
        labels=labels if last is None else last.labels,
    )


def message_id(receiver: int, cluster: str, incident: str, step: int) -> str:
    place = f"{receiver}\n{cluster}\n{incident}\n{step}"
    return hashlib.sha256(place.encode()).hexdigest()[:32]


_VACATED = frozenset({ChangeType.RELEASED, ChangeType.DELETED})


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """An empty field chooses all. A Lease is a pattern such as `kube-system/*`, or a bare name."""

    stages: tuple[Stage, ...] = ()
    causes: tuple[Cause, ...] = ()
    phases: tuple[Phase, ...] = ()
    kinds: tuple[Kind, ...] = ()
    clusters: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    leases: tuple[str, ...] = ()
    severities: tuple[Gravity, ...] = ()
    unplanned: bool = False  # only those that were, or that left a Lease vacant for too long


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What a choice looks at: an incident, and what its changes say."""

    cluster: str
    cause: Cause
    leases: tuple[ObjectName, ...]
    kinds: frozenset[Kind] = frozenset()
    phases: frozenset[Phase] = frozenset()
    standing: Standing = Standing.UNPLANNED
    severity: Gravity = Gravity.WARNING


def chooses(choice: Choice, subject: Subject) -> bool:
    """Whether the receiver wants this incident, at whatever stage."""
    if subject.standing is Standing.REMARK:
        return False
    return (
        (not choice.unplanned or subject.standing is not Standing.PLANNED)
        and (not choice.causes or subject.cause in choice.causes)
        and (not choice.severities or subject.severity in choice.severities)
        and (not choice.clusters or subject.cluster in choice.clusters)
        and (not choice.kinds or not subject.kinds.isdisjoint(choice.kinds))
        and (not choice.phases or not subject.phases.isdisjoint(choice.phases))
        and (
            not (choice.namespaces or choice.leases)
            or any(_is_chosen(choice, lease) for lease in subject.leases)
        )
    )


def _is_chosen(choice: Choice, lease: ObjectName) -> bool:
    if choice.namespaces and lease.namespace not in choice.namespaces:
        return False
    return not choice.leases or any(
        fnmatchcase(str(lease) if "/" in pattern else lease.name, pattern)
        for pattern in choice.leases
    )


def chosen_of(
    choice: Choice, leases: tuple[ObjectName, ...], changes: Iterable[Change]
) -> tuple[ObjectName, ...]:
    """The Leases of an incident for which the receiver is told of it."""
    kinds = {ObjectName(one.namespace, one.name): one.kind for one in changes}
    found = (one for one in leases if _is_chosen(choice, one))
    if choice.kinds:
        found = (one for one in found if kinds.get(one, choice.kinds[0]) in choice.kinds)
    return tuple(found) or leases


def phases_of(changes: Iterable[Change]) -> frozenset[Phase]:
    """Return the phases that these changes led to."""
    return frozenset(map(_phase_after, changes))


def _phase_after(change: Change) -> Phase:
    if change.change is ChangeType.EXPIRED:
        return Phase.EXPIRED
    vacated = change.change in _VACATED or change.holder is None
    return Phase.VACANT if vacated else Phase.HELD


A_LOSS = 2  # changes: the holder is lost, and another comes
MORE_LEASES = 3  # at least so many more than it said, and twice as many, is worse
_ORDER = (Gravity.INFO, Gravity.WARNING, Gravity.CRITICAL)


def next_stage(incident: Incident, last: Message | None) -> Stage | None:
    """The stage of the next message after the last one; None: there is no news."""
    over = incident.ended is not None or incident.part_of is not None
    if last is None:
        return Stage.OVER if over else Stage.OPENED
    if last.stage is Stage.OVER:
        return None if over else Stage.OPENED  # it goes on again
    if over:
        return Stage.OVER
    worse = _ORDER.index(gravity(incident)) > _ORDER.index(last.severity)
    number = incident.lease_count
    more = number >= max(2 * last.leases_total, last.leases_total + MORE_LEASES)
    return Stage.WORSENED if worse or more else None


def may_go_on(incident: Incident) -> bool:
    """Whether it is over for now, but perhaps not for good: nobody renewed yet what was written,
    a deleted Lease may be made again, or one that was lost more than once may be lost again.
    """
    if incident.settled or incident.ended is None:
        return False
    if incident.cause is Cause.BY_HAND and incident.worst_gap_seconds is None:
        return True
    again = len(incident.leases) == 1 and len(incident.members) > A_LOSS
    return again or incident.cause is Cause.DELETED


class Quiet(msgspec.Struct, frozen=True, kw_only=True):
    """Incidents of these Leases alone send nothing from `since` to `until`. "" is all."""

    cluster: str = ""
    namespace: str = ""
    name: str = ""
    since: datetime
    until: datetime | None  # None: until somebody ends it

    def covers(self, cluster: str, lease: ObjectName) -> bool:
        return (
            self.cluster in ("", cluster)
            and self.namespace in ("", lease.namespace)
            and self.name in ("", lease.name)
        )


def is_quiet(
    times: Sequence[Quiet], cluster: str, leases: Iterable[ObjectName], now: datetime
) -> bool:
    """Whether each Lease is muted or in a maintenance window now. No Lease is not quiet."""
    active = [one for one in times if one.since <= now and (one.until is None or now < one.until)]
    among = tuple(leases)
    return bool(among and active) and all(
        any(one.covers(cluster, lease) for one in active) for lease in among
    )


MAX_TITLE = 200  # characters
_WORDS = {
    Stage.OPENED: "New", Stage.WORSENED: "Worse", Stage.OVER: "Over", Stage.TEST: "Test",
}  # fmt: skip


_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]+")


def one_line(text: str) -> str:
    """The text without what begins a line or turns its direction: a Lease's writer chose it."""
    return " ".join(_CONTROL.sub(" ", text).split())


def title(message: Message) -> str:
    """One line: `New: production: sentence`."""
    line = one_line(f"{_WORDS[message.stage]}: {message.cluster}: {message.sentence}")
    return line if len(line) <= MAX_TITLE else f"{line[: MAX_TITLE - 1]}…"


def title_of_all(messages: Sequence[Message]) -> str:
    """The subject of one message, or of several that are sent together."""
    if len(messages) == 1:
        return title(messages[0])
    clusters = ", ".join(dict.fromkeys(one.cluster for one in messages))
    return f"{len(messages)} incidents: {clusters}"[:MAX_TITLE]


def facts(message: Message) -> list[tuple[str, str]]:
    """What a message says besides its title, as names with values."""
    found = [
        ("Cause", f"{message.cause.value.replace('_', ' ')} ({message.confidence.value})"),
        ("Severity", message.severity.value),
        ("Began", _moment(message.began)),
    ]
    if message.ended is not None:
        length = (message.ended - message.began).total_seconds()
        found.append(("Ended", f"{_moment(message.ended)}, after {_seconds(length)}"))
    if message.part_of:
        found.append(("Belongs to", f"incident {message.part_of}"))
    if message.worst_gap_seconds:
        found.append(("Longest without a holder", _seconds(message.worst_gap_seconds)))
    found.append(("Leases", _listed(message.leases, message.leases_total)))
    if message.hosts_total:
        found.append(("Hosts", _listed(message.hosts, message.hosts_total)))
    if message.url:
        found.append(("Page", message.url))
    return [(name, one_line(value)) for name, value in found]


def text(message: Message) -> str:
    """The whole message as lines."""
    return "\n".join([title(message), *(f"{name}: {value}" for name, value in facts(message))])


def text_of_all(messages: Sequence[Message]) -> str:
    return "\n\n".join(map(text, messages))


def _moment(moment: datetime) -> str:
    return f"{in_utc(moment):%Y-%m-%d %H:%M:%S} UTC"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:,.0f} s"


def _listed(names: Sequence[str], total: int) -> str:
    more = f" and {total - len(names):,} more" if total > len(names) else ""
    return ", ".join(names) + more if names else f"{total:,}"
