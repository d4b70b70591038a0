"""Which changes a page or a program asks for, read from a URL."""

from __future__ import annotations

from datetime import UTC, datetime

from django.http import QueryDict

from dashboard.lease_filter import BadFilter, words
from leases.domain.change import ChangeType
from leases.domain.kind import Kind
from leases.history.queries import HistoryFilter

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
        since=_moment(query, "since"),
        until=_moment(query, "until"),
    )


def _name(query: QueryDict, name: str) -> str | None:
    text = query.get(name, "").strip()
    if len(text) > _LONGEST_NAME or "\0" in text:
        raise BadFilter(f"{name} is too long or holds a character that no name has.")
    return text or None


def _moment(query: QueryDict, name: str) -> datetime | None:
    """RFC 3339; without an offset it is UTC."""
    text = query.get(name, "").strip()
    if not text:
        return None
    try:
        # In a URL a plus sign is a blank: +02:00 arrives as " 02:00".
        moment = datetime.fromisoformat(text.replace(" 0", "+0") if "T" in text else text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise BadFilter(
            f"{name} cannot be {text!r}: use a time such as 2026-11-20T03:12:40Z."
        ) from error
