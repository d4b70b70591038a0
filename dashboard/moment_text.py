"""Moments in URLs: RFC 3339, read kindly and written short."""

from __future__ import annotations

from datetime import UTC, datetime

from dashboard.lease_filter import BadFilter

_LONGEST = 64


def read_moment(text: str, name: str) -> datetime | None:
    """None for an empty text; without an offset it is UTC. Raises BadFilter, which names `name`."""
    text = text.strip()
    if not text:
        return None
    try:
        # In a URL a plus sign is a blank: +02:00 arrives as " 02:00".
        moment = datetime.fromisoformat(text.replace(" 0", "+0") if "T" in text else text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise BadFilter(
            f"{name} cannot be {text[:_LONGEST]!r}: use a time such as 2026-11-20T03:12:40Z."
        ) from error


def write_moment(moment: datetime | None) -> str:
    """As short as it can be and still mean the same; "" for none."""
    if moment is None:
        return ""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
