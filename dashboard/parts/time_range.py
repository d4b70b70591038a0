"""Read from a URL which stretch of time is wanted, and link to others."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from dashboard.lists.controls import Chip, ListLinks
from dashboard.lists.url_parameters import (
    FILTERS,
    MAX_LENGTH,
    PAGE,
    BadFilter,
    ListFilter,
    Parameter,
    number,
    one_of,
    passed,
    read_length,
    read_moment,
    words,
)
from dashboard.parts.formatting import span_of
from leases.domain.kind import Kind

DAY = timedelta(days=1)


def read_typed_time(text: str, name: str, now: datetime, *, ahead: bool = False) -> datetime | None:
    """Read a time as people type it: `04:30`, `3:12`, `1 h`, `for 90 min`, or a moment.

    `ahead`: it is to come (a mute, an expiry), else it has passed. None for "". Raises BadFilter.
    """
    if ahead and (length := read_length(text, name)) is not None:
        return now + length
    return read_moment(text, name, now, ahead=ahead)


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
MAX_RANGE = MAX_LENGTH
WORST_FIRST, BY_CHANGES, BY_NAME = SORTS = ("worst", "changes", "name")
LANES, TABLE = VIEWS = ("lanes", "table")
LARGEST_PAGE = 200


class StretchFilter(ListFilter, frozen=True, kw_only=True):
    """`range` ends now; `since` and `until` together fix the stretch instead.

    `at` is the playhead, by default at the end.
    """

    PARAMETERS = {
        "range": Parameter("range", one_of, tuple(RANGES)),
        "since": Parameter("from", read_moment),
        "until": Parameter("to", read_moment),
        "at": Parameter("at", read_moment),
    }
    range: str = USUAL_RANGE
    since: datetime | None = None
    until: datetime | None = None
    at: datetime | None = None

    def pairs(self) -> list[tuple[str, str]]:
        """The range has no fixed default, and no meaning beside a stretch."""
        first = [("range", self.range)] if self.since is None else []
        return first + [pair for pair in ListFilter.pairs(self) if pair[0] != "range"]

    def check(self) -> None:
        if (self.since is None) != (self.until is None):
            raise BadFilter("from and to belong together: give both, or a range.", names=("to",))
        length = None if self.since is None or self.until is None else self.until - self.since
        if length is not None and not SHORTEST <= length <= MAX_RANGE:
            raise BadFilter(
                "to must be later than from, by 10 s at least and 366 d at most.", names=("from",)
            )


class TimelineFilter(StretchFilter, frozen=True, kw_only=True):
    """`text` is part of namespace/name, in any case; `holder` is an identity or the host in it."""

    PARAMETERS = StretchFilter.PARAMETERS | {
        "text": Parameter("q"),
        "holder": Parameter("holder"),
        "kinds": Parameter("kind", words, Kind),
        "sort": Parameter("sort", one_of, SORTS),
        "view": Parameter("view", one_of, VIEWS),
        "limit": Parameter("limit", number, LARGEST_PAGE),
        "page": PAGE,
    }
    kinds: tuple[Kind, ...] = ()
    text: str = ""
    holder: str = ""
    sort: str = WORST_FIRST
    view: str = LANES


FILTERS["timeline"] = TimelineFilter


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


Zoom = Callable[[datetime, datetime], str]
FACTOR = 2.0
_CLOSEST = timedelta(minutes=1)  # where a band that is longer than a few seconds leads
_AROUND = 1.2  # of a band's length: it is shown with its surroundings
_CLOSER = 0.8  # of the shown length: a smaller step does not look like a zoom
_SECOND = timedelta(seconds=1)


def stretch_links(
    links: ListLinks, wanted: StretchFilter, shown: TimeRange, *, now: datetime
) -> dict[str, Any]:
    """Links to ranges, to the time before and after, and closer or wider around the playhead."""
    chosen = wanted.range if wanted.since is None else ""
    return {
        "ranges": [
            Chip(
                name,
                range_label(name),
                links.url(range=name, since=None, until=None),
                name == chosen,
            )
            for name in RANGES
        ],
        "earlier": _url(links, shown, *_moved(shown, now, -0.5)),
        "later": "" if shown.live else _url(links, shown, *_moved(shown, now, 0.5)),
        "closer": _zoomed(links, shown, now, 1 / FACTOR),
        "wider": _zoomed(links, shown, now, FACTOR),
    }


def zoom_to(links: ListLinks, shown: TimeRange, *, now: datetime) -> Zoom:
    """Make the URL that shows a band of changes alone; "" if that is no closer than now."""

    def zoom(since: datetime, until: datetime) -> str:
        for least in (_CLOSEST, SHORTEST):
            length = max(least, (until - since) * _AROUND)
            if length <= shown.length * _CLOSER:
                break
        else:
            return ""
        end = min(now, since + (until - since) / 2 + length / 2)
        start = (end - length).replace(microsecond=0)
        return _url(links, shown, start, start - (start - end) // _SECOND * _SECOND)

    return zoom


def _url(links: ListLinks, shown: TimeRange, since: datetime, until: datetime) -> str:
    """The URL of a fixed stretch; a playhead outside moves to its end."""
    fixed: dict[str, datetime | None] = {"since": since, "until": until}
    if not since <= shown.at <= until:
        fixed["at"] = None
    return links.url(**fixed)


def _moved(shown: TimeRange, now: datetime, by: float) -> tuple[datetime, datetime]:
    """Move the stretch by a share of its length."""
    until = min(now, shown.until + by * shown.length)
    return until - shown.length, until


def _zoomed(links: ListLinks, shown: TimeRange, now: datetime, by: float) -> str:
    """The URL of the stretch zoomed around the playhead; "" if it cannot be."""
    length = shown.length * by
    if not SHORTEST <= length <= MAX_RANGE:
        return ""
    share = (shown.at - shown.since) / shown.length
    until = min(now, shown.at + length * (1 - share))
    names = [name for name, usual in RANGES.items() if usual == length]
    if shown.follows and names:
        return links.url(range=names[0], since=None, until=None)
    return links.url(since=until - length, until=until)
