"""The filter, the order and the page of a list, and its URL."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Self
from urllib.parse import urlencode

import msgspec

from dashboard.parts.query.url_time import write_moment


class ListFilter(msgspec.Struct, frozen=True, kw_only=True):
    """PARAMETERS are the URL's names of the fields, in their order in the URL."""

    PARAMETERS: ClassVar[Mapping[str, str]] = {}
    sort: str = ""  # a column, with `-` in front to reverse the order
    page: int = 1
    limit: int = 50

    @property
    def descending(self) -> bool:
        return self.sort.startswith("-")

    @property
    def column(self) -> str:
        return self.sort.removeprefix("-")

    def replace(self, **changes: Any) -> Self:
        return msgspec.structs.replace(self, **changes)

    def pairs(self) -> list[tuple[str, str]]:
        """The parameters that differ from their default."""
        usual, found = type(self)(), []
        for field, name in self.PARAMETERS.items():
            value = getattr(self, field)
            if value != getattr(usual, field):
                values = value if isinstance(value, tuple) else (value,)
                found += [(name, _written(one)) for one in values]
        return found

    def query(self) -> str:
        return urlencode(self.pairs())

    def page_of(self, total: int) -> tuple[int, slice]:
        """The number and the place of the wanted page, or of the last one."""
        number = max(1, min(self.page, -(-total // self.limit)))
        return number, slice((number - 1) * self.limit, number * self.limit)


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return write_moment(value) if isinstance(value, datetime) else str(value)
