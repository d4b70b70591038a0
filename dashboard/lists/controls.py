"""The controls around a list: chips, column heads, pager."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import msgspec

from dashboard.lists.url_parameters import UrlState


class Chip(msgspec.Struct, frozen=True):
    """One choice; a live frame replaces its count under the name `live`, unless that is "".
    `count` is None where it is not known.
    """

    value: str
    label: str
    url: str
    on: bool = False
    count: int | None = 0
    live: str = ""


class Head(msgspec.Struct, frozen=True):
    """A column head; `sorted` is "ascending", "descending" or ""; `second` is in the same cell."""

    label: str
    url: str
    sorted: str
    css: str = ""
    second: Head | None = None


class Pager(msgspec.Struct, frozen=True):
    first: int
    last: int
    total: int
    previous_url: str
    next_url: str


class ListLinks:
    """The links of a list: `path` is that of its page."""

    def __init__(self, path: str, wanted: UrlState) -> None:
        self.path, self.wanted = path, wanted

    def url(self, **changes: Any) -> str:
        """The list with another choice, from its first page on."""
        query = self.wanted.replace(**{"page": 1, **changes}).query()
        return f"{self.path}?{query}" if query else self.path

    def url_as(self, answer_as: str, **changes: Any) -> str:
        """The list in another format, with another choice, from its first page on."""
        pairs = self.wanted.replace(**{"page": 1, **changes}).pairs()
        return f"{self.path}?{urlencode([*pairs, ('format', answer_as)])}"

    def chip(self, label: str, field: str, value: Any, **changes: Any) -> Chip:
        """The choice of one value."""
        on = getattr(self.wanted, field) == value
        return Chip(str(value), label, self.url(**{field: value}, **changes), on)

    def head(self, column: str, label: str, css: str = "", second: Head | None = None) -> Head:
        on, descending = self.wanted.column == column, self.wanted.descending
        turned = f"-{column}" if on and not descending else column
        word = "descending" if descending else "ascending"
        return Head(label, self.url(sort=turned), word if on else "", css, second)

    def pager(self, number: int, total: int) -> Pager:
        last = number * self.wanted.limit
        return Pager(
            first=last - self.wanted.limit + 1,
            last=min(last, total),
            total=total,
            previous_url=self.url(page=number - 1) if number > 1 else "",
            next_url=self.url(page=number + 1) if last < total else "",
        )

    def kept(self, *names: str) -> list[tuple[str, str]]:
        """The parameters that a form has no field for."""
        return [(name, value) for name, value in self.wanted.pairs() if name in names]
