"""Read from a URL which period is shown, of what, and against which objective."""

from __future__ import annotations

import re
from datetime import MAXYEAR, MINYEAR, date, datetime

from django.http import QueryDict

from dashboard.parts.query.lease_filter import PAGE_SIZE
from dashboard.parts.query.list_filter import ListFilter
from dashboard.parts.query.url_parameters import (
    LARGEST_PAGE,
    BadFilter,
    number,
    one_of,
    page_number,
    quoted,
    text,
)
from leases.domain.past.periods import Period, first_day
from leases.history.reliability.save_totals import Scope

USUAL_OBJECTIVE = 99.9
BY = (Scope.LEASE.value, Scope.NAMESPACE.value)
PERIODS = (Period.WEEK.value, Period.DAY.value, Period.QUARTER.value)
_PERCENT = re.compile(r"\d{1,3}(\.\d{1,4})?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_YEARS = range(MINYEAR + 1, MAXYEAR)


class ReliabilityFilter(ListFilter, frozen=True, kw_only=True):
    """`day` is any day of the period, "" for the current one; `objective` "" for the default."""

    PARAMETERS = {
        "period": "period", "day": "date", "by": "by", "namespace": "namespace",
        "lease": "lease", "objective": "objective", "limit": "limit", "page": "page",
    }  # fmt: skip
    period: str = PERIODS[0]
    day: str = ""
    by: str = BY[0]
    namespace: str = ""
    lease: str = ""
    objective: str = ""
    limit: int = PAGE_SIZE

    @property
    def length(self) -> Period:
        return Period(self.period)

    def first_day(self, now: datetime) -> date:
        day = date.fromisoformat(self.day) if self.day else now.date()
        return first_day(self.length, day)


def read_reliability_filter(query: QueryDict) -> ReliabilityFilter:
    """Raises BadFilter."""
    return ReliabilityFilter(
        period=one_of(query, "period", PERIODS),
        day=_day(query),
        by=one_of(query, "by", BY),
        namespace=text(query, "namespace"),
        lease=text(query, "lease"),
        objective=_objective(query),
        page=page_number(query),
        limit=number(query, "limit", default=PAGE_SIZE, largest=LARGEST_PAGE),
    )


def read_percent(value: str) -> float:
    """Raises ValueError, whose text says what to write instead."""
    value = value.strip()
    if not _PERCENT.fullmatch(value) or not 0 < float(value) <= 100:
        raise ValueError("write percent above 0 up to 100, such as 99.9")
    return float(value)


def _objective(query: QueryDict) -> str:
    value = text(query, "objective")
    if value:
        try:
            read_percent(value)
        except ValueError as error:
            raise BadFilter(f"objective cannot be {quoted(value)}: {error}.") from error
    return value


def _day(query: QueryDict) -> str:
    value = text(query, "date")
    try:
        good = not value or (_DATE.fullmatch(value) and date.fromisoformat(value).year in _YEARS)
    except ValueError:
        good = False
    if not good:
        raise BadFilter(f"date cannot be {quoted(value)}: write a day, such as 2026-11-20.")
    return value
