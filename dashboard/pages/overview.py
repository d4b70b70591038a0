"""The overview: is anything wrong, and what just happened? And the way to another cluster."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, islice
from operator import attrgetter
from typing import Any
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import msgspec
from django.http import HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.urls import Resolver404, resolve, reverse
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.board import running_board
from dashboard.charts.bars import HoursChart, hours_chart
from dashboard.charts.histograms import SHOWN, USUAL_DURATION, AgesChart, ages_chart, spans
from dashboard.feed import ClusterFeed, Flappers
from dashboard.parts.attention import Attention, abandoned_line, attention, receiver_lines
from dashboard.parts.change_sentence import change_line, recent_changes
from dashboard.parts.key_figures import Calm, Kpi, calm, day_of, kpis, with_elections
from dashboard.parts.lease_row import RowView, row_view
from dashboard.parts.names import cluster_path
from dashboard.parts.node_summary import orphans_of
from leases.domain.figures import TROUBLE, severity
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.watched_times import Connection
from leases.history import find_changes
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked

ELECTIONS = 15
ATTENTION = 10
AGES_EVERY = timedelta(seconds=4)
SAMPLE = 1000  # heartbeats that are read to find the usual duration


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of the page that change with a phase or a holder."""

    cluster: str
    connection: Connection
    kpis: tuple[Kpi, ...]
    attention: list[Attention]
    more: int
    abandoned: Attention | None
    calm: Calm
    elections: list[RowView]
    election_total: int | None  # None: no list was read yet
    hours: HoursChart


def summary(watched: ClusterFeed, now: datetime) -> Overview:
    """Key figures, attention, elections and the day's changes of one cluster."""
    store, activity = watched.store, watched.activity
    cluster = store.cluster
    elections = list(store.select((Kind.ELECTION,), tuple(Phase)))
    counts = with_elections(store.counts(), elections)
    flappers, excused = watched.flappers.at(now), store.excused()
    lines = attention(
        cluster,
        store.select(tuple(Kind), TROUBLE),
        flapping=[(one, how) for key, how in flappers.items() if (one := store.get(key))],
        missed=list(activity.missed),
        orphans=orphans_of(watched),
        skipped=store.not_understood(),
        nameless_at=store.nameless_at,
        refused=watched.refused(now),
        going_on=watched.going_on(),
        care=watched.care(),
        now=now,
    )
    lines += receiver_lines(watched.failing_receivers(), now)
    shown = sorted(elections, key=partial(_severity, flappers))
    numbers, day = day_of(watched, now)
    return Overview(
        cluster=cluster,
        connection=store.connection.shown(now),
        kpis=kpis(cluster, counts, day, known=store.known, excused=excused),
        attention=lines[:ATTENTION],
        more=max(0, len(lines) - ATTENTION),
        abandoned=abandoned_line(cluster, excused, store.abandoned_after, now),
        calm=calm(store, counts),
        elections=[
            row_view(
                cluster,
                lease,
                now,
                flapping=flappers.get(lease.key),
                watched=watched.activity.watched,
            )
            for lease in shown[:ELECTIONS]
        ],
        election_total=len(elections) if store.known else None,
        hours=hours_chart(numbers, now, what="Changes of holder", blind=day.watched.spans),
    )


def _severity(flappers: Flappers, lease: Tracked) -> float:
    return severity(lease.phase, flaps=lease.key in flappers, excused=lease.excused)


# With the jumps of the clock before it, and when it was drawn.
_ages: WeakKeyDictionary[ClusterFeed, tuple[int, datetime, AgesChart]] = WeakKeyDictionary()


def ages_of(feed: ClusterFeed, now: datetime) -> AgesChart:
    """The chart of one cluster, which reads every heartbeat: kept for a few seconds, as of a clock
    that has not been set since.
    """
    kept, jumps = _ages.get(feed), len(feed.clock_moves)
    if kept is None or kept[0] != jumps or abs(now - kept[1]) >= AGES_EVERY:
        kept = _ages[feed] = (jumps, now, heartbeat_ages(feed.store, now))
    return kept[2]


_observed_at = attrgetter("observed_at")


def heartbeat_ages(store: Store, now: datetime) -> AgesChart:
    beats = {phase: store.in_any_order((Kind.HEARTBEAT,), (phase,)) for phase in SHOWN}
    duration = _usual_duration(chain.from_iterable(beats.values()))
    ages: dict[Phase, Counter[float]] = {phase: Counter() for phase in SHOWN}
    for phase, some in beats.items():
        # Those that one read of the watch brought share their moment.
        for at, number in Counter(map(_observed_at, some)).items():
            ages[phase][(now - at).total_seconds()] += number
    return ages_chart(spans(ages, duration), duration, of="heartbeats")


def _usual_duration(beats: Iterable[Tracked]) -> float:
    found = Counter(
        seconds
        for beat in islice(beats, SAMPLE)
        if (seconds := beat.lasting.lease.spec.lease_duration_seconds)
    )
    return float(found.most_common(1)[0][0]) if found else USUAL_DURATION


FEED = 12


@require_safe
@viewer_required
def overview(request: ClusterRequest, cluster: str) -> HttpResponse:
    """Key figures, attention, elections, two pictures and the newest changes of one cluster."""
    now = clock.now()
    as_of = request.cluster.as_of(now)
    hub = running_board().feeds[cluster]
    feed_seq, newest = recent_changes(cluster, FEED)
    context: dict[str, Any] = {
        "view": summary(hub, as_of),
        "chart": ages_of(hub, as_of),
        "changes": [change_line(change, now) for change in newest],
        "feed_seq": feed_seq,
    }
    return render(request, "overview/index.html", context)


PAGES = (
    "leases", "new_lease", "timeline", "holders", "nodes", "incidents", "near_misses",
    "reliability", "history", "stretch",
)  # fmt: skip
# A cursor is a place in one list, and a holder's identity belongs to one cluster.
DROPPED = ("page", "before", "holder", "absent", "format")


@require_safe
@viewer_required
def switch(request: ClusterRequest, cluster: str) -> HttpResponseBase:
    """Redirect to the same page with the filters that make sense here."""
    return redirect(same_page(cluster, request.cluster.store, request.GET.get("from", "")))


def same_page(cluster: str, store: Store, address: str) -> str:
    """The URL in `cluster` for the path and query of a page; the overview if it has no such page.

    A Lease that the cluster never had leads to its list of Leases, which says so.
    """
    path, _, query = address.partition("?")
    path, kept = unquote(path), QueryDict(query, mutable=True)
    try:
        found = resolve(path)
    except Resolver404:
        return cluster_path("overview", cluster)
    for name in DROPPED:
        kept.pop(name, None)
    if kept.get("namespace") not in store.namespaces():
        kept.pop("namespace", None)
    page, parts = str(found.url_name).removesuffix("_all"), [cluster]
    kept.pop("cluster", None)
    if "namespace" in found.kwargs and "\0" not in path:
        key = ObjectName(found.kwargs["namespace"], found.kwargs["name"])
        if _knows(store, key):
            page, parts = "lease", [cluster, key.namespace, key.name]
        else:
            page, kept = "leases", QueryDict(mutable=True)
            kept["absent"] = str(key)
    elif page not in PAGES:
        page, kept = "overview", QueryDict()
    url = reverse(page, args=parts)
    return f"{url}?{kept.urlencode()}" if kept else url


def _knows(store: Store, key: ObjectName) -> bool:
    """Whether the Lease is there, or was: its page then shows its history."""
    if store.get(key) is not None:
        return True
    return bool(find_changes.of_lease(store.cluster, key.namespace, key.name, 1))
