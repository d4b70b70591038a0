"""Which changes a page or a program asks for, read from a URL."""

from __future__ import annotations

from datetime import datetime

import msgspec
from django.http import QueryDict

from dashboard.lease_filter import BadFilter, one_of, words
from dashboard.moment_text import read_moment
from dashboard.timeline_filter import RANGES
from leases.domain.change import ChangeType
from leases.domain.kind import Kind
from leases.history.streams import HistoryFilter

_TRUTH = {"": None, "true": True, "false": False}
_LONGEST_NAME = 1024
TABLE, LINES = VIEWS = ("table", "sentences")


class HistoryView(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted and how it is drawn. `range`, one of the timeline's or "", moves on with the
    clock.
    """

    wanted: HistoryFilter
    range: str = ""
    view: str = TABLE

    def as_of(self, now: datetime) -> HistoryFilter:
        """What is wanted now."""
        if not self.range:
            return self.wanted
        since = now - RANGES[self.range]
        if self.wanted.since is not None:
            since = max(since, self.wanted.since)
        return msgspec.structs.replace(self.wanted, since=since)


def read_history_view(query: QueryDict) -> HistoryView:
    """Raises BadFilter."""
    return HistoryView(
        wanted=read_history_filter(query),
        range=one_of(query, "range", ("", *RANGES)),
        view=one_of(query, "view", VIEWS),
    )


def read_history_filter(query: QueryDict) -> HistoryFilter:
    """Raises BadFilter."""
    inferred = query.get("inferred", "")
    if inferred not in _TRUTH:
        raise BadFilter(f"inferred cannot be {inferred!r}: use true or false.")
    return HistoryFilter(
        change=words(query, "change", ChangeType),
        kind=words(query, "kind", Kind),
        namespace=_name(query, "namespace"),
        lease=_name(query, "lease"),
        holder=_name(query, "holder"),
        inferred=_TRUTH[inferred],
        since=read_moment(query.get("since", ""), "since"),
        until=read_moment(query.get("until", ""), "until"),
    )


def _name(query: QueryDict, name: str) -> str | None:
    text = query.get(name, "").strip()
    if len(text) > _LONGEST_NAME or "\0" in text:
        raise BadFilter(f"{name} is too long or holds a character that no name has.")
    return text or None
