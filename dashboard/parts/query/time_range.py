"""Read from a URL which stretch of time and which lanes are wanted."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
from django.http import QueryDict

from dashboard.parts.formatting import span_of
from dashboard.parts.query.lease_filter import PAGE_SIZE
from dashboard.parts.query.list_filter import ListFilter
from dashboard.parts.query.url_parameters import (
    BadFilter,
    number,
    one_of,
    page_number,
    text,
    words,
)
from dashboard.parts.query.url_time import passed, read_moment
from leases.domain.kind import Kind

RANGES = {
    "5m": timedelta(minutes=5),
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
USUAL_RANGE = "6h"
SHORTEST = timedelta(seconds=10)
MAX_RANGE = timedelta(days=366)
WORST_FIRST, BY_CHANGES, BY_NAME = SORTS = ("worst", "changes", "name")
LANES, TABLE = VIEWS = ("lanes", "table")
LARGEST_PAGE = 200


class StretchFilter(ListFilter, frozen=True, kw_only=True):
    """`range` ends now; `since` and `until` together fix the stretch instead.

    `at` is the playhead, by default at the end.
    """

    PARAMETERS = {"since": "from", "until": "to", "at": "at"}
    range: str = USUAL_RANGE
    since: datetime | None = None
    until: datetime | None = None
    at: datetime | None = None

    def pairs(self) -> list[tuple[str, str]]:
        """The range has no fixed default, and no meaning beside a stretch."""
        first = [("range", self.range)] if self.since is None else []
        return first + ListFilter.pairs(self)


class TimelineFilter(StretchFilter, frozen=True, kw_only=True):
    """`text` is part of namespace/name, in any case; `holder` is an identity or the host in it."""

    PARAMETERS = StretchFilter.PARAMETERS | {
        "text": "q", "holder": "holder", "kinds": "kind", "sort": "sort", "view": "view",
        "limit": "limit", "page": "page",
    }  # fmt: skip
    kinds: tuple[Kind, ...] = ()
    text: str = ""
    holder: str = ""
    sort: str = WORST_FIRST
    view: str = LANES


class TimeRange(msgspec.Struct, frozen=True):
    """The shown stretch and the playhead `at`; if `live`, what is not fixed follows the clock."""

    since: datetime
    until: datetime
    at: datetime
    live: bool
    follows: bool  # `at` is the end of a live stretch
    is_young: bool = False  # a live stretch that begins at the first watched moment

    @property
    def length(self) -> timedelta:
        return self.until - self.since


def range_label(name: str) -> str:
    return span_of(RANGES[name])


def range_for(watched: datetime | None, now: datetime, *, usual: str = USUAL_RANGE) -> str:
    """The default range: the shortest one up to `usual` with everything that was watched."""
    if watched is None:
        return usual
    names = list(RANGES)[: list(RANGES).index(usual)]
    return next((name for name in names if now - watched <= RANGES[name]), usual)


def read_stretch(
    query: QueryDict, now: datetime, usual: str
) -> tuple[str, datetime | None, datetime | None]:
    """Read range, `from` and `to`. A time of day means the last one before `to` or now.

    Raises BadFilter.
    """
    until = read_moment(query.get("to", ""), "to", now)
    since = read_moment(query.get("from", ""), "from", until or now)
    if (since is None) != (until is None):
        raise BadFilter("from and to belong together: give both, or a range.")
    if since is not None and until is not None and not SHORTEST <= until - since <= MAX_RANGE:
        raise BadFilter("to must be later than from, by 10 s at least and 366 d at most.")
    return one_of(query, "range", tuple(RANGES), usual), since, until


def read_timeline_filter(
    query: QueryDict, now: datetime, *, usual: str = USUAL_RANGE
) -> TimelineFilter:
    """Raises BadFilter."""
    name, since, until = read_stretch(query, now, usual)
    return TimelineFilter(
        range=name,
        since=since,
        until=until,
        at=read_moment(query.get("at", ""), "at", until or now),
        kinds=words(query, "kind", Kind),
        text=text(query, "q"),
        holder=text(query, "holder"),
        sort=one_of(query, "sort", SORTS, WORST_FIRST),
        view=one_of(query, "view", VIEWS, LANES),
        page=page_number(query),
        limit=number(query, "limit", default=PAGE_SIZE, largest=LARGEST_PAGE),
    )


def window(wanted: StretchFilter, now: datetime, *, watched: datetime | None = None) -> TimeRange:
    """The stretch as of now. A playhead outside of it moves it, so a link needs only `at`.

    `watched` is the first watched moment: a range that ends now does not begin before it. Raises
    BadFilter for a stretch or a playhead in the future.
    """
    at = None if wanted.at is None else passed(wanted.at, now)
    young = False
    if wanted.since is not None and wanted.until is not None:
        if wanted.since >= now:
            raise BadFilter("from lies in the future: nothing has happened then yet.")
        since, until, live = wanted.since, min(wanted.until, now), False
    else:
        since, until, live = now - RANGES[wanted.range], now, True
        if watched is not None and since < watched < now and (at is None or at >= watched):
            since, young = min(watched, now - SHORTEST), True
    if at is not None and not since <= at <= until:
        length = until - since
        until = min(now, at + length / 2)
        since, live = until - length, False
    return TimeRange(since, until, until if at is None else at, live, live and at is None, young)
