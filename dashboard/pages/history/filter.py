"""Read from a URL which changes are wanted."""

from __future__ import annotations

from datetime import datetime

import msgspec
from django.http import QueryDict

from dashboard.parts.query.time_range import RANGES
from dashboard.parts.query.url_parameters import holder_text, one_of, text, words
from dashboard.parts.query.url_time import read_moment
from leases.domain.cause.incident import Cause
from leases.domain.changes.change import ChangeType
from leases.domain.kind import Kind
from leases.history.read.indexed_search import HistoryFilter

_TRUTH = {"": None, "true": True, "false": False}
TABLE, LINES = VIEWS = ("table", "sentences")


class HistoryView(msgspec.Struct, frozen=True, kw_only=True):
    """The filter and how the list is drawn. `range` (as on the timeline, or "") ends now."""

    wanted: HistoryFilter
    range: str = ""
    view: str = TABLE

    def as_of(self, now: datetime) -> HistoryFilter:
        """The filter with the range applied."""
        if not self.range:
            return self.wanted
        since = now - RANGES[self.range]
        if self.wanted.since is not None:
            since = max(since, self.wanted.since)
        return msgspec.structs.replace(self.wanted, since=since)


def read_history_view(query: QueryDict, now: datetime) -> HistoryView:
    """Raises BadFilter."""
    return HistoryView(
        wanted=read_history_filter(query, now),
        range=one_of(query, "range", ("", *RANGES)),
        view=one_of(query, "view", VIEWS),
    )


def read_history_filter(query: QueryDict, now: datetime) -> HistoryFilter:
    """A time of day means the last one before `until` or now. Raises BadFilter."""
    until = read_moment(query.get("until", ""), "until", now)
    return HistoryFilter(
        change=words(query, "change", ChangeType),
        kind=words(query, "kind", Kind),
        cause=words(query, "cause", Cause),
        namespace=text(query, "namespace") or None,
        lease=text(query, "lease") or None,
        holder=holder_text(query, "holder") or None,
        text=text(query, "q"),
        inferred=_TRUTH[one_of(query, "inferred", tuple(_TRUTH))],
        since=read_moment(query.get("since", ""), "since", until or now),
        until=until,
    )
