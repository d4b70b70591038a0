"""The cause of a change or an incident in a few words, as far as it is known."""

from __future__ import annotations

from dashboard.parts.cause_words import CAUSE_WORDS
from dashboard.parts.formatting import capitalized
from leases.domain.cause.incident import Cause, Incident

LOOKING = "Looking for the cause"


def said_cause(incident: Incident) -> str:
    """`Node down, likely`; before it is settled `Node down, likely so far`."""
    if incident.cause is Cause.UNKNOWN:
        return "Cause not known" if incident.settled else LOOKING
    so_far = "" if incident.settled else " so far"
    return f"{capitalized(CAUSE_WORDS[incident.cause])}, {incident.confidence.value}{so_far}"
