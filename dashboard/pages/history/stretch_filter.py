"""Read from a URL which stretch of time is ranked, and how."""

from __future__ import annotations

from datetime import datetime

from django.http import QueryDict

from dashboard.parts.query.lease_filter import PAGE_SIZE
from dashboard.parts.query.time_range import StretchFilter, read_stretch
from dashboard.parts.query.url_parameters import LARGEST_PAGE, number, one_of, page_number, words
from leases.domain.kind import Kind

USUAL_RANGE = "1h"
BY_CHANGES, BY_GAP = SORTS = ("changes", "gap")


class RankingFilter(StretchFilter, frozen=True, kw_only=True):
    """No kinds mean all. The page has no playhead."""

    PARAMETERS = {
        "since": "from", "until": "to", "kinds": "kind", "sort": "sort", "limit": "limit",
        "page": "page",
    }  # fmt: skip
    kinds: tuple[Kind, ...] = ()
    sort: str = BY_CHANGES


def read_ranking_filter(query: QueryDict, now: datetime) -> RankingFilter:
    """Raises BadFilter."""
    name, since, until = read_stretch(query, now, USUAL_RANGE)
    return RankingFilter(
        range=name,
        since=since,
        until=until,
        kinds=words(query, "kind", Kind),
        sort=one_of(query, "sort", SORTS),
        page=page_number(query),
        limit=number(query, "limit", default=PAGE_SIZE, largest=LARGEST_PAGE),
    )
