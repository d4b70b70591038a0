"""How grave an incident is, for the receivers of messages."""

from __future__ import annotations

from enum import StrEnum

from leases.domain.cause.incident import Cause, Incident
from leases.domain.severity import LONG_GAP_SECONDS


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
