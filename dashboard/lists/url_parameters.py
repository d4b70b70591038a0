"""Read parameters of a URL, or raise BadFilter with what to write instead."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar, Self, TypeVar, cast
from urllib.parse import urlencode

import msgspec
from django.http import QueryDict

from dashboard.lists import typed_times

LARGEST_PAGE = 1000
MAX_PAGE_NUMBER = 10**9
MAX_TEXT = 1024  # characters of a text that is searched for
MAX_QUOTED = 60  # characters of a value that a sentence repeats
E = TypeVar("E", bound=StrEnum)


# What the fields of these parameters are called on pages.
LABELS = {
    "at": "As of",
    "from": "From",
    "to": "To",
    "since": "Since",
    "until": "Until",
    "date": "The day",
    "objective": "Objective",
}


class BadFilter(ValueError):
    """An unusable parameter; the text is one sentence that says what to write instead. It begins
    with the name of the parameter.

    `names`: other parameters that it names.
    """

    def __init__(self, text: str, *, names: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self._names = names

    @property
    def parameter(self) -> str:
        return str(self).partition(" ")[0]

    @property
    def said(self) -> str:
        """For a person, who knows fields by their labels."""
        said = LABELS.get(self.parameter, self.parameter) + str(self)[len(self.parameter) :]
        for name in self._names:
            said = said.replace(f" {name}", f" {LABELS[name]}", 1)
        return said


def quoted(value: str) -> str:
    """A value inside a sentence: unprintable characters escaped, long values cut."""
    return repr(value if len(value) <= MAX_QUOTED else value[: MAX_QUOTED - 1] + "…")


def text(query: QueryDict, name: str) -> str:
    """A stripped text. Raises BadFilter for a text that nothing could match."""
    value = query.get(name, "").strip()
    if len(value) > MAX_TEXT:
        raise BadFilter(f"{name} {_too_long(value)}.")
    if "\0" in value:
        raise BadFilter(f"{name} cannot be {quoted(value)}: leave out the NUL character.")
    return value


def joined_names(query: QueryDict, name: str) -> str:
    """Names with commas between them, or each in a parameter of its own, as `a,b`."""
    value = ",".join(query.getlist(name))
    if len(value) > MAX_TEXT:
        raise BadFilter(f"{name} {_too_long(value)}.")
    if "\0" in value:
        raise BadFilter(f"{name} cannot be {quoted(value)}: leave out the NUL character.")
    return ",".join(dict.fromkeys(filter(None, map(str.strip, value.split(",")))))


def holder_text(query: QueryDict, name: str) -> str:
    """A holder with blanks around it and NUL, which an API server accepts. Raises BadFilter."""
    value = query.get(name, "")
    if len(value) > MAX_TEXT:
        raise BadFilter(f"{name} {_too_long(value)}, or search for its beginning.")
    return value if value.strip() else ""


def _too_long(value: str) -> str:
    return f"cannot have {len(value):,} characters: use {MAX_TEXT:,} at most"


def words(query: QueryDict, name: str, allowed: type[E]) -> tuple[E, ...]:
    """The values of a parameter that may be repeated, each value once."""
    found: dict[E, None] = {}
    for value in filter(None, query.getlist(name)):
        try:
            found[allowed(value)] = None
        except ValueError as error:
            choices = ", ".join(word.value for word in allowed)
            raise BadFilter(f"{name} cannot be {quoted(value)}: use one of {choices}.") from error
    return tuple(found)


def number(query: QueryDict, name: str, largest: int, default: int = 1) -> int:
    value = query.get(name) or str(default)
    good = value.isascii() and value.isdecimal() and len(value) <= len(str(largest))
    if not good or not 1 <= int(value) <= largest:
        raise BadFilter(
            f"{name} cannot be {quoted(value)}: use a whole number from 1 to {largest:,}."
        )
    return int(value)


def one_of(query: QueryDict, name: str, choices: tuple[str, ...], usual: str = "") -> str:
    """The value of a parameter; its default is `usual`, else the first choice."""
    value = query.get(name) or usual or choices[0]
    if value not in choices:
        written = ", ".join(filter(None, choices))
        raise BadFilter(f"{name} cannot be {quoted(value)}: use one of {written}.")
    return value


def is_true(query: QueryDict, name: str) -> bool:
    """Whether a parameter that can only be switched on is `true`."""
    value = query.get(name, "")
    if value not in ("", "true"):
        raise BadFilter(f"{name} cannot be {quoted(value)}: write true, or leave it out.")
    return bool(value)


def true_or_false(query: QueryDict, name: str) -> str:
    """`true`, `false`, or "" if the parameter is left out."""
    return one_of(query, name, ("", "true", "false"))


def sort_by(query: QueryDict, name: str, columns: tuple[str, ...]) -> str:
    """The column, with `-` in front to reverse it; the first column by default."""
    value = query.get(name) or columns[0]
    if value.removeprefix("-") not in columns:
        raise BadFilter(
            f"{name} cannot be {quoted(value)}: use one of {', '.join(columns)}, "
            "with - in front to reverse the order."
        )
    return value


def typed(query: QueryDict, name: str) -> str:
    """The raw value, for a form that shows it again."""
    return for_input(query.get(name, ""))


def for_input(value: str) -> str:
    """A text as an input of a form can hold it: HTML has no NUL."""
    return value.replace("\0", "\N{SYMBOL FOR NULL}")


_TIME_OF_DAY = re.compile(r"\d?\d:\d\d(:\d\d(\.\d{1,6})?)?", re.ASCII)
_LENGTH = re.compile(
    r"(?:for|in|last)?\s*(\d{1,6}(?:\.\d{1,3})?)\s*(s|sec|m|min|h|d)", re.ASCII | re.IGNORECASE
)
_UNITS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
MAX_LENGTH = timedelta(days=366)
CLOCKS_DIFFER = timedelta(seconds=5)
FIRST, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(3000, 1, 1, tzinfo=UTC)


def read_length(text: str, name: str) -> timedelta | None:
    """A length as people type it: `1 h`, `for 90 min`; None for another text. Raises BadFilter."""
    span = _LENGTH.fullmatch(text.strip())
    if span is None:
        return None
    length = timedelta(seconds=float(span[1]) * _UNITS[span[2].lower()])
    if length > MAX_LENGTH:
        raise BadFilter(f"{name} cannot be {quoted(text)}: use at most {MAX_LENGTH.days} d.")
    return length


def read_moment(
    text: str,
    name: str,
    latest: datetime | None = None,
    now: datetime | None = None,
    *,
    ahead: bool = False,
) -> datetime | None:
    """Read a moment; None for "". Raises BadFilter, which names `name`. Without an offset it is in
    the person's zone.

    If `latest` is given, a time of day means the last one before it, or the next one if it is to
    come, and a length means so long before `now`, or before `latest`. The years are limited so that
    any span that a page shows can be added.
    """
    text = text.strip()
    if not text:
        return None
    if latest is not None and (length := read_length(text, name)) is not None:
        return (now or latest) - length
    if latest is not None and _TIME_OF_DAY.fullmatch(text):
        return typed_times.meant(name, text, _time_of_day(text, name, latest, ahead=ahead))
    try:
        # In a URL a plus sign is a blank: +02:00 arrives as " 02:00".
        moment = datetime.fromisoformat(text.replace(" 0", "+0") if "T" in text else text)
        if moment.tzinfo is None:
            moment = typed_times.meant(name, text, typed_times.in_utc_of(moment))
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        also = "" if latest is None else ", 03:12 or 90 min"
        raise BadFilter(
            f"{name} cannot be {quoted(text)}: use a time such as 2026-11-20T03:12:40Z{also}."
        ) from error
    if not FIRST <= moment < LAST:
        raise BadFilter(
            f"{name} cannot be {quoted(text)}: use a year from {FIRST.year} to {LAST.year - 1}."
        )
    return moment


def is_time_of_day(text: str) -> bool:
    return _TIME_OF_DAY.fullmatch(text.strip()) is not None


def _is_dateless(text: str) -> bool:
    return is_time_of_day(text) or _LENGTH.fullmatch(text.strip()) is not None


def _time_of_day(text: str, name: str, latest: datetime, *, ahead: bool) -> datetime:
    padded = text if text[2] == ":" else f"0{text}"
    try:
        typed = datetime.fromisoformat(f"{latest:%Y-%m-%d}T{padded}")
    except ValueError as error:
        raise BadFilter(f"{name} cannot be {quoted(text)}: use a time such as 03:12:40.") from error
    return typed_times.at_time_of_day(typed, latest, ahead=ahead)


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


class Parameter:
    """One parameter of a URL; `reader` is a function of this module or one like them."""

    def __init__(self, name: str, reader: Callable[..., Any] = text, *given: Any) -> None:
        self.name, self.reader, self.given = name, reader, given

    def read(
        self, query: QueryDict, usual: Any, latest: datetime | None, now: datetime | None
    ) -> Any:
        """The value, or `usual` without one. A time of day is the last one before `latest`."""
        if self.reader is read_moment:
            return read_moment(query.get(self.name, ""), self.name, latest, now)
        if self.reader is not words and not query.get(self.name):
            return usual
        value = self.reader(query, self.name, *self.given)
        return usual if value == "" else value


_READ_ORDER = {"until": -1, "limit": 1}
PAGE = Parameter("page", number, MAX_PAGE_NUMBER)
LIMIT = Parameter("limit", number, LARGEST_PAGE)
OF_A_TRAIL = {  # the last parameters of a list of dated rows
    "since": Parameter("since", read_moment),
    "until": Parameter("until", read_moment),
    "page": PAGE,
    "limit": LIMIT,
}


class UrlState:
    """What the URL of a list says: its filter, sort and page. PARAMETERS are those of the fields,
    in their order in the URL. A subclass is a Struct, too.
    """

    __slots__ = ()
    PARAMETERS: ClassVar[Mapping[str, Parameter]] = {}
    sort: str
    page: int
    limit: int

    @property
    def descending(self) -> bool:
        return self.sort.startswith("-")

    @property
    def column(self) -> str:
        return self.sort.removeprefix("-")

    @classmethod
    def read(cls, query: QueryDict, now: datetime | None = None, **usual: Any) -> Self:
        """Raises BadFilter. `usual` are defaults of this request alone.

        A time of day means the last one before now, or before an `until` with a date; a filter
        without moments needs no `now`. A length as `until` counts from `since`. An `until` without
        a date that only comes after `since` and now ends now.
        """
        found: dict[str, Any] = {}
        empty = cls(**usual)
        has_date = not _is_dateless(cls._typed_end(query))
        for field in sorted(cls.PARAMETERS, key=lambda field: _READ_ORDER.get(field, 0)):
            latest = (found.get("until") if has_date else None) or now
            found[field] = cls.PARAMETERS[field].read(query, getattr(empty, field), latest, now)
        since, until = found.get("since"), found.get("until")
        if now and not has_date and since and since < now:
            length = read_length(cls._typed_end(query), "")
            if length is not None:
                found["until"] = min(now, since + length)
            elif until <= since:
                found["until"] = now
        state = cls(**usual | found)
        for field, parameter in cls.PARAMETERS.items():
            typed_times.renamed(parameter.name, found[field])
        state.check()
        return state

    @classmethod
    def _typed_end(cls, query: QueryDict) -> str:
        end = cls.PARAMETERS.get("until")
        return query.get(end.name, "").strip() if end else ""

    def ends_early(self, query: QueryDict, now: datetime) -> str:
        """Say that the end that was typed is still to come, or ""."""
        typed = self._typed_end(query)
        is_early = _is_dateless(typed) and getattr(self, "until", None) == now
        said = "is still to come" if is_time_of_day(typed) else "is not over yet"
        sentence = f"{typed} {said}: this ends now." if is_early else ""
        typed_times.note(sentence)
        return sentence

    def check(self) -> None:
        """Raises BadFilter if the values do not fit each other."""

    def replace(self, **changes: Any) -> Self:
        return cast("Self", msgspec.structs.replace(cast("msgspec.Struct", self), **changes))

    def pairs(self) -> list[tuple[str, str]]:
        """The parameters that differ from their default."""
        usual, found = type(self)(), []
        for field, parameter in self.PARAMETERS.items():
            value = getattr(self, field)
            if value != getattr(usual, field):
                values = value if isinstance(value, tuple) else (value,)
                found += [(parameter.name, _written(one)) for one in values]
        return found

    def query(self) -> str:
        return urlencode(self.pairs())

    def page_of(self, total: int) -> tuple[int, slice]:
        """The number and the place of the wanted page, or of the last one."""
        number = max(1, min(self.page, -(-total // self.limit)))
        return number, slice((number - 1) * self.limit, number * self.limit)

    def texts(self) -> dict[str, str]:
        """Each parameter of one value as a form shows it; "" where it is not used."""
        used = dict(self.pairs())
        return {one.name: for_input(used.get(one.name, "")) for one in self.PARAMETERS.values()}

    @classmethod
    def typed(cls, query: QueryDict) -> dict[str, str]:
        """Each parameter as it was typed, for the form of a refused filter."""
        return {one.name: typed(query, one.name) for one in cls.PARAMETERS.values()}


# What the URL of a page says, by the name of the URL. A List enters its own.
FILTERS: dict[str, type[UrlState]] = {}


class ListFilter(UrlState, msgspec.Struct, frozen=True, kw_only=True):
    sort: str = ""  # a column, with `-` in front to reverse the order
    page: int = 1
    limit: int = 50


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return write_moment(value) if isinstance(value, datetime) else str(value)
