"""The cause of a change or an incident in a few words, as far as it is known."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from dashboard.parts.cause_words import CAUSE_ICONS, CAUSE_MEANINGS, CAUSE_WORDS
from dashboard.parts.formatting import capitalized
from dashboard.parts.incident_line import incident_url
from leases.domain.cause.human_writers import is_human_writer
from leases.domain.cause.incident import Cause, Incident
from leases.domain.changes.change import Change
from leases.domain.kind import Kind

LOOKING = "Looking for the cause"
SETTLES = timedelta(minutes=2)  # a cause may become known, or better, for so long


class ChangeCause(msgspec.Struct, frozen=True):
    """Why a change happened, with the link to its incident."""

    word: str
    icon: str
    meaning: str
    url: str


def said_cause(incident: Incident) -> str:
    """`Node down, likely`; before it is settled `Node down, likely so far`."""
    if incident.cause is Cause.UNKNOWN:
        return "Cause not known" if incident.settled else LOOKING
    so_far = "" if incident.settled else " so far"
    return f"{capitalized(CAUSE_WORDS[incident.cause])}, {incident.confidence.value}{so_far}"


def change_cause(change: Change, now: datetime) -> ChangeCause | None:
    """None if the change belongs to no incident: changes of earlier versions, and innocent ones."""
    if change.cause is None or change.incident is None:
        return None
    url = incident_url(change.cluster, change.incident)
    if change.cause is Cause.UNKNOWN:
        sought = now - change.observed_at < SETTLES
        word = LOOKING.lower() if sought else "cause not known"
        return ChangeCause(word, CAUSE_ICONS[change.cause], CAUSE_MEANINGS[change.cause], url)
    return ChangeCause(
        CAUSE_WORDS[change.cause], CAUSE_ICONS[change.cause], CAUSE_MEANINGS[change.cause], url
    )


def written_by_hand(change: Change) -> bool:
    """Whether the writer is a tool of people. The programs that use locks are such tools too."""
    return (
        change.writer is not None
        and change.kind is not Kind.LOCK
        and is_human_writer(change.writer)
    )
