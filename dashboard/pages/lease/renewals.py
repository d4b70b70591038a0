"""How regularly a Lease was renewed lately, as a chart and in words."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from dashboard.charts.renewal_intervals import MAX_BARS, RenewalChart, renewal_chart
from dashboard.charts.time_scale import Scale
from dashboard.parts.formatting import clock, rough, seconds
from dashboard.parts.lease.freshness import numbers
from leases.tracking.renewal_intervals import SLOT, LongestInterval
from leases.tracking.tracked_lease import Tracked

RANGES = (timedelta(minutes=10), timedelta(minutes=20), timedelta(hours=1))


class LevelView(msgspec.Struct, frozen=True):
    y: float
    label: str


def renewals_view(
    tracked: Tracked, intervals: tuple[LongestInterval, ...], now: datetime
) -> dict[str, Any] | None:
    """Present the last renewals; None if we saw none."""
    if not intervals:
        return None
    slot = timedelta(seconds=SLOT)
    begin = intervals[0].since
    length = next((length for length in RANGES if now - begin <= length), RANGES[-1])
    until = datetime.fromtimestamp((now.timestamp() // SLOT + 1) * SLOT, now.tzinfo)
    scale = Scale(until - length, until)
    step = max(slot, length / MAX_BARS)
    _, duration, late = numbers(tracked)
    if tracked.holder is None:
        duration = None  # a release writes another one
    chart = renewal_chart(
        ((one.since, one.seconds) for one in intervals),
        scale,
        known_since=max(begin, scale.since),
        duration=duration,
        usual=tracked.cadence_seconds,
        late_after=late,
        bars=int(length / step),
    )
    return _view(chart, tracked, duration, length, step)


def _view(
    chart: RenewalChart,
    tracked: Tracked,
    duration: float | None,
    length: timedelta,
    step: timedelta,
) -> dict[str, Any]:
    usual, longest = tracked.cadence_seconds, chart.longest
    limit, peak = chart.limit, longest if longest and longest.phase != "held" else None
    far = duration is not None and limit is None
    return {
        "chart": chart,
        "levels": tuple(LevelView(line.y, f"{line.seconds:g} s") for line in chart.lines),
        "limit": LevelView(limit.y, f"leaseDurationSeconds: {duration:g} s, expires here")
        if limit
        else None,
        "usual": LevelView(chart.usual.y, f"usually {seconds(usual)}")
        if chart.usual and usual
        else None,
        "peak": LevelView(peak.y, seconds(round(peak.seconds, 1))) if peak else None,
        "peak_x": peak.x + peak.width / 2 if peak else 0.0,
        "peak_phase": peak.phase if peak else "",
        "range": f"longest interval per {rough(step.total_seconds())}, "
        f"last {rough(length.total_seconds())}",
        "finding": _finding(chart, usual, duration),
        "far": f"It lasts {seconds(duration)}, far above this picture." if far and duration else "",
    }


def _finding(chart: RenewalChart, usual: float | None, duration: float | None) -> str:
    said = [f"usually {seconds(usual)}"] if usual else []
    if chart.longest is not None:
        longest = seconds(round(chart.longest.seconds, 1))
        said.append(f"longest {longest} at {clock(chart.longest.since)}")
    if duration is not None:
        said.append(f"the Lease expires at {duration:g} s")
    return f"Seconds between renewals: {', '.join(said)}"
