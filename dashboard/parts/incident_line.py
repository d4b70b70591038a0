"""One incident as a line: in the list of incidents, and wherever a page speaks of one."""

from __future__ import annotations

from datetime import datetime

import msgspec
from django.urls import reverse

from dashboard.parts.cause_words import (
    CAUSE_ICONS,
    CAUSE_MEANINGS,
    CAUSE_WORDS,
    CONFIDENCE_BARS,
    CONFIDENCE_MEANINGS,
)
from dashboard.parts.formatting import age, capitalized, counted, shortened, when
from leases.domain.cause.incident import Cause, Confidence, Incident
from leases.domain.severity import LONG_GAP_SECONDS

MAX_SENTENCE = 400  # characters: names may be long
_LATE = (Cause.API_SLOW, Cause.CLOCK_SKEW, Cause.FLAPPING)
_VACANT = (
    Cause.BY_HAND, Cause.DELETED, Cause.DRAIN, Cause.GRACEFUL_STOP, Cause.PREFERRED_HOLDER,
    Cause.RESTART_IN_PLACE, Cause.ROLLOUT, Cause.SCALED_DOWN,
)  # fmt: skip
_HIDDEN = {
    code: f"\\u{code:04x}"
    for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
} | {0: "\N{SYMBOL FOR NULL}"}


class CauseView(msgspec.Struct, frozen=True):
    """A cause with its confidence; `bars` says which of the three bars are filled."""

    word: str
    icon: str
    meaning: str
    confidence: str
    confidence_meaning: str
    bars: tuple[bool, bool, bool]


class IncidentLine(msgspec.Struct, frozen=True, kw_only=True):
    """`length` counts up from `since` (epoch s) while the incident goes on."""

    id: str
    url: str
    cause: CauseView
    sentence: str
    began: datetime
    moment: str
    going_on: bool
    css: str  # "" once it is over
    length: str
    since: float
    leases: int
    hosts: int
    worst: str
    worst_is_long: bool

    @property
    def at_once(self) -> bool:
        """Whether it was over in an instant."""
        return not self.going_on and self.length == age(0)

    @property
    def extent(self) -> str:
        """`4 Leases, 4 hosts, worst 16 s`."""
        hosts = counted(self.hosts, "host") if self.hosts else ""
        worst = f"worst {self.worst}" if self.worst else ""
        return ", ".join(filter(None, (counted(self.leases, "Lease"), hosts, worst)))


def incident_url(cluster: str, incident: str) -> str:
    return reverse("incident", args=[cluster, incident])


def cause_view(cause: Cause, confidence: Confidence) -> CauseView:
    filled = CONFIDENCE_BARS[confidence]
    return CauseView(
        word=CAUSE_WORDS[cause],
        icon=CAUSE_ICONS[cause],
        meaning=CAUSE_MEANINGS[cause],
        confidence=capitalized(confidence.value),
        confidence_meaning=CONFIDENCE_MEANINGS[confidence],
        bars=(filled > 0, filled > 1, filled > 2),
    )


def incident_line(incident: Incident, now: datetime) -> IncidentLine:
    """Present an incident as of `now`."""
    gap = incident.worst_gap_seconds
    return IncidentLine(
        id=incident.id,
        url=incident_url(incident.cluster, incident.id),
        cause=cause_view(incident.cause, incident.confidence),
        sentence=shortened(visible(incident.sentence), MAX_SENTENCE),
        began=incident.began,
        moment=when(incident.began, now),
        going_on=incident.ended is None,
        css=_css(incident),
        length=age(((incident.ended or now) - incident.began).total_seconds()),
        since=incident.began.timestamp(),
        leases=len(incident.leases),
        hosts=len(incident.hosts),
        worst="" if not gap else age(gap),
        worst_is_long=gap is not None and gap >= LONG_GAP_SECONDS,
    )


def visible(text: str) -> str:
    """The text with the characters that turn its direction as escapes, such as `\\u202e`."""
    return text.translate(_HIDDEN)


def _css(incident: Incident) -> str:
    if incident.ended is not None:
        return ""
    if incident.cause in _LATE:
        return "late"
    return "vacant" if incident.cause in _VACANT else "expired"
