"""Read from a URL which holders are wanted."""

from __future__ import annotations

from django.http import QueryDict

from dashboard.parts.query.list_filter import ListFilter
from dashboard.parts.query.time_range import RANGES
from dashboard.parts.query.url_parameters import (
    LARGEST_PAGE,
    BadFilter,
    number,
    one_of,
    page_number,
    sort_by,
    text,
    words,
)
from leases.domain.kind import Kind

PAGE_SIZE = 25
USUAL_RANGE = "24h"
HOST, IDENTITY = GROUPS = ("host", "identity")
DOWN, NAME, TERMS = SORTS = ("down", "name", "terms")
NOW, PAST = HOLDS = ("now", "past")
# Without heartbeats: nodes that hold only their own are counted, not listed.
KINDS = (Kind.ELECTION, Kind.LOCK, Kind.IDENTITY, Kind.UNKNOWN)


class HolderFilter(ListFilter, frozen=True, kw_only=True):
    """An empty field filters nothing. `text` is part of an identity or of the name of a held Lease;
    `holds` is "now" for holders of today, "past" for former ones.
    """

    PARAMETERS = {
        "text": "q", "holds": "holds", "kinds": "kind", "group": "group", "range": "range",
        "sort": "sort", "limit": "limit", "page": "page",
    }  # fmt: skip
    text: str = ""
    kinds: tuple[Kind, ...] = ()
    group: str = HOST
    holds: str = ""
    range: str = USUAL_RANGE
    sort: str = DOWN
    limit: int = PAGE_SIZE


def read_holder_filter(query: QueryDict) -> HolderFilter:
    """Raises BadFilter."""
    kinds = words(query, "kind", Kind)
    if Kind.HEARTBEAT in kinds:
        choices = ", ".join(KINDS)
        raise BadFilter(f"kind cannot be 'heartbeat' here: use one of {choices}, or nodes/.")
    return HolderFilter(
        text=text(query, "q"),
        kinds=kinds,
        group=one_of(query, "group", GROUPS, HOST),
        holds=one_of(query, "holds", ("", *HOLDS), ""),
        range=one_of(query, "range", tuple(RANGES), USUAL_RANGE),
        sort=sort_by(query, SORTS),
        page=page_number(query),
        limit=number(query, "limit", default=PAGE_SIZE, largest=LARGEST_PAGE),
    )
