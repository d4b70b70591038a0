"""Read the past of one Lease over a range from history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from dashboard.charts.lane_pieces import BusyTime
from dashboard.parts.query.time_range import TimeRange
from leases.actions import audit
from leases.domain.lease import ObjectName
from leases.domain.past.term_statistics import Statistics, statistics
from leases.domain.past.terms import Life
from leases.domain.past.watched_times import UnwatchedTime
from leases.history.read.timeline_lanes import lanes
from leases.history.write.watched_spans import unwatched_times


class LeasePast(msgspec.Struct, frozen=True, kw_only=True):
    """`figures` is None if too much happened, so that changes were only counted."""

    shown: TimeRange
    life: Life
    busy: tuple[BusyTime, ...]
    changes: int
    edits: Sequence[datetime]
    blind: tuple[UnwatchedTime, ...]
    figures: Statistics | None


def read_past(
    cluster: str,
    key: ObjectName,
    shown: TimeRange,
    *,
    now: datetime,
    known: datetime | None = None,
) -> LeasePast:
    """Open terms are measured up to `known`, by default the end of the stretch."""
    since, until = shown.since, shown.until
    found = lanes(cluster, [key], since=since, until=until)
    life = found[0].life if found else Life()
    # A band of one change leaves none out: its last change is there.
    bands = [band for band in found[0].bands if band.changes > 1] if found else []
    return LeasePast(
        shown=shown,
        life=life,
        busy=tuple(BusyTime(band.since, band.until, band.changes) for band in bands),
        changes=found[0].changes if found else 0,
        edits=audit.done_between(cluster, since, until).get(key, ()),
        blind=tuple(unwatched_times(cluster, since=since, until=until, now=now)),
        figures=None if bands else statistics([life], since=since, until=known or until),
    )
