"""The incidents that go on as rows of the wall: one sentence instead of a row for each Lease."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from dashboard.parts.formatting import counted
from dashboard.parts.frame.list_controls import says
from dashboard.parts.incident_line import IncidentLine, incident_line
from dashboard.parts.lease.change_cause import said_cause
from dashboard.parts.query.lease_filter import LeaseFilter, wants
from leases.domain.cause.incident import Incident
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.severity import TROUBLE, is_in_trouble, severity
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked

MOST = 3  # incidents with a row
HEIGHT = 2  # rows that each takes; `static/js/wall_lanes.js` has the same


class WallIncident(msgspec.Struct, frozen=True, kw_only=True):
    """`phase` is the worst of its Leases now."""

    line: IncidentLine
    cause: str
    leases: str
    phase: str


class WallIncidents(msgspec.Struct, frozen=True):
    """`covered` are the Leases in trouble that need no row of their own."""

    rows: list[WallIncident]
    covered: frozenset[ObjectName]
    more: int  # incidents without a row


def wall_incidents(
    store: Store, going_on: Iterable[Incident], wanted: LeaseFilter, now: datetime
) -> WallIncidents:
    """Those that save rows, the most Leases in trouble first; of a filtered wall, those with its
    Leases.
    """
    matches = wants(LeaseFilter(text=wanted.text, namespace=wanted.namespace, kinds=wanted.kinds))
    troubled = {one.key: one for one in store.select(tuple(Kind), TROUBLE) if _bad(one)}
    found = []
    for incident in going_on:
        bad = [one for key in incident.leases if (one := troubled.get(key)) is not None]
        if len(bad) > HEIGHT and (not says(wanted) or any(map(matches, bad))):
            found.append((incident, bad))
    found.sort(key=lambda pair: (-len(pair[1]), pair[0].began))
    shown = found[:MOST]
    covered = frozenset(lease.key for _, bad in shown for lease in bad)
    rows = [_row(incident, bad, now) for incident, bad in shown]
    return WallIncidents(rows, covered, len(found) - len(shown))


def _bad(lease: Tracked) -> bool:
    return is_in_trouble(lease.phase, lease.kind, excused=lease.excused)


def _row(incident: Incident, bad: Sequence[Tracked], now: datetime) -> WallIncident:
    worst = min((lease.phase for lease in bad), key=_severity, default=Phase.LATE)
    return WallIncident(
        line=incident_line(incident, now),
        cause=said_cause(incident),
        leases=counted(len(incident.leases), "Lease"),
        phase=worst.value,
    )


def _severity(phase: Phase) -> float:
    return severity(phase, flaps=False)
