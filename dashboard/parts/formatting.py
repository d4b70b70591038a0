"""Format numbers and moments for people. `static/js/age.js` formats ages in the same way."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from html import escape
from typing import NamedTuple

from leases.domain.steady_clock import in_utc
from leases.domain.watched_times import BRIEF
from leases.wire.microtime import format_time

MINUTE, HOUR, DAY = 60, 3600, 86400
TENTHS = 10  # seconds; shorter times show tenths
_EXACT = 1e-6  # rounding error of a sum of seconds


def age(seconds: float) -> str:
    """A length of time in its two largest units, rounded down: `0.8 s`, `1 m 30 s`, `56 d 12 h`."""
    seconds = max(0.0, seconds) + _EXACT
    if seconds < TENTHS:
        return f"{int(10 * seconds) / 10:.1f} s"
    whole = int(seconds)
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} m {whole % MINUTE} s"
    if whole < DAY:
        return f"{whole // HOUR} h {whole % HOUR // MINUTE} m"
    return f"{whole // DAY} d {whole % DAY // HOUR} h"


class Elapsed(NamedTuple):
    """The time since a moment, whether somebody watched or not; it counts on from `since` (epoch
    s). A figure of time without a holder is another thing: it counts watched time alone.
    """

    length: str
    since: float


def elapsed(since: datetime, now: datetime) -> Elapsed:
    return Elapsed(age((now - since).total_seconds()), since.timestamp())


def rough(seconds: float) -> str:
    """A length of time in its largest unit: `0.8 s`, `12 s`, `1 m`, `8 h`."""
    return " ".join(age(seconds).split()[:2])


def seconds(number: float) -> str:
    """A setting or an interval: `15 s`, `2.0 s`, `1 h 0 m`."""
    if number < 2 * MINUTE and (number >= TENTHS or number == int(number)):
        return f"{int(number + _EXACT)} s"
    return age(number)


def span_of(length: timedelta) -> str:
    """A chosen length of time, in one unit if it is whole: `15 min`, `24 h`, `7 d`."""
    seconds = length.total_seconds()
    if seconds % DAY == 0 and seconds > DAY:
        return f"{seconds / DAY:.0f} d"
    if seconds % HOUR == 0:
        return f"{seconds / HOUR:.0f} h"
    return (
        f"{seconds / MINUTE:.0f} min" if seconds % MINUTE == 0 and seconds < HOUR else age(seconds)
    )


def percent(part: float, whole: float) -> str:
    """A share, rounded to the nearest: `98 %`. Near both ends it shows hundredths, rounded down,
    because `100 %` means all and `0 %` means none.
    """
    if not part or not whole:
        return "0 %"
    if part >= whole:
        return "100 %"
    hundredths = int(10_000 * part // whole)
    if 100 <= hundredths < 9_900:
        return f"{int(100 * part / whole + 0.5)} %"
    return f"{hundredths / 100:g} %" if hundredths else "under 0.01 %"


def gap_length(seconds: float, unwatched: float = 0.0) -> str:
    """A time without a holder: `19 s`, `at most 19 m 31 s, 19 m 29 s of it not watched`."""
    if unwatched <= 0:
        return age(seconds)
    if unwatched >= seconds:
        return f"at most {age(seconds)}, none of it watched"
    if age(unwatched) == age(0):
        return age(seconds)
    return f"at most {age(seconds)}, {age(unwatched)} of it not watched"


def more_unwatched(seconds: float) -> str:
    """What a figure of watched time leaves out: `, 22 s more not watched`."""
    return f", {age(seconds)} more not watched" if seconds >= BRIEF.total_seconds() else ""


def lost_length(watched: float, unwatched: float, so_far: str = "") -> str:
    """What times without a holder add up to: `8 m 32 s, 38 s more not watched`, `at most 9.3 s,
    none of it watched`. `so_far` stands after the length.
    """
    if unwatched and age(watched) == age(0):
        length, _, rest = gap_length(watched + unwatched, unwatched).partition(", ")
        return f"{length}{so_far}, {rest}"
    return f"{age(watched)}{so_far}{more_unwatched(unwatched)}"


def unbroken(text: str) -> str:
    """Keep each number on one line with its unit: `13 %`, `2.0 s`."""
    return _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", text)


_BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|(?:ms|s|m|min|h|d)\b)")


def thousands(number: int | None) -> str:
    """`3,000`; `?` for a number that is not known."""
    return "?" if number is None else f"{number:,}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 node`, `3,000 nodes`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def capitalized(text: str) -> str:
    """The text with a capital first letter; the others stay as they are."""
    return text[:1].upper() + text[1:]


def listed(names: Sequence[str], limit: int = 3) -> str:
    """`a`, `a and b`, `a, b, c and 4 more`."""
    if len(names) > limit:
        return f"{', '.join(names[:limit])} and {len(names) - limit:,} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def clock(moment: datetime) -> str:
    """The time of day in UTC, to the second."""
    return in_utc(moment).strftime("%H:%M:%S")


def fine_clock(moment: datetime) -> str:
    """The time of day in UTC, to the millisecond."""
    return in_utc(moment).strftime("%H:%M:%S.%f")[:-3]


def stopwatch(length: timedelta) -> str:
    """Hours, minutes and seconds; `static/js/wall.js` goes on counting them."""
    whole = int(length.total_seconds())
    return f"{whole // HOUR:02}:{whole // MINUTE % MINUTE:02}:{whole % MINUTE:02}"


def day(moment: datetime) -> str:
    """`4 Feb 2026`."""
    moment = in_utc(moment)
    return f"{moment.day} {moment:%b} {moment.year}"


def shortened(text: str, limit: int) -> str:
    """Both ends of a text, with an ellipsis between them."""
    if len(text) <= limit:
        return text
    end = (limit - 1) // 2
    return f"{text[: limit - 1 - end]}…{text[len(text) - end :]}"


def escaped(text: str) -> str:
    """HTML of a text that may be `shortened`. Of a page with one sign beyond Latin-1, each letter
    takes twice the memory.
    """
    return escape(text).replace("…", "&hellip;")


def when(moment: datetime, now: datetime, *, fine: bool = False) -> str:
    """The time of day, with the date in front unless it is today."""
    time = fine_clock(moment) if fine else clock(moment)
    if in_utc(moment).date() == in_utc(now).date():
        return time
    return f"{day(moment)} {time}"


def at_or_now(moment: datetime, now: datetime) -> str:
    """When something is tried that is due from a moment on."""
    return f"at {when(moment, now)}" if moment > now else "now"


def ahead(moment: datetime, now: datetime) -> str:
    """A moment to come: `22:00`, `04:30 tomorrow, 27 Nov 2026`, `04:30 on 29 Nov 2026`. The date
    is there for who reads the page a day later.
    """
    time = clock(moment).removesuffix(":00")
    days = (in_utc(moment).date() - in_utc(now).date()).days
    if days == 0:
        return time
    return f"{time} tomorrow, {day(moment)}" if days == 1 else f"{time} on {day(moment)}"


def utc(moment: datetime) -> str:
    """RFC 3339 in UTC, for a `datetime` attribute."""
    return format_time(moment)
