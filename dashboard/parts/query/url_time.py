"""Read and write moments in URLs: RFC 3339, with short forms allowed."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from dashboard.parts.query.url_parameters import BadFilter, quoted

_TIME_OF_DAY = re.compile(r"\d?\d:\d\d(:\d\d(\.\d{1,6})?)?", re.ASCII)
_DAY = timedelta(days=1)
CLOCKS_DIFFER = timedelta(seconds=5)
FIRST, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(3000, 1, 1, tzinfo=UTC)


def read_moment(text: str, name: str, latest: datetime | None = None) -> datetime | None:
    """Read a moment; UTC without an offset, None for "". Raises BadFilter, which names `name`.

    A time of day means the last one before `latest`, if that is given. The years are limited so
    that any span that a page shows can be added.
    """
    text = text.strip()
    if not text:
        return None
    if latest is not None and _TIME_OF_DAY.fullmatch(text):
        return _last_time_of_day(text, name, latest)
    try:
        # In a URL a plus sign is a blank: +02:00 arrives as " 02:00".
        moment = datetime.fromisoformat(text.replace(" 0", "+0") if "T" in text else text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise BadFilter(
            f"{name} cannot be {quoted(text)}: use a time such as 2026-11-20T03:12:40Z."
        ) from error
    if not FIRST <= moment < LAST:
        raise BadFilter(
            f"{name} cannot be {quoted(text)}: use a year from {FIRST.year} to {LAST.year - 1}."
        )
    return moment


def _last_time_of_day(text: str, name: str, latest: datetime) -> datetime:
    padded = text if text[2] == ":" else f"0{text}"
    try:
        moment = datetime.fromisoformat(f"{latest:%Y-%m-%d}T{padded}").replace(tzinfo=UTC)
    except ValueError as error:
        raise BadFilter(f"{name} cannot be {quoted(text)}: use a time such as 03:12:40.") from error
    return moment - _DAY if moment > latest else moment


def passed(at: datetime, now: datetime) -> datetime:
    """The instant, or now if it is ahead by at most CLOCKS_DIFFER. Raises BadFilter."""
    if at > now + CLOCKS_DIFFER:
        raise BadFilter("at lies ahead: use a time that has passed, or leave it out for now.")
    return min(at, now)


def write_moment(moment: datetime | None) -> str:
    """The shortest RFC 3339 text of a moment; "" for None."""
    if moment is None:
        return ""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
