"""A lane as JSON, see docs/api.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dashboard.charts.lane_pieces import BusyTime
from dashboard.pages.timeline.lane_query import TimelineLane
from dashboard.parts.frame.as_of_words import stood
from dashboard.parts.query.time_range import TimeRange
from leases.domain.past.terms import Gap, Term
from leases.domain.past.watched_times import UnwatchedTime
from leases.wire.microtime import format_microtime, microtime_or_none


def lane_item(
    cluster: str, lane: TimelineLane, shown: TimeRange, blind: Sequence[UnwatchedTime]
) -> dict[str, Any]:
    """One Lease over the stretch. Terms and gaps are whole, also outside it."""
    standing = lane.standing
    return {
        "cluster": cluster,
        "namespace": lane.key.namespace,
        "name": lane.key.name,
        "kind": lane.kind.value if lane.kind else None,
        "at": format_microtime(shown.at),
        "phase": stood(standing),
        "holder": standing.holder,
        "since": microtime_or_none(standing.since),
        "watched": lane.watched,
        "from": format_microtime(shown.since),
        "to": format_microtime(shown.until),
        "terms": [_term(term) for term in lane.life.terms if _inside(term, shown)],
        "gaps": [_gap(gap) for gap in lane.life.gaps if _inside(gap, shown)],
        "reconfigured": [
            {"at": format_microtime(change.at), "fields": list(change.fields)}
            for change in lane.life.reconfigurations
        ],
        "unwatched": [_span(one) for one in blind],
        "changes": lane.changes,
        "busy": [_span(one) | {"changes": one.changes} for one in lane.busy],
    }


def _span(span: UnwatchedTime | BusyTime) -> dict[str, Any]:
    return {"since": format_microtime(span.since), "until": format_microtime(span.until)}


def _inside(span: Term | Gap, shown: TimeRange) -> bool:
    return span.since < shown.until and (span.until is None or span.until > shown.since)


def _term(term: Term) -> dict[str, Any]:
    return {
        "holder": term.holder,
        "uid": term.uid,
        "began": term.began and term.began.value,
        "since": format_microtime(term.since),
        "until": microtime_or_none(term.until),
        "ended": term.ended and term.ended.value,
        "missed": term.missed,
        "inferred": term.inferred,
        "inferred_since": microtime_or_none(term.inferred_since),
        "gaps": [_gap(gap) for gap in term.gaps],
    }


def _gap(gap: Gap) -> dict[str, Any]:
    return {
        "since": format_microtime(gap.since),
        "until": microtime_or_none(gap.until),
        "after": gap.after and gap.after.value,
        "holder": gap.holder,
        "ended_by": gap.ended_by and gap.ended_by.value,
    }
