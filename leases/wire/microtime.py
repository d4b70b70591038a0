"""metav1.MicroTime and metav1.Time: RFC 3339 with and without six fraction digits.

Source: k8s.io/apimachinery/pkg/apis/meta/v1/micro_time.go and time.go. Parsing follows Go's
time.Parse for both layouts, with its error messages, because clients see them.

Go's range of years is larger than Python's. A client may write the years 0000 to 9999 with an
offset of up to a day, so a server may return times from two days before year 0 to two days into
year 10000. `nearest_moment` cuts such a time to the first or last one that Python can hold. The
zero time, 0001-01-01T00:00:00Z, is written as null.
"""

import re
from datetime import UTC, datetime, timedelta

from leases.domain.steady_clock import EARLIEST, LATEST, in_utc

MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
SECOND_LAYOUT = "2006-01-02T15:04:05Z07:00"
_PLAIN_MICRO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_PLAIN_SECOND = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_ZERO = "0001-01-01T00:00:00"
ZERO_MICROTIME = f"{_ZERO}.000000Z"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH = _EPOCH.replace(tzinfo=None)
_CYCLE = 146097 * 86400  # seconds after which the calendar repeats: 400 years
_PARTS = re.compile(r"(-?\d+)-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{6}))?Z", re.ASCII)
_BEYOND = re.compile(
    r"(-\d{4,}|0000|[1-9]\d{4,8})-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII
)


def format_microtime(moment: datetime) -> str:
    """Format as a MicroTime: `2026-11-20T12:04:23.000001Z`."""
    return f"{in_utc(moment).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def microtime_or_none(moment: datetime | None) -> str | None:
    return None if moment is None else format_microtime(moment)


def format_time(moment: datetime) -> str:
    """Format as a Time, cut to seconds: `2026-11-20T12:04:23Z`."""
    return f"{in_utc(moment).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def nearest_moment(text: str) -> datetime | None:
    """Return the nearest datetime for a time outside the years 1 to 9999, else None."""
    beyond = _BEYOND.fullmatch(text)
    if beyond is None:
        return None
    return EARLIEST if beyond[1].startswith(("-", "0")) else LATEST


def unix_of_text(text: str) -> tuple[int, int]:
    """Return whole seconds since 1970 and microseconds of a text in canonical form."""
    try:
        since = datetime.fromisoformat(text) - _EPOCH
    except ValueError:
        parts = _PARTS.fullmatch(text)
        assert parts is not None  # noqa: S101 - the text is canonical
        *whole, micros = (int(part or 0) for part in parts.groups())
        return _unix(*whole), micros
    return since.days * 86400 + since.seconds, since.microseconds


def text_of_unix(seconds: int, micros: int, *, micro: bool) -> str | None:
    """Return the canonical text of a time since 1970; None for the zero time.

    Raises ValueError for years outside 0 to 9999.
    """
    try:
        moment = _NAIVE_EPOCH + timedelta(seconds=seconds, microseconds=micros)
    except OverflowError:
        seconds, micros = seconds + micros // 1_000_000, micros % 1_000_000
        text = _written(seconds, micros * 1000, micro=micro)
        if text is None or nearest_moment(text) != EARLIEST:
            raise ValueError("a time is out of range") from None
        return text
    if moment == EARLIEST.replace(tzinfo=None):
        return None
    return f"{moment.isoformat(timespec='microseconds' if micro else 'seconds')}Z"


def normal_microtime(text: str) -> str | None:
    """Return a MicroTime in its canonical form; None: zero. Raises ValueError with Go's message."""
    return _normal(text, micro=True)


def normal_time(text: str) -> str | None:
    """Return a Time in its canonical form; None: zero. Raises ValueError with Go's message."""
    return _normal(text, micro=False)


def _normal(text: str, *, micro: bool) -> str | None:
    if (_PLAIN_MICRO if micro else _PLAIN_SECOND).fullmatch(text):
        try:
            datetime.fromisoformat(text)
        except ValueError:
            pass  # the year 0, or a field out of range: the slow way says which
        else:
            zero = text.startswith(_ZERO) and not (micro and text[20:] != "000000Z")
            return None if zero else text
    return _Reading(text, micro=micro).normal()


