"""A stretch of one's own: its Leases, ranked by changes or by time without a holder."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse, HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.pages.history.stretch_export import ranked_csv, ranked_item
from dashboard.pages.history.stretch_filter import (
    BY_CHANGES,
    BY_GAP,
    USUAL_RANGE,
    RankingFilter,
    read_ranking_filter,
)
from dashboard.pages.history.stretch_ranking import Ranking, in_order, measured, rank
from dashboard.parts.formatting import age, counted, span_of, when
from dashboard.parts.frame import responses
from dashboard.parts.frame.list_controls import KIND_LABELS, ListLinks
from dashboard.parts.frame.stretch_links import stretch_links
from dashboard.parts.incident_line import incident_line
from dashboard.parts.lease.page_links import lease_url_at, shown_time
from dashboard.parts.lease.shown_name import shown_name
from dashboard.parts.query.incidents_between import incidents_between, incidents_url
from dashboard.parts.query.time_range import TimeRange, window
from dashboard.parts.query.url_parameters import BadFilter, typed
from dashboard.parts.query.url_time import write_moment
from leases.domain.kind import Kind
from leases.domain.severity import LONG_GAP_SECONDS
from leases.history.read.stretch_totals import LeaseTotals
from leases.history.write.watched_spans import unwatched_times

TEMPLATES = ("history/stretch.html", "history/_stretch_board.html")
FORMATS = ("", "html", "json", "csv")
INCIDENTS = 6


@require_safe
@viewer_required
def stretch(request: ClusterRequest, cluster: str) -> HttpResponseBase:
    """The ranked Leases as a page, as JSON, or all of them as CSV."""
    now = clock.now()
    try:
        answer_as = responses.read_format(request, FORMATS)
        wanted = read_ranking_filter(request.GET, now)
        shown = window(wanted, now)
    except BadFilter as error:
        return _refuse(request, error, now)
    ranking = rank(request.cluster.store, wanted, shown)
    # Nothing is known after the cluster was last heard of: a gap does not grow there.
    known = max(shown.since, min(shown.until, request.cluster.as_of(now)))
    span = {"since": shown.since, "until": known}
    if answer_as == "csv":
        lines = ranked_csv(cluster, measured(cluster, ranking.leases, **span), shown)
        name = f"{cluster}-leases-{shown.since:%Y%m%dT%H%M%SZ}-{shown.until:%Y%m%dT%H%M%SZ}.csv"
        kind = "text/csv; charset=utf-8"
        return responses.stream(request, lines, content_type=kind, filename=name)
    page, place = wanted.page_of(len(ranking.leases))
    leases = list(measured(cluster, ranking.leases[place], **span))
    if answer_as == "json":
        items = [ranked_item(cluster, one, shown) for one in leases]
        total = len(ranking.leases)
        following = responses.next_page_url(request, number=page, limit=wanted.limit, total=total)
        return responses.items(items, total=total, next_url=following, now=now)
    context = _around(request, wanted, shown, now) | _ranked(request, shown, ranking, now)
    time = shown_time(shown, wanted.range, None)
    context["rows"] = [
        _row(cluster, one, lease_url_at(cluster, one.key, time), shown)
        for one in in_order(leases, wanted.sort)
    ]
    context["incidents"] = _incidents(request, shown, now)
    context["pager"] = ListLinks(request.path, wanted).pager(page, len(ranking.leases))
    return responses.page(request, *TEMPLATES, context, query=wanted.query())


def _around(
    request: ClusterRequest, wanted: RankingFilter, shown: TimeRange, now: datetime
) -> dict[str, Any]:
    """The choices, and the same stretch on other pages."""
    links, cluster = ListLinks(request.path, wanted), request.cluster.name
    time = shown_time(shown, wanted.range, None)
    sorts = {BY_CHANGES: "Most changes", BY_GAP: "Longest without a holder"}
    since, until = (moment.replace(microsecond=0) for moment in (shown.since, shown.until))

    def page(name: str, query: dict[str, str]) -> str:
        kinds = [("kind", kind.value) for kind in wanted.kinds]
        pairs = [*((key, value) for key, value in query.items() if value), *kinds]
        return f"{reverse(name, args=[cluster])}?{urlencode(pairs)}"

    return {
        "links": stretch_links(links, wanted, shown, now=now),
        "sorts": [links.chip(label, "sort", value) for value, label in sorts.items()],
        "fixed_url": links.url(since=since, until=until) if shown.live else "",
        "json_url": links.json_url(page=1),
        "csv_url": f"{links.json_url(page=1).removesuffix('json')}csv",
        "changes_csv_url": page("history", time.of_history() | {"format": "csv"}),
        "history_url": page("history", time.of_history()),
        "timeline_url": page("timeline", time.of_timeline()),
        "clear_url": request.path,
        "kinds": [(kind.value, KIND_LABELS[kind], kind in wanted.kinds) for kind in Kind],
        "given": {"from": write_moment(wanted.since), "to": write_moment(wanted.until)},
        "sort": "" if wanted.sort == BY_CHANGES else wanted.sort,
        "says": _says(shown, now),
    }


def _says(shown: TimeRange, now: datetime) -> str:
    span = "Last " if shown.live else f"{when(shown.since, now)} to {when(shown.until, now)}, "
    return f"{span}{span_of(shown.length)}"


def _ranked(
    request: ClusterRequest, shown: TimeRange, ranking: Ranking, now: datetime
) -> dict[str, Any]:
    cluster = request.cluster.name
    blind = unwatched_times(cluster, since=shown.since, until=shown.until, now=now)
    lost = sum(one.gap_seconds > 0 for one in ranking.leases)
    counted_from = ranking.counted_from
    return {
        "total": len(ranking.leases),
        "sum": f"{counted(ranking.changes, 'change')} of {counted(len(ranking.leases), 'Lease')}"
        f", {lost:,} of them some time without a holder",
        "blind_for": age(sum(one.seconds for one in blind)) if blind else "",
        "counted_from": when(counted_from, now) if counted_from else "",
    }


def _incidents(request: ClusterRequest, shown: TimeRange, now: datetime) -> dict[str, Any]:
    """The incidents that went on in the stretch: those that go on and the longest gaps first."""
    cluster, as_of = request.cluster.name, request.cluster.as_of(now)
    found = incidents_between(cluster, shown.since, shown.until)
    worst = sorted(found, key=lambda one: (one.ended is not None, -(one.worst_gap_seconds or 0.0)))
    return {
        "lines": [incident_line(one, as_of) for one in worst[:INCIDENTS]],
        "total": len(found),
        "url": incidents_url(cluster, shown.since, shown.until),
    }


def _row(cluster: str, one: LeaseTotals, url: str, shown: TimeRange) -> dict[str, Any]:
    share = 100 * one.gap_seconds / (shown.until - shown.since).total_seconds()
    return {
        "key": str(one.key),
        "namespace": one.key.namespace,
        "shown": shown_name(cluster, one.key),
        "name": one.key.name,
        "url": url,
        "kind": one.kind.value,
        "changes": one.changes,
        "handovers": one.handovers,
        "gap": age(one.gap_seconds) if one.gap_seconds else "",
        "may_be_free": one.kind is Kind.LOCK,
        "gap_is_long": one.gap_seconds >= LONG_GAP_SECONDS,
        "share": round(min(100.0, share), 2),
    }


def _refuse(request: ClusterRequest, refused: BadFilter, now: datetime) -> HttpResponse:
    error = str(refused)
    if request.GET.get("format") in ("json", "csv"):
        return responses.json({"error": error}, status=400)
    usual = RankingFilter(range=USUAL_RANGE)
    context = _around(request, usual, window(usual, now), now)
    context["given"] = {name: typed(request.GET, name) for name in ("from", "to")}
    context |= {"error": error, "bad": refused.parameter}
    return responses.page(request, *TEMPLATES, context, status=400)
