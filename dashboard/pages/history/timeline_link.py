"""The links from History to the timeline of the same stretch and Leases, and to its ranking."""

from __future__ import annotations

from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.urls import reverse

from dashboard.pages.history.filter import HistoryView
from dashboard.parts.query.time_range import MAX_RANGE, SHORTEST
from dashboard.parts.query.url_time import write_moment
from leases.domain.kind import Kind
from leases.history.read.indexed_search import HistoryFilter

HOUR = timedelta(hours=1)
Pairs = list[tuple[str, str]]


def timeline_link(cluster: str, view: HistoryView, now: datetime) -> str:
    """The timeline shows elections unless told otherwise, so a search names all kinds."""
    wanted = view.wanted
    names = [wanted.namespace or "", wanted.lease or ""]
    text = "/".join(names) if all(names) else "".join(names) or wanted.text
    searches = bool(text or wanted.holder)
    kinds = wanted.kind or (tuple(kind.value for kind in Kind) if searches else ())
    query = [*_stretch(view, now), ("q", text), ("holder", wanted.holder or "")]
    query += [("kind", kind) for kind in kinds]
    return f"{reverse('timeline', args=[cluster])}?{urlencode([q for q in query if q[1]])}"


def ranking_link(cluster: str, view: HistoryView, now: datetime) -> str:
    """Without a beginning, the hour before the end."""
    pairs = _stretch(view, now)
    if pairs[0][0] == "at":
        until = min(now, view.wanted.until or now)
        pairs = [("from", write_moment(until - HOUR)), ("to", write_moment(until))]
    query = [*pairs, *(("kind", kind) for kind in view.wanted.kind)]
    return f"{reverse('stretch', args=[cluster])}?{urlencode([q for q in query if q[1]])}"


def _stretch(view: HistoryView, now: datetime) -> Pairs:
    """A stretch that the timeline cannot draw becomes an instant at its end."""
    wanted: HistoryFilter = view.wanted
    if wanted.since is None and wanted.until is None:
        return [("range", view.range)]
    until = min(now, wanted.until or now)
    since = view.as_of(now).since
    if since is not None and SHORTEST <= until - since <= MAX_RANGE:
        return [("from", write_moment(since)), ("to", write_moment(until))]
    return [("at", write_moment(until))]