class _Reading:
    """Parses one text by a layout, as Go's time.parse does."""

    def __init__(self, text: str, *, micro: bool) -> None:
        self.text = text
        self.rest = text
        self.micro = micro

    def normal(self) -> str | None:
        year = self._year()
        month = self._field("-", "01", "month", low=1, high=12)
        day = self._field("-", "02", "day", low=0, high=99)
        hour = self._field("T", "15", "hour", high=23, fixed=False)
        minute = self._field(":", "04", "minute", high=59)
        second = self._field(":", "05", "second", high=59)
        nanos = self._fraction()
        offset = self._zone()
        if self.rest:
            raise self._wrong(f": extra text: {_quoted(self.rest)}")
        try:
            seconds = _unix(year, month, day, hour, minute, second)
        except ValueError:
            raise self._wrong(": day out of range") from None
        return _written(seconds - offset, nanos, micro=self.micro)

    def _wrong(self, what: str) -> ValueError:
        return ValueError(f"parsing time {_quoted(self.text)}{what}")

    def _unread(self, rest: str, element: str) -> ValueError:
        layout = MICRO_LAYOUT if self.micro else SECOND_LAYOUT
        return self._wrong(f' as "{layout}": cannot parse {_quoted(rest)} as "{element}"')

    def _year(self) -> int:
        digits = self.rest[:4]
        if len(digits) < 4 or not (digits.isascii() and digits.isdecimal()):
            raise self._unread(self.rest, "2006")
        self.rest = self.rest[4:]
        return int(digits)

    def _field(
        self, before: str, element: str, name: str, *, high: int, low: int = 0, fixed: bool = True
    ) -> int:
        if not self.rest.startswith(before):
            raise self._unread(self.rest, before)
        hold = self.rest[1:]
        if not _digit(hold, 0) or (fixed and not _digit(hold, 1)):
            raise self._unread(hold, element)
        width = 2 if _digit(hold, 1) else 1
        value, self.rest = int(hold[:width]), hold[width:]
        if not low <= value <= high:
            raise self._wrong(f": {name} out of range")
        return value

    def _fraction(self) -> int:
        """Return nanoseconds. A MicroTime needs six digits; a Time accepts any number."""
        hold = self.rest
        if not self.micro:
            if not (hold[:1] in (".", ",") and _digit(hold, 1)):
                return 0
            width = 1
            while _digit(hold, width):
                width += 1
            self.rest = hold[width:]
            return int(hold[1 : min(width, 10)].ljust(9, "0"))
        number = re.fullmatch(r"([+-]?)(\d+)", hold[1:7], re.ASCII)
        if len(hold) < 7 or hold[0] not in ".," or number is None:
            raise self._unread(hold, ".000000")
        self.rest = hold[7:]
        if number[1] == "-" and int(number[2]):
            raise self._wrong(": fractional second out of range")
        return int(number[2]) * 1000

    def _zone(self) -> int:
        """Return seconds east of UTC."""
        hold = self.rest
        if hold.startswith("Z"):
            self.rest = hold[1:]
            return 0
        shape = re.match(r"([+-])(\d\d):(\d\d)", hold, re.ASCII)
        if shape is None:
            raise self._unread(hold, "Z07:00")
        self.rest = hold[6:]
        hours, minutes = int(shape[2]), int(shape[3])
        if minutes > 60:
            raise self._wrong(": time zone offset minute out of range")
        if hours > 24:
            raise self._wrong(": time zone offset hour out of range")
        return (hours * 3600 + minutes * 60) * (-1 if shape[1] == "-" else 1)


def _digit(text: str, index: int) -> bool:
    return len(text) > index and "0" <= text[index] <= "9"


def _quoted(text: str) -> str:
    """Quote as Go's time package does: bytes outside printable ASCII as \\x hex."""
    out: list[str] = []
    for char in text:
        if char < " " or char > "~":
            out.extend(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))
        else:
            out.append("\\" + char if char in '"\\' else char)
    return f'"{"".join(out)}"'


def _unix(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int:
    """Return seconds since 1970, of any year. Raises ValueError if there is no such day."""
    cycles, of_cycle = divmod(year, 400)
    since = datetime(400 + of_cycle, month, day, hour, minute, second) - _NAIVE_EPOCH  # noqa: DTZ001
    return since.days * 86400 + since.seconds + (cycles - 1) * _CYCLE


def _written(seconds: int, nanos: int, *, micro: bool) -> str | None:
    cycles, rest = divmod(seconds, _CYCLE)
    moment = _NAIVE_EPOCH + timedelta(seconds=rest)
    year = moment.year + 400 * cycles
    text = f"{'-' if year < 0 else ''}{abs(year):04d}{moment.isoformat()[4:]}"
    if text == _ZERO and nanos == 0:
        return None
    return f"{text}.{nanos // 1000:06d}Z" if micro else f"{text}Z"
