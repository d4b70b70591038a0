"""The wall display: is anything wrong? A wall link opens it without a login."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, wall_required
from dashboard.board import running_board
from dashboard.pages.wall.incident_rows import HEIGHT, WallIncidents, wall_incidents
from dashboard.pages.wall.trouble_counts import WORDS, all_trouble, more, trouble_in
from dashboard.parts.all_clear import calm
from dashboard.parts.change_sentence import change_line
from dashboard.parts.formatting import stopwatch
from dashboard.parts.frame.list_controls import says
from dashboard.parts.kept.flapping_leases import Flappers, flappers_of
from dashboard.parts.kept.watched_cluster import WatchedCluster
from dashboard.parts.key_figures import Counts, of_kind, unexcused
from dashboard.parts.lease.wall_tile import wall_tile
from dashboard.parts.query.lease_filter import LeaseFilter, read_filter
from dashboard.parts.query.lease_search import find
from dashboard.parts.query.recent_changes import recent_changes
from dashboard.parts.query.url_parameters import BadFilter
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from leases.domain.severity import TROUBLE, is_in_trouble, severity
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked

ROWS = 8  # lanes without a script; with one, the style sheet decides
LANES = 300  # a page of the live socket may show 500 Leases
SIDE = 4
TICKER = 6
COUNTED = (Phase.EXPIRED, Phase.VACANT, Phase.LATE, Phase.HELD)


@require_safe
@wall_required
def wall(request: ClusterRequest, cluster: str) -> HttpResponse:
    """Counts, elections with trouble first, other trouble, and a ticker."""
    now = clock.now()
    store = request.cluster.store
    as_of = request.cluster.as_of(now)
    feed_seq, newest = recent_changes(cluster, TICKER)
    context: dict[str, Any] = {
        "blank": not request.cluster.synced and not request.cluster.lease_count,
        "lines": [change_line(change, now) for change in newest],
        "feed_seq": feed_seq,
        "not_live_for": stopwatch(now - as_of),
    }
    try:
        wanted = read_filter(request.GET)
    except BadFilter as error:
        return render(request, "wall/index.html", context | {"error": str(error)}, status=400)
    flappers, counts = flappers_of(cluster, as_of), store.counts()
    going_on = running_board().publisher.hubs[cluster].going_on()
    incidents = wall_incidents(store, going_on, wanted, as_of)
    context["incidents"] = incidents
    context |= _lanes(store, wanted, flappers, incidents, as_of)
    context |= _side(store, counts, wanted, flappers, incidents, as_of)
    context["nothing"] = _nothing(request.cluster, wanted)
    context["summary"] = says(wanted)
    excused = store.excused()
    left = unexcused(counts, excused)
    numbers = [(phase.value, left[phase]) for phase in COUNTED]
    if flappers:
        numbers.insert(1, ("flapping", len(flappers)))
    context["counts"] = numbers
    context["abandoned"] = sum(one.abandoned for one in excused)
    return render(request, "wall/index.html", context)


def _nothing(cluster: WatchedCluster, wanted: LeaseFilter) -> str:
    """Why the wall shows no tile."""
    if not cluster.lease_count:
        return f"There are no Leases in {cluster.name}."
    if says(wanted):
        return "No Lease matches this wall's filter."
    if cluster.store.counts()[Kind.ELECTION][Phase.VACANT]:
        return f"All elections in {cluster.name} are abandoned."
    return f"No Lease in {cluster.name} looks like an election."


def _lanes(
    store: Store,
    wanted: LeaseFilter,
    flappers: Flappers,
    incidents: WallIncidents,
    now: datetime,
) -> dict[str, Any]:
    """The elections, or the kinds of the URL, worst first, below the incidents that cover some;
    `rest` counts those without a row.

    `beyond` counts the trouble that has no tile on the page: the page adds what it hides itself.
    """
    wanted = LeaseFilter(
        text=wanted.text,
        namespace=wanted.namespace,
        kinds=wanted.kinds or (Kind.ELECTION,),
        phases=wanted.phases,
        flapping=wanted.flapping,
        abandoned=wanted.abandoned or "false",
    )
    found = find(
        store, wanted.replace(limit=LANES + len(incidents.covered)), flapping=flappers
    ).page
    shown = [one for one in found if one.key not in incidents.covered][:LANES]
    bad = all_trouble(store, wanted, flappers, incidents.covered)
    beyond = bad - trouble_in(shown, flappers)
    rows = ROWS - HEIGHT * len(incidents.rows)
    rest = bad - trouble_in(shown[: rows - 1], flappers)
    return {
        "tiles": _tiles(store.cluster, shown, flappers, now),
        "beyond": " ".join(str(beyond[word]) for word in WORDS),
        "rest": more(rest) if bad.total() > rows else "",
    }


def _tiles(
    cluster: str, leases: Iterable[Tracked], flappers: Flappers, now: datetime
) -> list[dict[str, Any]]:
    return [wall_tile(cluster, one, now, flapping=flappers.get(one.key)) for one in leases]


def _side(
    store: Store,
    counts: Counts,
    wanted: LeaseFilter,
    flappers: Flappers,
    incidents: WallIncidents,
    now: datetime,
) -> dict[str, Any]:
    """The Leases of other kinds that are in trouble; `covered` of them are in an incident's row."""
    kinds = wanted.kinds or (Kind.ELECTION,)
    others = [kind for kind in Kind if kind not in kinds]
    bad = {
        lease.key: lease
        for lease in store.select(others, TROUBLE)
        if is_in_trouble(lease.phase, lease.kind, excused=lease.excused)
    }
    bad |= {k: one for k in flappers if (one := store.get(k)) and one.kind in others}
    covered = [bad.pop(key) for key in incidents.covered if key in bad]
    worst = heapq.nsmallest(
        SIDE,
        bad.values(),
        key=lambda one: (severity(one.phase, flaps=one.key in flappers), one.phase_since),
    )
    numbers = [(sum(counts.get(kind, {}).values()), kind) for kind in Kind if kind not in kinds]
    largest = sorted((pair for pair in numbers if pair[0]), reverse=True)[:2]
    return {
        "others": _tiles(store.cluster, worst, flappers, now),
        "covered": f"{len(covered):,} in trouble, shown as incidents" if covered else "",
        "more": more(trouble_in(bad.values(), flappers) - trouble_in(worst, flappers)),
        "calm": calm(store, counts, kinds=others, title="All in time"),
        "other_total": ", ".join(of_kind(*pair) for pair in largest) or "Other kinds",
    }
