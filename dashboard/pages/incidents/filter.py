"""Read from a URL which incidents are wanted."""

from __future__ import annotations

from datetime import datetime

from django.http import QueryDict

from dashboard.parts.query.list_filter import ListFilter
from dashboard.parts.query.time_range import RANGES
from dashboard.parts.query.url_parameters import (
    LARGEST_PAGE,
    BadFilter,
    number,
    one_of,
    text,
    true_or_false,
    words,
)
from dashboard.parts.query.url_time import read_moment
from leases.domain.cause.incident import Cause

PAGE_SIZE = 50


class IncidentFilter(ListFilter, frozen=True, kw_only=True):
    """An empty field filters nothing. An incident matches if it went on at any time between
    `since` and `until`; `range` ends now. `going_on` is "true", "false" or "". `before` is the
    cursor of a page.
    """

    PARAMETERS = {
        "causes": "cause", "namespace": "namespace", "lease": "lease", "holder": "holder",
        "range": "range", "since": "from", "until": "to", "going_on": "going_on",
        "limit": "limit", "before": "before",
    }  # fmt: skip
    causes: tuple[Cause, ...] = ()
    namespace: str = ""
    lease: str = ""
    holder: str = ""
    range: str = ""
    since: datetime | None = None
    until: datetime | None = None
    going_on: str = ""
    limit: int = PAGE_SIZE
    before: str = ""

    @property
    def plain(self) -> bool:
        """Whether it asks for the newest incidents of all kinds."""
        return self.replace(limit=PAGE_SIZE) == IncidentFilter()

    def first(self, now: datetime) -> datetime | None:
        """From when on an incident must have gone on, with the range applied."""
        if not self.range:
            return self.since
        return max(filter(None, (self.since, now - RANGES[self.range])))


def read_incident_filter(query: QueryDict, now: datetime) -> IncidentFilter:
    """A time of day means the last one before `to` or now. Raises BadFilter."""
    until = read_moment(query.get("to", ""), "to", now)
    since = read_moment(query.get("from", ""), "from", until or now)
    if since is not None and until is not None and until <= since:
        raise BadFilter("to must be later than from.")
    return IncidentFilter(
        causes=words(query, "cause", Cause),
        namespace=text(query, "namespace"),
        lease=text(query, "lease"),
        holder=text(query, "holder"),
        range=one_of(query, "range", ("", *RANGES)),
        since=since,
        until=until,
        going_on=true_or_false(query, "going_on"),
        limit=number(query, "limit", default=PAGE_SIZE, largest=LARGEST_PAGE),
        before=text(query, "before"),
    )
