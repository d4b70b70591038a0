"""Convert an incident between the domain's form and the database row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from leases.domain.cause.incident import (
    Cause,
    Confidence,
    Evidence,
    Incident,
    Member,
    Source,
)
from leases.domain.changes.change import Change
from leases.domain.lease import ObjectName
from leases.history.database_text import from_stored, to_stored
from leases.models import IncidentRecord
from leases.tables.incidents import LONG

Story = tuple[tuple[str, Change], ...]  # each change after its identity, oldest first

_encode = msgspec.json.Encoder().encode
story_of = msgspec.json.Decoder(Story).decode  # of a row's column
_evidence = msgspec.json.Decoder(tuple[Evidence, ...]).decode
_sources = msgspec.json.Decoder(tuple[Source, ...]).decode
_members = msgspec.json.Decoder(tuple[tuple[str, str, str], ...]).decode
_texts = msgspec.json.Decoder(tuple[str, ...]).decode


def as_text(value: Any) -> str:
    """Encode as JSON, which spells NUL as \\u0000."""
    return _encode(value).decode()


def incident_values(
    incident: Incident,
    story: Story,
    updated_at: datetime,
    time: Callable[[datetime | None], Any] = lambda moment: moment,
) -> dict[str, Any]:
    """Return the columns of a row; `time` adapts a datetime for a raw statement."""
    holders = dict.fromkeys(
        holder for _, one in story for holder in (one.previous_holder, one.holder) if holder
    )
    over = incident.settled and incident.ended is not None
    members = () if over else incident.members
    return {
        "cluster": incident.cluster,
        "incident": incident.id,
        "cause": incident.cause.value,
        "confidence": incident.confidence.value,
        "sentence": to_stored(incident.sentence),
        "began": time(incident.began),
        "ended": time(incident.ended),
        "lasted_long": incident.ended is not None and incident.ended - incident.began > LONG,
        "updated_at": time(updated_at),
        "settled": incident.settled,
        "worst_gap_seconds": incident.worst_gap_seconds,
        "changes": len(incident.members),
        "writer": to_stored(incident.writer),
        "part_of": incident.part_of or "",
        "leases": as_text([str(key) for key in incident.leases]),
        "hosts": as_text(incident.hosts),
        "holders": as_text([*holders]),
        "evidence": as_text(incident.evidence),
        "without": as_text(incident.without),
        "members": as_text([(*_names(one.lease), one.identity) for one in members]),
        "story": as_text(story),
    }


def to_incident(row: IncidentRecord, *, members: bool = False) -> Incident:
    """Convert a row; with its members only if asked, which may be many."""
    return Incident(
        id=row.incident,
        cluster=row.cluster,
        cause=Cause(row.cause),
        confidence=Confidence(row.confidence),
        sentence=from_stored(row.sentence),
        began=row.began,
        ended=row.ended,
        leases=tuple(_key(name) for name in _texts(row.leases)),
        hosts=_texts(row.hosts),
        writer=from_stored(row.writer),
        worst_gap_seconds=row.worst_gap_seconds,
        evidence=_evidence(row.evidence),
        without=_sources(row.without),
        members=tuple(
            Member(ObjectName(namespace, name), identity)
            for namespace, name, identity in _members(row.members)
        )
        if members
        else (),
        settled=row.settled,
        part_of=row.part_of or None,
    )


def _names(key: ObjectName) -> tuple[str, str]:
    return key.namespace, key.name


def _key(name: str) -> ObjectName:
    namespace, _, rest = name.partition("/")
    return ObjectName(namespace, rest)
