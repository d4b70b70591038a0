"""Convert changes and incidents between the domain's form and database rows."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from leases.domain.change import Change, ChangeType, UnreadableChange, identity, not_rebuilt
from leases.domain.incident import (
    Cause,
    Confidence,
    Evidence,
    Incident,
    Member,
    Source,
    Standing,
    Unlisted,
)
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.history.database import Row, from_stored, is_text, moment, to_stored
from leases.models import IncidentRecord
from leases.tables.incidents import LONG

FIELDS = (
    "id", "cluster", "namespace", "name", "uid", "kind", "change", "at", "observed_at", "holder",
    "previous_holder", "resource_version", "transitions", "missed", "inferred", "inferred_since",
    "gap_seconds", "renewed_at", "fields", "writer", "cause", "incident", "identity",
)  # fmt: skip
COLUMNS = ", ".join(FIELDS)
AT = FIELDS.index("at")
WRITTEN = (*FIELDS[1:-3], "identity")  # an incident writes its columns later
_KINDS = {kind.value: kind for kind in Kind}
_CAUSES = {cause.value: cause for cause in Cause}
_CHANGES = {change.value: change for change in ChangeType}


def to_values(change: Change, time: Callable[[datetime | None], Any]) -> tuple[Any, ...]:
    """Return the values of WRITTEN; `time` adapts a datetime for the database."""
    return (
        change.cluster,
        change.namespace,
        change.name,
        change.uid,
        change.kind.value,
        change.change.value,
        time(change.at),
        time(change.observed_at),
        to_stored(change.holder),
        to_stored(change.previous_holder),
        change.resource_version,
        change.transitions,
        change.missed,
        change.inferred,
        time(change.inferred_since),
        change.gap_seconds,
        time(change.renewed_at),
        " ".join(change.fields),
        to_stored(change.writer),
        identity(change),
    )


def stored_kind(word: str) -> Kind:
    """The kind of a row; a later version may have stored one that is not known here."""
    return _KINDS.get(word, Kind.UNKNOWN)


def stored_change(word: str) -> ChangeType | None:
    """The change of a row; None for a word that is not known here."""
    return _CHANGES.get(word)


def _to_change(row: Row) -> Change:
    (
        _, cluster, namespace, name, uid, kind, change, at, observed_at, holder, previous_holder,
        resource_version, transitions, missed, inferred, inferred_since, gap_seconds, renewed_at,
        fields, writer, cause, incident, stored_identity,
    ) = row  # fmt: skip
    _check_text(
        f"{namespace}{name}{uid}{holder}{previous_holder}{resource_version}{fields}{writer}"
    )
    return Change(
        cluster=cluster,
        namespace=namespace,
        name=name,
        uid=uid,
        kind=stored_kind(kind),
        change=_CHANGES[change],
        at=moment(at),
        observed_at=moment(observed_at),
        holder=from_stored(holder),
        previous_holder=from_stored(previous_holder),
        resource_version=resource_version,
        transitions=transitions,
        missed=missed,
        inferred=bool(inferred),
        inferred_since=None if inferred_since is None else moment(inferred_since),
        gap_seconds=gap_seconds,
        renewed_at=None if renewed_at is None else moment(renewed_at),
        fields=tuple(fields.split()) if fields else (),
        writer=from_stored(writer),
        cause=_CAUSES.get(cause),
        incident=incident,
        own_identity=not_rebuilt(stored_identity),
    )


def _check_text(texts: str) -> None:
    if not is_text(texts):
        raise ValueError(texts)


def to_change(row: Row) -> Change:
    """Convert a row of FIELDS; one that cannot be read does not take away the others."""
    try:
        return _to_change(row)
    except (KeyError, ValueError, TypeError, AttributeError):
        known = dict(zip(FIELDS, row, strict=True))
        return UnreadableChange(
            row=known["id"],
            cluster=known["cluster"],
            namespace=known["namespace"],
            name=known["name"],
            uid=known["uid"],
            kind=Kind.UNKNOWN,
            change=ChangeType.RECONFIGURED,  # it moves no holder
            at=moment(known["at"]),
            observed_at=moment(known["at"]),
            own_identity=f"unreadable {known['id']}",
        )


Story = tuple[tuple[str, Change], ...]  # each change after its identity, oldest first

_encode = msgspec.json.Encoder().encode
story_of = msgspec.json.Decoder(Story).decode  # of a row's column
_evidence = msgspec.json.Decoder(tuple[Evidence, ...]).decode
_sources = msgspec.json.Decoder(tuple[Source, ...]).decode
# Each with the names of its Lease, its identity, and its own cause if it has one.
_members = msgspec.json.Decoder(tuple[tuple[str, ...], ...]).decode
_unlisted = msgspec.json.Decoder(Unlisted).decode
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
    own = {member: (cause.value,) for member, cause in incident.own_causes}
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
        "unheld_since": time(incident.unheld_since),
        "changes": incident.change_count,
        "writer": to_stored(incident.writer),
        "standing": incident.standing.value,
        "shown": incident.shown,
        "part_of": incident.part_of or "",
        "leases": as_text([str(key) for key in incident.leases]),
        "hosts": as_text(incident.hosts),
        "holders": as_text([*holders]),
        "evidence": as_text(incident.evidence),
        "without": as_text(incident.without),
        "members": as_text(
            [(*_names(one.lease), one.identity, *own.get(one, ())) for one in members]
        ),
        "unlisted": "" if incident.unlisted is None else as_text(incident.unlisted),
        "story": as_text(story),
    }


def to_incident(row: IncidentRecord, *, members: bool = False) -> Incident:
    """Convert a row; with its members only if asked, which may be many."""
    _check_text(
        f"{row.sentence}{row.leases}{row.hosts}{row.holders}{row.writer}{row.evidence}{row.without}"
    )
    named = {
        Member(ObjectName(namespace, name), identity): own
        for namespace, name, identity, *own in (_members(row.members) if members else ())
    }
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
        unheld_since=row.unheld_since,
        evidence=_evidence(row.evidence),
        without=_sources(row.without),
        members=tuple(named),
        own_causes=tuple((member, Cause(own[0])) for member, own in named.items() if own),
        unlisted=_unlisted(row.unlisted) if row.unlisted else None,
        standing=Standing(row.standing),
        settled=row.settled,
        part_of=row.part_of or None,
    )


def readable_incident(row: IncidentRecord, *, members: bool = False) -> Incident:
    """As `to_incident`; a row that cannot be read says so instead of taking away the others."""
    try:
        return to_incident(row, members=members)
    except (ValueError, TypeError):  # of them msgspec's
        return Incident(
            id=row.incident,
            cluster=row.cluster,
            cause=Cause.UNKNOWN,
            confidence=Confidence.POSSIBLE,
            sentence=f"Incident {row.incident} is unreadable.",
            began=row.began,
            ended=row.ended or row.began,
            leases=(),
            settled=True,
        )


def _names(key: ObjectName) -> tuple[str, str]:
    return key.namespace, key.name


def _key(name: str) -> ObjectName:
    namespace, _, rest = name.partition("/")
    return ObjectName(namespace, rest)
