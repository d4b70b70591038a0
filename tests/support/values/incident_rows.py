"""Incidents whose changes are in history."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from leases.domain.change import Change, identity
from leases.domain.incident import Cause, Confidence, Evidence, Incident, Member, Source
from leases.domain.lease import ObjectName
from leases.history.insert_incidents import CauseMark, Reviewed, write_incidents, write_marks
from tests.support.values.changes import T0


def incident_with(*changes: Change, **given: Any) -> Incident:
    """A node that stopped at T0, over after 41 s, of these changes."""
    keys = dict.fromkeys(ObjectName(one.namespace, one.name) for one in changes)
    values: dict[str, Any] = {
        "id": "one",
        "cluster": "a",
        "cause": Cause.NODE_DOWN,
        "confidence": Confidence.LIKELY,
        "sentence": "worker-7's heartbeat stopped at 12:00:00",
        "began": T0,
        "ended": T0 + timedelta(seconds=41),
        "leases": tuple(keys),
        "hosts": ("worker-7",),
        "worst_gap_seconds": 16.5,
        "evidence": (Evidence("worker-7 renewed for the last time at 12:00:05", Source.NODES),),
        "without": (Source.EVENTS,),
        "members": tuple(map(member_of, changes)),
        "settled": True,
    }
    return Incident(**(values | given))


def member_of(change: Change) -> Member:
    return Member(ObjectName(change.namespace, change.name), identity(change))


def store(*incidents: Incident, at: datetime = T0) -> None:
    """Write incidents and mark their changes."""
    for incident in incidents:
        write_incidents([Reviewed(incident, at)])
        write_marks(
            (incident.cluster, CauseMark(member, incident.cause, incident.id))
            for member in incident.members
        )
