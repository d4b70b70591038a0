"""Made-up incidents and near misses for the components page."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import cycle
from typing import Any

from dashboard.pages.incidents.evidence import evidence_lines, without_notes
from dashboard.pages.incidents.near_misses import NearMiss, near_miss_line
from dashboard.parts.cause_words import CAUSE_MEANINGS, SOURCE_WORDS
from dashboard.parts.incident_line import incident_line
from leases.domain.cause.incident import Cause, Confidence, Evidence, Incident, Source
from leases.domain.lease import ObjectName
from leases.tracking.renewal_intervals import LongestInterval

KEY = ObjectName("kube-system", "kube-scheduler")
GOING_ON = (Cause.NODE_DOWN, Cause.SCALED_DOWN, Cause.FLAPPING)


def incident_samples(cluster: str, now: datetime) -> dict[str, Any]:
    """The context of the partials of the incidents: a row of each cause."""
    confidences = cycle(Confidence)
    found = [_incident(cluster, cause, next(confidences), now) for cause in Cause]
    intervals = [
        LongestInterval(now - timedelta(minutes=minute), 13.2 if minute == 20 else 2.0 + minute % 3)
        for minute in range(59, 0, -2)
    ]
    miss = NearMiss(
        key=KEY, holder="cp-1", at=intervals[0].since, seconds=13.2, duration=15, cadence=2.0,
        intervals=tuple(intervals),
    )  # fmt: skip
    return {
        "incident_lines": [incident_line(one, now) for one in found],
        "evidence": evidence_lines(found[0], ()),
        "sources": len(SOURCE_WORDS),
        "without": without_notes(found[0]),
        "misses": [near_miss_line(cluster, miss, now)],
    }


def _incident(cluster: str, cause: Cause, confidence: Confidence, now: datetime) -> Incident:
    began = now - timedelta(minutes=5)
    return Incident(
        id=cause.value,
        cluster=cluster,
        cause=cause,
        confidence=confidence,
        sentence=f"{CAUSE_MEANINGS[cause]} {KEY.name} was without a holder for 16.0 s.",
        began=began,
        ended=None if cause in GOING_ON else now,
        leases=(KEY,),
        hosts=("cp-1",),
        worst_gap_seconds=16.0,
        evidence=tuple(
            Evidence(f"cp-1 held {KEY} until {began:%H:%M:%S}", source) for source in Source
        ),
        without=tuple(Source),
    )
