"""Which changes a page or a program asks for, read from a URL."""

from __future__ import annotations

from django.http import QueryDict

from dashboard.lease_filter import BadFilter, words
from dashboard.moment_text import read_moment
from leases.domain.change import ChangeType
from leases.domain.kind import Kind
from leases.history.streams import HistoryFilter

_TRUTH = {"": None, "true": True, "false": False}
_LONGEST_NAME = 1024


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
