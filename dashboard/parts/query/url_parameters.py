"""Read one parameter of a URL, or raise BadFilter with what to write instead."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from django.http import QueryDict

LARGEST_PAGE = 1000
MAX_PAGE_NUMBER = 10**9
MAX_TEXT = 1024  # characters of a text that is searched for
MAX_QUOTED = 60  # characters of a value that a sentence repeats
E = TypeVar("E", bound=StrEnum)


class BadFilter(ValueError):
    """An unusable parameter; the text is one sentence that says what to write instead. It begins
    with the name of the parameter.
    """

    @property
    def parameter(self) -> str:
        return str(self).partition(" ")[0]


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


def number(query: QueryDict, name: str, *, default: int, largest: int) -> int:
    value = query.get(name) or str(default)
    good = value.isascii() and value.isdecimal() and len(value) <= len(str(largest))
    if not good or not 1 <= int(value) <= largest:
        raise BadFilter(
            f"{name} cannot be {quoted(value)}: use a whole number from 1 to {largest:,}."
        )
    return int(value)


def page_number(query: QueryDict) -> int:
    return number(query, "page", default=1, largest=MAX_PAGE_NUMBER)


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


def sort_by(query: QueryDict, columns: tuple[str, ...]) -> str:
    """The column of `?sort=`, with `-` in front to reverse it; the first column by default."""
    value = query.get("sort") or columns[0]
    if value.removeprefix("-") not in columns:
        raise BadFilter(
            f"sort cannot be {quoted(value)}: use one of {', '.join(columns)}, "
            "with - in front to reverse the order."
        )
    return value


def typed(query: QueryDict, name: str) -> str:
    """The raw value, for a form that shows it again."""
    return for_input(query.get(name, ""))


def for_input(value: str) -> str:
    """A text as an input of a form can hold it: HTML has no NUL."""
    return value.replace("\0", "\N{SYMBOL FOR NULL}")
