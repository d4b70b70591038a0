"""How reliable were elections: time without a holder and failovers, against an objective."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, check_edit, viewer_required
from dashboard.pages.reliability.filter import (
    USUAL_OBJECTIVE,
    ReliabilityFilter,
    read_percent,
    read_reliability_filter,
)
from dashboard.pages.reliability.rows import (
    MISSED,
    budget_text,
    csv,
    held_percent,
    item,
    last_days,
    line,
    period_name,
    state_of,
)
from dashboard.parts.formatting import age, counted, when
from dashboard.parts.frame import responses
from dashboard.parts.frame.list_controls import ListLinks
from dashboard.parts.query.url_parameters import BadFilter, quoted, typed
from leases.actions.set_objective import set_objective
from leases.domain.lease import ObjectName
from leases.domain.past.periods import DAY, Period, first_day, next_first_day, start_of
from leases.history.reliability.find_totals import (
    Found,
    PeriodTotals,
    by_day,
    default_objective,
    find_totals,
    sum_of,
)
from leases.history.reliability.save_totals import Scope

TEMPLATES = ("reliability/index.html", "reliability/_board.html")
FORMATS = ("", "html", "json", "csv")
FIELDS = ("date", "namespace", "lease", "objective")


@require_safe
@viewer_required
def reliability(request: ClusterRequest, cluster: str) -> HttpResponseBase:
    """The Leases or namespaces of a period as a page, as JSON, or all of them as CSV."""
    now = clock.now()
    try:
        answer_as = responses.read_format(request, FORMATS)
        wanted = read_reliability_filter(request.GET)
    except BadFilter as error:
        return _refuse(request, error, now)
    objective = _objective(cluster, wanted)
    period, since = wanted.length, wanted.first_day(now)
    found = find_totals(
        cluster,
        period,
        since,
        Scope(wanted.by),
        objective=objective,
        namespace=wanted.namespace,
        name=wanted.lease if wanted.by == Scope.LEASE else "",
    )
    if answer_as == "csv":
        lines = csv(item(cluster, period, since, one, objective) for one in found.all())
        name = f"{cluster}-reliability-{period.value}-{since.isoformat()}-{wanted.by}.csv"
        kind = "text/csv; charset=utf-8"
        return responses.stream(request, lines, content_type=kind, filename=name)
    page, place = wanted.page_of(found.total)
    shown = found.part(place)
    if answer_as == "json":
        items = [item(cluster, period, since, one, objective) for one in shown]
        following = responses.next_page_url(
            request, number=page, limit=wanted.limit, total=found.total
        )
        return responses.items(items, total=found.total, next_url=following, now=now)
    context = _around(request, wanted, objective, now)
    context |= _found(cluster, wanted, found, shown, objective, now)
    context["pager"] = ListLinks(request.path, wanted).pager(page, found.total)
    return responses.page(request, *TEMPLATES, context, query=wanted.query())


@require_POST
@viewer_required
def objective(request: ClusterRequest, cluster: str) -> HttpResponseBase:
    """POST `objective` in percent: the default of the cluster for everybody."""
    check_edit(request.user)
    value = request.POST.get("objective", "")
    try:
        percent = read_percent(value)
    except ValueError as error:
        refused = BadFilter(f"objective cannot be {quoted(value)}: {error}.")
        return _refuse(request, refused, clock.now(), default=True)
    set_objective(user=cast("User", request.user), cluster=cluster, percent=percent, at=clock.now())
    messages.success(request, f"The objective of {cluster} is {percent:g} % from now on.")
    back = request.POST.get("next", "")
    page = reverse("reliability", args=[cluster])
    good = back.startswith(page) and url_has_allowed_host_and_scheme(back, allowed_hosts=None)
    return redirect(back if good else page)


def _objective(cluster: str, wanted: ReliabilityFilter) -> float:
    if wanted.objective:
        return read_percent(wanted.objective)
    return _default(cluster)


def _default(cluster: str) -> float:
    return default_objective(cluster) or USUAL_OBJECTIVE


def _around(
    request: ClusterRequest, wanted: ReliabilityFilter, objective: float, now: datetime
) -> dict[str, Any]:
    """The choices, and the period before and after."""
    path = reverse("reliability", args=[request.cluster.name])
    links = ListLinks(path, wanted)
    period, since = wanted.length, wanted.first_day(now)
    following = next_first_day(period, since)
    words = {Period.DAY: "Day", Period.WEEK: "Week", Period.QUARTER: "Quarter"}
    return {
        "wanted": wanted,
        "periods": [links.chip(words[one], "period", one.value) for one in Period],
        "scopes": [
            links.chip("Leases", "by", "lease"),
            links.chip("Namespaces", "by", "namespace", lease=""),
        ],
        "name": period_name(period, since),
        "span": _span(since, following),
        "before_url": links.url(day=first_day(period, since - DAY).isoformat()),
        "after_url": links.url(day=following.isoformat()) if following <= now.date() else "",
        "current_url": links.url(day=""),
        "json_url": links.json_url(page=1),
        "csv_url": f"{links.json_url(page=1).removesuffix('json')}csv",
        "clear_url": path,
        "here_url": links.url(),
        "objective": f"{objective:g}",
        "default_objective": f"{_default(request.cluster.name):g}",
        "objective_url": reverse("reliability_objective", args=[request.cluster.name]),
        "given": {
            "date": wanted.day,
            "namespace": wanted.namespace,
            "lease": wanted.lease,
            "objective": wanted.objective,
        },
        "kept": links.kept("period", "by"),
    }


def _found(
    cluster: str,
    wanted: ReliabilityFilter,
    found: Found,
    shown: list[PeriodTotals],
    objective: float,
    now: datetime,
) -> dict[str, Any]:
    period, since = wanted.length, wanted.first_day(now)
    days = by_day(cluster, last_days(now), [one.key for one in shown])
    links = ListLinks(reverse("reliability", args=[cluster]), wanted)
    of_namespace = wanted.by == Scope.NAMESPACE
    lines = [
        line(
            cluster,
            one,
            days[one.key],
            objective=objective,
            url=links.url(by="lease", namespace=one.key.namespace) if of_namespace else "",
            now=now,
        )
        for one in shown
    ]
    name = "" if of_namespace else wanted.lease
    if name and not wanted.namespace:
        whole = found.sum()
    else:
        whole = sum_of(cluster, period, since, ObjectName(wanted.namespace, name))
    what = ("namespace",) if of_namespace else ("Lease",)
    return {
        "lines": lines,
        "total": found.total,
        "sum": _sum(whole, objective) if whole else None,
        "misses": f"{counted(found.missed, *what)} of {found.total:,} missed the objective",
        "without_data": counted(found.without_data, *what) if found.without_data else "",
        "until": _until(whole, next_first_day(period, since), now) if whole else "",
    }


def _sum(whole: PeriodTotals, objective: float) -> dict[str, Any]:
    totals = whole.totals
    state = state_of(totals, objective)
    return {
        "held": held_percent(totals),
        "missed": state == MISSED,
        "gap": age(totals.gap_seconds) if totals.gap_seconds > 0 else "none",
        "budget": budget_text(totals, objective) or "no data",
        "totals": totals,
        "watched": age(totals.watched_seconds) if totals.watched_seconds > 0 else "",
        "unwatched": age(totals.unwatched_seconds) if totals.unwatched_seconds >= 1 else "",
    }


def _until(whole: PeriodTotals, end: date, now: datetime) -> str:
    """Up to when it is counted, unless the period is over."""
    if whole.until >= start_of(end):
        return ""
    running = "This period is still running: counted" if now < start_of(end) else "Counted"
    return f"{running} up to {when(whole.until, now)} UTC"


def _span(since: date, following: date) -> str:
    last = following - DAY
    first = f"{since.day} {since:%b} {since.year}"
    return first if last == since else f"{first} to {last.day} {last:%b} {last.year}"


def _refuse(
    request: ClusterRequest,
    refused: BadFilter,
    now: datetime,
    *,
    default: bool = False,
) -> HttpResponse:
    """`default`: it was typed in the form of the default objective."""
    error = str(refused)
    if request.GET.get("format") in ("json", "csv"):
        return responses.json({"error": error}, status=400)
    usual = ReliabilityFilter()
    context = _around(request, usual, _objective(request.cluster.name, usual), now)
    context["given"] = {name: typed(request.GET, name) for name in FIELDS}
    context |= {"error": error, "bad": refused.parameter}
    if default:
        context |= {"bad": "default", "default_objective": typed(request.POST, "objective")}
    return responses.page(request, *TEMPLATES, context, status=400)
