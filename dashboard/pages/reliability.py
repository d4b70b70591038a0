"""How reliable were elections: time without a holder and failovers, against an objective."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import MAXYEAR, MINYEAR, date, datetime, timedelta
from typing import Any, cast

import msgspec
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, check_edit, viewer_required
from dashboard.board import running_board
from dashboard.charts.bars import DayBars, day_bars
from dashboard.lists import responses
from dashboard.lists.controls import ListLinks
from dashboard.lists.url_parameters import (
    FILTERS,
    LIMIT,
    PAGE,
    BadFilter,
    ListFilter,
    Parameter,
    one_of,
    quoted,
    text,
    typed,
)
from dashboard.parts.formatting import age, counted, when
from dashboard.parts.key_figures import Measure, lease_measures
from dashboard.parts.lease_filter import PAGE_SIZE
from dashboard.parts.names import ShownName, cluster_path, lease_url, shown_name
from leases.actions.overrides import set_objective
from leases.domain.figures import (
    DAY,
    Period,
    Totals,
    allowed_share,
    budget_left,
    first_day,
    is_at_risk,
    misses,
    next_first_day,
    start_of,
)
from leases.domain.lease import ObjectName
from leases.history.export import csv_cell
from leases.history.reliability import (
    LATE,
    Found,
    PeriodTotals,
    Scope,
    by_day,
    default_objective,
    find_totals,
    sum_of,
)
from leases.wire.microtime import format_microtime

USUAL_OBJECTIVE = 99.9
BY = (Scope.LEASE.value, Scope.NAMESPACE.value)
PERIODS = (Period.WEEK.value, Period.DAY.value, Period.QUARTER.value)
_PERCENT = re.compile(r"\d{1,3}(\.\d{1,4})?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_YEARS = range(MINYEAR + 1, MAXYEAR)


def read_percent(value: str) -> float:
    """Raises ValueError, whose text says what to write instead."""
    value = value.strip()
    if not _PERCENT.fullmatch(value) or not 0 < float(value) <= 100:
        raise ValueError("write percent above 0 up to 100, such as 99.9")
    return float(value)


def _objective(query: QueryDict, name: str) -> str:
    value = text(query, name)
    if value:
        try:
            read_percent(value)
        except ValueError as error:
            raise BadFilter(f"{name} cannot be {quoted(value)}: {error}.") from error
    return value


def _day(query: QueryDict, name: str) -> str:
    value = text(query, name)
    try:
        good = not value or (_DATE.fullmatch(value) and date.fromisoformat(value).year in _YEARS)
    except ValueError:
        good = False
    if not good:
        raise BadFilter(f"{name} cannot be {quoted(value)}: write a day, such as 2026-11-20.")
    return value


class ReliabilityFilter(ListFilter, frozen=True, kw_only=True):
    """`day` is any day of the period, "" for the current one; `objective` "" for the default."""

    PARAMETERS = {
        "period": Parameter("period", one_of, PERIODS),
        "day": Parameter("date", _day),
        "by": Parameter("by", one_of, BY),
        "namespace": Parameter("namespace"),
        "lease": Parameter("lease"),
        "objective": Parameter("objective", _objective),
        "limit": LIMIT,
        "page": PAGE,
    }
    period: str = PERIODS[0]
    day: str = ""
    by: str = BY[0]
    namespace: str = ""
    lease: str = ""
    objective: str = ""
    limit: int = PAGE_SIZE

    @property
    def length(self) -> Period:
        return Period(self.period)

    def first_day(self, now: datetime) -> date:
        day = date.fromisoformat(self.day) if self.day else now.date()
        return first_day(self.length, day)


FILTERS["reliability"] = ReliabilityFilter
DAYS = 14
FIELDS = ("cluster", "period", "from", "until", "namespace", "name", "objective", "state",
          "held_percent", "gap_seconds", "budget_left_seconds", "watched_seconds",
          "unwatched_seconds", "handovers", "failovers", "near_misses")  # fmt: skip
MISSED, MET, NO_DATA = "missed", "met", "no data"
AT_RISK, ON_COURSE = "at risk", "on course"  # of a period that goes on
AT_RISK_MEANS = "At risk: if the period ended now, too much of the watched time had no holder."
SHORTEST = 0.1  # seconds: `age` says tenths
SHAPES = {MISSED: "expired", AT_RISK: "late", MET: "held", ON_COURSE: "held", NO_DATA: "untimed"}


class ReliabilityLine(msgspec.Struct, frozen=True, kw_only=True):
    """One Lease or namespace in a period, in words."""

    key: ObjectName
    shown: ShownName | str
    url: str
    state: str
    shape: str
    held: str
    totals: Totals
    gap: str
    budget: str
    over: bool
    measures: Mapping[str, Measure]
    unwatched: str
    bars: DayBars
    says: str


def state_of(totals: Totals, objective: float, remaining: float = 0.0) -> str:
    """`remaining`: seconds of the period that are still to come."""
    if totals.watched_seconds <= 0:
        return NO_DATA
    if misses(totals, objective, remaining):
        return MISSED
    if remaining <= 0:
        return MET
    return AT_RISK if is_at_risk(totals, objective) else ON_COURSE


def held_percent(totals: Totals) -> str:
    """Thousandths, rounded down: `100 %` means all of the watched time."""
    if totals.watched_seconds <= 0:
        return NO_DATA
    if totals.gap_seconds <= 0:
        return "100 %"
    return f"{min(99_999, int((1 - totals.lost_share) * 100_000)) / 1000:.3f} %"


def budget_text(totals: Totals, objective: float, remaining: float = 0.0) -> tuple[str, str]:
    """What is left of the budget, and "over" if that is by how much it is exceeded."""
    if totals.watched_seconds <= 0:
        return "", ""
    left = budget_left(totals, objective, remaining)
    if -SHORTEST < left < 0:
        return "used up", ""
    return age(abs(left)), "" if left >= 0 else "over"


def remaining_seconds(period: Period, since: date, now: datetime) -> float:
    """How much of a period is still to come; 0 once it is over."""
    end = start_of(next_first_day(period, since))
    return max(0.0, (end - now).total_seconds())


def last_days(now: datetime) -> list[date]:
    today = now.date()
    return [today - timedelta(days=back) for back in range(DAYS - 1, -1, -1)]


def line(
    cluster: str,
    one: PeriodTotals,
    days: Mapping[date, Totals],
    *,
    objective: float,
    remaining: float,
    url: str,
    now: datetime,
    since: datetime,
) -> ReliabilityLine:
    totals, state = one.totals, state_of(one.totals, objective, remaining)
    known = [days.get(day, Totals()) for day in last_days(now)]
    shares = [day.lost_share if day.watched_seconds > 0 else None for day in known]
    left = [*[0.0] * (DAYS - 1), remaining_seconds(Period.DAY, now.date(), now)]
    missed = sum(misses(day, objective, rest) for day, rest in zip(known, left, strict=True))
    blind = shares.count(None)
    return ReliabilityLine(
        key=one.key,
        shown=shown_name(cluster, one.key) if one.key.name else one.key.namespace,
        url=url or lease_url(cluster, one.key),
        state=state,
        shape=SHAPES[state],
        held=held_percent(totals),
        totals=totals,
        gap=age(totals.gap_seconds) if totals.gap_seconds > 0 else "",
        budget=" ".join(filter(None, budget_text(totals, objective, remaining))),
        over=state == MISSED,
        measures=lease_measures(one.key, since, one.until),
        unwatched=age(totals.unwatched_seconds) if totals.unwatched_seconds >= 1 else "",
        bars=day_bars(shares, allowed_share(objective)),
        says=f"Last {DAYS} days: {counted(missed, 'day')} missed the objective, "
        f"{counted(blind, 'day')} without data",
    )


def item(
    cluster: str,
    period: Period,
    since: date,
    one: PeriodTotals,
    objective: float,
    remaining: float = 0.0,
) -> dict[str, Any]:
    totals = one.totals
    watched = totals.watched_seconds > 0
    values = (
        cluster,
        period.value,
        since.isoformat(),
        format_microtime(one.until),
        one.key.namespace,
        one.key.name or None,
        objective,
        state_of(totals, objective, remaining).replace(" ", "_"),
        round(100 * (1 - totals.lost_share), 6) if watched else None,
        round(totals.gap_seconds, 3),
        round(budget_left(totals, objective, remaining), 3) if watched else None,
        round(totals.watched_seconds, 3),
        round(totals.unwatched_seconds, 3),
        totals.handovers,
        totals.failovers,
        totals.near_misses,
    )
    return dict(zip(FIELDS, values, strict=True))


def csv(items: Iterable[dict[str, Any]]) -> Iterator[str]:
    yield ",".join(FIELDS) + "\r\n"
    for one in items:
        yield ",".join(map(csv_cell, one.values())) + "\r\n"


def period_name(period: Period, since: date) -> str:
    """`20 Nov 2026`, `Week 47 of 2026`, `Quarter 4 of 2026`."""
    if period is Period.WEEK:
        year, week, _ = since.isocalendar()
        return f"Week {week} of {year}"
    if period is Period.QUARTER:
        return f"Quarter {(since.month + 2) // 3} of {since.year}"
    return f"{since.day} {since:%b} {since.year}"


TEMPLATES = ("reliability/index.html", "reliability/_board.html")
FORMATS = ("", "html", "json", "csv")
TYPED = ("date", "namespace", "lease", "objective")


@require_safe
@viewer_required
def reliability(request: ClusterRequest, cluster: str) -> HttpResponseBase:
    """The Leases or namespaces of a period as a page, as JSON, or all of them as CSV."""
    now = clock.now()
    try:
        answer_as = responses.read_format(request, FORMATS)
        wanted = ReliabilityFilter.read(request.GET)
    except BadFilter as error:
        return _refuse(request, error, now)
    objective = _chosen_objective(cluster, wanted)
    period, since = wanted.length, wanted.first_day(now)
    found = find_totals(
        cluster,
        period,
        since,
        Scope(wanted.by),
        objective=objective,
        remaining=remaining_seconds(period, since, now),
        namespace=wanted.namespace,
        name=wanted.lease if wanted.by == Scope.LEASE else "",
    )
    if answer_as == "csv":
        lines = csv(
            item(cluster, period, since, one, objective, found.remaining_of(one.key))
            for one in found.all()
        )
        name = f"{cluster}-reliability-{period.value}-{since.isoformat()}-{wanted.by}.csv"
        kind = "text/csv; charset=utf-8"
        return responses.stream(request, lines, content_type=kind, filename=name)
    page, place = wanted.page_of(found.total)
    shown = found.part(place)
    if answer_as == "json":
        items = [
            item(cluster, period, since, one, objective, found.remaining_of(one.key))
            for one in shown
        ]
        following = responses.next_page_url(
            request, number=page, limit=wanted.limit, total=found.total
        )
        told = responses.unless_live(request.cluster, now)
        return responses.items(items, total=found.total, next_url=following, now=now, told=told)
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
    page = cluster_path("reliability", cluster)
    good = back.startswith(page) and url_has_allowed_host_and_scheme(back, allowed_hosts=None)
    return redirect(back if good else page)


def _chosen_objective(cluster: str, wanted: ReliabilityFilter) -> float:
    if wanted.objective:
        return read_percent(wanted.objective)
    return _default(cluster)


def _default(cluster: str) -> float:
    return default_objective(cluster) or USUAL_OBJECTIVE


def _around(
    request: ClusterRequest, wanted: ReliabilityFilter, objective: float, now: datetime
) -> dict[str, Any]:
    """The choices, and the period before and after."""
    path = cluster_path("reliability", request.cluster.name)
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
        "json_url": links.url_as("json"),
        "csv_url": links.url_as("csv"),
        "clear_url": path,
        "here_url": links.url(),
        "objective": f"{objective:g}",
        "default_objective": f"{_default(request.cluster.name):g}",
        "objective_url": cluster_path("reliability_objective", request.cluster.name),
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
    links = ListLinks(cluster_path("reliability", cluster), wanted)
    of_namespace = wanted.by == Scope.NAMESPACE
    lines = [
        line(
            cluster,
            one,
            days[one.key],
            objective=objective,
            remaining=found.remaining_of(one.key),
            since=start_of(since),
            url=links.url(by="lease", namespace=one.key.namespace) if of_namespace else "",
            now=now,
        )
        for one in shown
    ]
    name = "" if of_namespace else wanted.lease
    if name and not wanted.namespace:
        whole, remaining = found.sum(), found.remaining * found.total
    else:
        whole = sum_of(cluster, period, since, ObjectName(wanted.namespace, name))
        remaining = found.remaining_of(ObjectName(wanted.namespace, name))
    what = ("namespace",) if of_namespace else ("Lease",)
    goes_on = now < start_of(next_first_day(period, since)) + LATE
    return {
        "lines": lines,
        "total": found.total,
        "sum": _sum(whole, objective, remaining, start_of(since)) if whole else None,
        "misses": f"{counted(found.missed, *what)} of {found.total:,} missed the objective",
        "at_risk": f"{found.at_risk:,} at risk" if found.at_risk else "",
        "at_risk_means": AT_RISK_MEANS,
        "without_data": counted(found.without_data, *what) if found.without_data else "",
        "until": _until(whole, next_first_day(period, since), now) if whole else "",
        "goes_on": goes_on,
        "counts": running_board().counts.says if goes_on else None,
    }


def _sum(
    whole: PeriodTotals, objective: float, remaining: float, since: datetime
) -> dict[str, Any]:
    totals = whole.totals
    state = state_of(totals, objective, remaining)
    budget, over = budget_text(totals, objective, remaining)
    return {
        "held": held_percent(totals),
        "missed": state == MISSED,
        "state": state,
        "gap": age(totals.gap_seconds) if totals.gap_seconds > 0 else "none",
        "budget": budget or "no data",
        "over": over,
        "totals": totals,
        "watched": age(totals.watched_seconds) if totals.watched_seconds > 0 else "",
        "unwatched": age(totals.unwatched_seconds) if totals.unwatched_seconds >= 1 else "",
        "measures": lease_measures(whole.key, since, whole.until),
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
    if request.GET.get("format") in ("json", "csv"):
        return responses.json({"error": str(refused)}, status=400)
    usual = ReliabilityFilter()
    context = _around(request, usual, _chosen_objective(request.cluster.name, usual), now)
    context["given"] = {name: typed(request.GET, name) for name in TYPED}
    context |= {"error": refused.said, "bad": refused.parameter}
    if default:
        context |= {
            "bad": "default",
            "default_objective": typed(request.POST, "objective"),
        }
    return responses.page(request, *TEMPLATES, context, status=400)
