"""Write a filter of changes as the query string of the History page."""

from __future__ import annotations

from urllib.parse import urlencode

from dashboard.parts.query.url_time import write_moment
from leases.history.read.indexed_search import HistoryFilter


def history_query(wanted: HistoryFilter, **more: str) -> str:
    """The query string of a filter; `more` adds parameters, or replaces some of the filter."""
    pairs = [("change", word) for word in wanted.change]
    pairs += [("kind", word) for word in wanted.kind]
    pairs += [("cause", word) for word in wanted.cause]
    texts = filter_texts(wanted) | more
    pairs += [(name, value) for name, value in texts.items() if value]
    return urlencode(pairs)


def filter_texts(wanted: HistoryFilter) -> dict[str, str]:
    """The single values of a filter by parameter; "" where it filters nothing."""
    return {
        "namespace": wanted.namespace or "",
        "lease": wanted.lease or "",
        "holder": wanted.holder or "",
        "q": wanted.text,
        "inferred": "" if wanted.inferred is None else str(wanted.inferred).lower(),
        "since": write_moment(wanted.since),
        "until": write_moment(wanted.until),
    }
