"""The lines of the Attention list for incidents that go on; each stands for all of its Leases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from dashboard.pages.overview.attention_line import Attention
from dashboard.parts.change_sentence import Part
from dashboard.parts.formatting import counted
from dashboard.parts.incident_line import incident_line
from dashboard.parts.lease.change_cause import said_cause
from leases.domain.cause.incident import Incident
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.severity import SEVERITY
from leases.tracking.tracked_lease import Tracked

_UNTROUBLED = 2.5  # behind everything that is in trouble now
_BEFORE = 0.1  # before single Leases with the same trouble


def incident_lines(
    going_on: Sequence[Incident],
    troubled: Mapping[ObjectName, Tracked],
    now: datetime,
) -> list[Attention]:
    """`troubled` are the Leases of these incidents that would have a line of their own."""
    return [_line(incident, troubled, now) for incident in going_on]


def _line(incident: Incident, troubled: Mapping[ObjectName, Tracked], now: datetime) -> Attention:
    line = incident_line(incident, now)
    bad = [lease for key in incident.leases if (lease := troubled.get(key)) is not None]
    worst = min(bad, key=lambda lease: SEVERITY[lease.phase], default=None)
    return Attention(
        rank=_UNTROUBLED if worst is None else SEVERITY[worst.phase] - _BEFORE,
        phase=Phase.LATE.value if worst is None else worst.phase.value,
        icon=line.cause.icon,
        namespace="",
        label=line.sentence,
        url=line.url,
        word=f"{said_cause(incident)}.",
        why=(Part(f"{_extent(incident, bad)}."),),
        amount=line.length,
        moment=f"since {line.moment}",
        since=line.since,
    )


def _extent(incident: Incident, bad: Sequence[Tracked]) -> str:
    """`4 Leases, 3 of them without a holder now, 1 late`."""
    said = [counted(len(incident.leases), "Lease")]
    late = sum(lease.phase is Phase.LATE for lease in bad)
    lost = len(bad) - late
    said += [f"{lost:,} of them without a holder now"] if lost else []
    said += [f"{late:,} late"] if late else []
    return ", ".join(said)
