"""The rows of the page, and of its files, see docs/api.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Any

import msgspec

from dashboard.charts.day_bars import DayBars, day_bars
from dashboard.parts.formatting import age, counted
from dashboard.parts.lease.row import lease_url
from dashboard.parts.lease.shown_name import ShownName, shown_name
from leases.domain.lease import ObjectName
from leases.domain.past.periods import Period
from leases.domain.past.reliability import Totals, allowed_share, budget_left, misses
from leases.history.read.csv_cells import csv_cell
from leases.history.reliability.find_totals import PeriodTotals
from leases.wire.microtime import format_microtime

DAYS = 14
FIELDS = ("cluster", "period", "from", "until", "namespace", "name", "objective", "state",
          "held_percent", "gap_seconds", "budget_left_seconds", "watched_seconds",
          "unwatched_seconds", "handovers", "failovers", "near_misses")  # fmt: skip
MISSED, MET, NO_DATA = "missed", "met", "no data"
SHAPES = {MISSED: "expired", MET: "held", NO_DATA: "untimed"}


class ReliabilityLine(msgspec.Struct, frozen=True, kw_only=True):
    """One Lease or namespace in a period, in words."""

    key: ObjectName
    shown: ShownName | str
    url: str
    state: str
    shape: str
    held: str
    totals: Totals
    gap: str
    budget: str
    over: bool
    unwatched: str
    bars: DayBars
    says: str


def state_of(totals: Totals, objective: float) -> str:
    if totals.watched_seconds <= 0:
        return NO_DATA
    return MISSED if misses(totals, objective) else MET


def held_percent(totals: Totals) -> str:
    """Thousandths, rounded down: `100 %` means all of the watched time."""
    if totals.watched_seconds <= 0:
        return NO_DATA
    if totals.gap_seconds <= 0:
        return "100 %"
    return f"{min(99_999, int((1 - totals.lost_share) * 100_000)) / 1000:.3f} %"


def budget_text(totals: Totals, objective: float) -> str:
    if totals.watched_seconds <= 0:
        return ""
    left = budget_left(totals, objective)
    return age(left) if left >= 0 else f"{age(-left)} over"


def last_days(now: datetime) -> list[date]:
    today = now.date()
    return [today - timedelta(days=back) for back in range(DAYS - 1, -1, -1)]


def line(
    cluster: str,
    one: PeriodTotals,
    days: Mapping[date, Totals],
    *,
    objective: float,
    url: str,
    now: datetime,
) -> ReliabilityLine:
    totals, state = one.totals, state_of(one.totals, objective)
    known = [days.get(day, Totals()) for day in last_days(now)]
    shares = [day.lost_share if day.watched_seconds > 0 else None for day in known]
    missed = sum(misses(day, objective) for day in known)
    blind = shares.count(None)
    return ReliabilityLine(
        key=one.key,
        shown=shown_name(cluster, one.key) if one.key.name else one.key.namespace,
        url=url or lease_url(cluster, one.key),
        state=state,
        shape=SHAPES[state],
        held=held_percent(totals),
        totals=totals,
        gap=age(totals.gap_seconds) if totals.gap_seconds > 0 else "",
        budget=budget_text(totals, objective),
        over=state == MISSED,
        unwatched=age(totals.unwatched_seconds) if totals.unwatched_seconds >= 1 else "",
        bars=day_bars(shares, allowed_share(objective)),
        says=f"Last {DAYS} days: {counted(missed, 'day')} missed the objective, "
        f"{counted(blind, 'day')} without data",
    )


def item(
    cluster: str, period: Period, since: date, one: PeriodTotals, objective: float
) -> dict[str, Any]:
    totals = one.totals
    watched = totals.watched_seconds > 0
    values = (
        cluster,
        period.value,
        since.isoformat(),
        format_microtime(one.until),
        one.key.namespace,
        one.key.name or None,
        objective,
        state_of(totals, objective).replace(" ", "_"),
        round(100 * (1 - totals.lost_share), 6) if watched else None,
        round(totals.gap_seconds, 3),
        round(budget_left(totals, objective), 3) if watched else None,
        round(totals.watched_seconds, 3),
        round(totals.unwatched_seconds, 3),
        totals.handovers,
        totals.failovers,
        totals.near_misses,
    )
    return dict(zip(FIELDS, values, strict=True))


def csv(items: Iterable[dict[str, Any]]) -> Iterator[str]:
    yield ",".join(FIELDS) + "\r\n"
    for one in items:
        yield ",".join(map(csv_cell, one.values())) + "\r\n"


def period_name(period: Period, since: date) -> str:
    """`20 Nov 2026`, `Week 47 of 2026`, `Quarter 4 of 2026`."""
    if period is Period.WEEK:
        year, week, _ = since.isocalendar()
        return f"Week {week} of {year}"
    if period is Period.QUARTER:
        return f"Quarter {(since.month + 2) // 3} of {since.year}"
    return f"{since.day} {since:%b} {since.year}"
