"""A message: an incident as one receiver learns of it. Its words are in `texts`."""

from __future__ import annotations

import hashlib
from datetime import datetime
from enum import StrEnum

import msgspec

from leases.domain.cause.incident import Cause, Confidence, Incident
from leases.domain.notify.gravity import Gravity, gravity

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
        leases_total=len(incident.leases),
        hosts=incident.hosts[:MAX_NAMED],
        hosts_total=len(incident.hosts),
        worst_gap_seconds=incident.worst_gap_seconds,
        part_of=incident.part_of,
        labels=labels if last is None else last.labels,
    )


def message_id(receiver: int, cluster: str, incident: str, step: int) -> str:
    place = f"{receiver}\n{cluster}\n{incident}\n{step}"
    return hashlib.sha256(place.encode()).hexdigest()[:32]
