"""The timeline of an incident: a lane for each Lease involved, made from the stored changes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from dashboard.charts.lane_geometry import shapes
from dashboard.charts.time_scale import Scale, percent
from dashboard.charts.time_ticks import ticks
from dashboard.pages.incidents.affected import AffectedLease
from dashboard.parts.formatting import counted, span_of, when
from dashboard.parts.holder_name import holder_view
from dashboard.parts.lane_labels import lane_marks, shape_view
from dashboard.parts.lease.page_links import ShownTime, lease_url_at
from dashboard.parts.lease.shown_name import shown_name
from dashboard.parts.query.time_range import SHORTEST
from leases.domain.cause.incident import Incident
from leases.domain.changes.change import Change, ChangeType
from leases.domain.past.as_of import PastPhase, as_of
from leases.domain.past.terms import Life, Term, fold

MAX_LANES = 40
SHAPES = 24  # of one lane
_AROUND = 0.12  # of the incident's length, shown before and after it
_LEAST = timedelta(seconds=5)
_LINGERS = 3  # times as long as its changes took: what is shown after the last of them
_BEFORE = {
    ChangeType.EXPIRED: ChangeType.EXPIRED,
    ChangeType.RELEASED: ChangeType.RELEASED,
    ChangeType.DELETED: ChangeType.DELETED,
    ChangeType.REPLACED: ChangeType.REPLACED,
    ChangeType.TAKEN_OVER: ChangeType.EXPIRED,
}
_STOOD = {
    PastPhase.HELD: ("held", "st-held", "held"),
    PastPhase.EXPIRED: ("expired", "st-expired", "expired"),
    PastPhase.VACANT: ("vacant", "st-vacant", "vacant"),
    PastPhase.DELETED: ("deleted", "st-deleted", "deleted"),
    PastPhase.UNKNOWN: ("deleted", "i-minus", "unknown"),
}


def scale_of(incident: Incident, story: Sequence[Change], now: datetime) -> Scale:
    """The incident with a little of the time around it, in whole seconds. Of one that lasts much
    longer than its changes came, only the beginning.
    """
    end, began = incident.ended or now, incident.began
    if story:
        last = max(change.at for change in story)
        end = min(end, last + _LINGERS * max(_LEAST, last - began))
    around = max(_LEAST, (end - began) * _AROUND)
    until = max(began, min(now, end + around))
    since = min(began - around, until - SHORTEST).replace(microsecond=0)
    return Scale(since, until)


def lane_chart(
    incident: Incident, affected: Sequence[AffectedLease], now: datetime
) -> dict[str, Any]:
    """The lanes of the Leases that were worst off, their axis, and the incident's stretch."""
    scale = scale_of(incident, [change for one in affected for change in one.changes], now)
    begins, ends = scale.x(incident.began), scale.x(incident.ended or now)
    shown = [one for one in affected if one.changes][:MAX_LANES]
    return {
        "scale": scale,
        "ticks": ticks(scale, most=7),
        "x": percent(begins),
        "width": percent(max(0.3, ends - begins)),
        "lanes": [_lane(incident.cluster, one, scale, now) for one in shown],
        "more": len(affected) - len(shown),
        "length": span_of(timedelta(seconds=int(scale.length.total_seconds()))),
        "cut": scale.until < (incident.ended or now),
    }


def life_of(changes: Sequence[Change], since: datetime) -> Life:
    """What the changes say, with the term that the first of them ended."""
    life, first = fold(changes), changes[0]
    holder = first.previous_holder or (first.holder if first.change is ChangeType.EXPIRED else None)
    ended = _BEFORE.get(first.change)
    if holder is None or ended is None or first.at <= since:
        return life
    until = first.at if first.gap_seconds is None else _gap_began(first)
    earlier = Term(
        holder=holder,
        uid=first.uid,
        began=None,
        since=since,
        until=max(since, until),
        ended=ended,
        observed_at=first.observed_at,
    )
    return msgspec.structs.replace(life, terms=(earlier, *life.terms))


def _gap_began(change: Change) -> datetime:
    return change.at - timedelta(seconds=change.gap_seconds or 0.0)


def _lane(cluster: str, one: AffectedLease, scale: Scale, now: datetime) -> dict[str, Any]:
    """As timeline/_lane.html needs it."""
    life = life_of(one.changes, scale.since)
    drawn = shapes(life, scale, most=SHAPES)
    standing = as_of(life, scale.until)
    css, icon, word = _STOOD[standing.phase]
    holder = holder_view(standing.holder) if standing.phase is PastPhase.HELD else None
    time = ShownTime(since=scale.since, until=scale.until)
    return {
        "key": str(one.key),
        "namespace": one.key.namespace,
        "name": one.key.name,
        "shown": shown_name(cluster, one.key),
        "url": lease_url_at(cluster, one.key, time),
        "kind": one.changes[0].kind.value,
        "dot": {"css": css, "icon": icon, "title": f"{word} at {when(scale.until, now)}"},
        "before": "unknown",
        "shapes": tuple(
            shape_view(shape, now, zoom=lambda *_: "", end=scale.until) for shape in drawn
        ),
        "marks": lane_marks(life, (), scale, now),
        "role": "img",
        "says": f"{one.key}: {counted(len(one.changes), 'change')}, {one.lost_words}.",
        "as_of": {
            "holder": holder,
            "word": {"expired": "no holder", "vacant": "no holder"}.get(word, word),
            "title": word,
            "css": "" if holder else "none" if word in ("expired", "vacant") else "absent",
        },
        "holder_url": "",
    }
