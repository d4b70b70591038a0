"""The wall display: is anything wrong? A wall link opens it without a login."""

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, wall_required
from dashboard.board import running_board
from dashboard.feed import Flappers
from dashboard.lists.url_parameters import BadFilter
from dashboard.parts.change_sentence import change_line, recent_changes
from dashboard.parts.flapping import flappers_of
from dashboard.parts.formatting import counted, listed, stopwatch
from dashboard.parts.incident_line import IncidentLine, care_words, incident_line, said_cause
from dashboard.parts.key_figures import Counts, calm, of_kind, unexcused
from dashboard.parts.lease_controls import says
from dashboard.parts.lease_filter import LeaseFilter, Matcher, find, wants
from dashboard.parts.lease_row import excuse_of, wall_tile
from dashboard.parts.wall_turns import SECONDS, turns_of
from dashboard.watched_cluster import WatchedCluster
from leases.domain.figures import FLAPPING_SEVERITY, SEVERITY, TROUBLE, is_in_trouble, severity
from leases.domain.incident import Incident
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.history.outbox import Care
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked

MOST = 3  # incidents with a row
HEIGHT = 2  # rows that each takes; `static/js/wall_lanes.js` has the same


class WallIncident(msgspec.Struct, frozen=True, kw_only=True):
    """`phase` is the worst of its Leases now."""

    line: IncidentLine
    cause: str
    leases: str
    phase: str


class WallIncidents(msgspec.Struct, frozen=True):
    """`covered` are the Leases in trouble that need no row of their own."""

    rows: list[WallIncident]
    covered: frozenset[ObjectName]
    more: int  # incidents without a row


def wall_incidents(
    store: Store,
    going_on: Iterable[Incident],
    wanted: LeaseFilter,
    now: datetime,
    care: Care | None = None,
) -> WallIncidents:
    """Those that save rows, the most Leases in trouble first; of a filtered wall, those with its
    Leases.
    """
    matches = wants(LeaseFilter(text=wanted.text, namespace=wanted.namespace, kinds=wanted.kinds))
    troubled = {one.key: one for one in store.select(tuple(Kind), TROUBLE) if _bad(one)}
    found = []
    for incident in going_on:
        explained = incident.explained
        bad = [
            one
            for key in incident.leases
            if (one := troubled.get(key)) and (one.phase is Phase.LATE or key in explained)
        ]
        if len(bad) > HEIGHT and (not says(wanted) or any(map(matches, bad))):
            found.append((incident, bad))
    found.sort(key=lambda pair: (-len(pair[1]), pair[0].began))
    shown = found[:MOST]
    covered = frozenset(lease.key for _, bad in shown for lease in bad)
    rows = [_row(incident, bad, now, care) for incident, bad in shown]
    return WallIncidents(rows, covered, len(found) - len(shown))


def taken_care(
    going_on: Iterable[Incident], rows: Sequence[WallIncident], care: Care, now: datetime
) -> list[str]:
    """What people do about the incidents without a row: `scheduler: ada takes care of it`."""
    shown = {row.line.id for row in rows}
    said = ((one, care_words(care, one, now)) for one in going_on if one.id not in shown)
    return [f"{listed([key.name for key in one.leases], 2)}: {word}" for one, word in said if word]


def _bad(lease: Tracked) -> bool:
    return is_in_trouble(lease.phase, lease.kind, excused=lease.excused)


def _row(
    incident: Incident, bad: Sequence[Tracked], now: datetime, care: Care | None
) -> WallIncident:
    worst = min((lease.phase for lease in bad), key=_severity, default=Phase.LATE)
    return WallIncident(
        line=incident_line(incident, now, care),
        cause=said_cause(incident),
        leases=counted(incident.lease_count, "Lease"),
        phase=worst.value,
    )


def _severity(phase: Phase) -> float:
    return severity(phase, flaps=False)


_WORDS: dict[float, str] = {
    **{SEVERITY[phase]: phase.value for phase in TROUBLE},
    FLAPPING_SEVERITY: "flapping",
}
# The worst first; `static/js/wall_lanes.js` has the same.
WORDS = tuple(_WORDS[rank] for rank in sorted(_WORDS))


def trouble_in(leases: Iterable[Tracked], flappers: Collection[ObjectName]) -> Counter[str]:
    """Count the Leases in trouble, each once, under its worst word."""
    ranks = (_rank(one, flappers) for one in leases)
    return Counter(_WORDS[rank] for rank in ranks if rank in _WORDS)


def all_trouble(
    store: Store,
    wanted: LeaseFilter,
    flappers: Collection[ObjectName],
    covered: Collection[ObjectName] = (),
) -> list[Tracked]:
    """The Leases in trouble that a filter selects, without those of incidents that have a row."""
    leases = {one.key: one for one in store.select(wanted.kinds, TROUBLE)}
    leases |= {key: one for key in flappers if (one := store.get(key)) is not None}
    for key in covered:
        leases.pop(key, None)
    matches = wants(wanted, lambda one: one.key in flappers)
    return [one for one in leases.values() if _rank(one, flappers) in _WORDS and matches(one)]


def _rank(lease: Tracked, flappers: Collection[ObjectName]) -> float:
    excused = bool(excuse_of(lease))
    return severity(lease.phase, flaps=lease.key in flappers, excused=excused)


def _worst_first(lease: Tracked, flappers: Flappers) -> tuple[float, float, datetime, str]:
    """A key for sorting trouble: what flaps most, or is in trouble longest, of one severity."""
    rank = _rank(lease, flappers)
    changes = flappers[lease.key].changes if rank == FLAPPING_SEVERITY else 0
    return rank, -changes, lease.trouble_since, str(lease.key)


def more(numbers: Mapping[str, int]) -> str:
    """`6 more expired, 1 more late`."""
    return ", ".join(f"{numbers[word]:,} more {word}" for word in WORDS if numbers.get(word))


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
    if request.screen is not None:
        feeds = running_board().feeds
        its_own = [feeds[one] for one in request.screen.clusters if one in feeds]
        context["turns"], context["turn"] = turns_of(its_own, cluster, now), SECONDS
    try:
        wanted = LeaseFilter.read(request.GET)
    except BadFilter as error:
        return render(request, "wall/index.html", context | {"error": str(error)}, status=400)
    flappers, counts = flappers_of(cluster, as_of), store.counts()
    going_on = [one for one in running_board().feeds[cluster].going_on() if one.shown]
    care = running_board().feeds[cluster].care()
    incidents = wall_incidents(store, going_on, wanted, as_of, care)
    context["incidents"] = incidents
    context["care"] = taken_care(going_on, incidents.rows, care, as_of)[:SIDE]
    context |= _lanes(store, wanted, flappers, incidents, as_of)
    context |= _side(store, counts, wanted, flappers, incidents, as_of)
    context["nothing"] = _nothing(request.cluster, wanted)
    context["summary"] = says(wanted)
    excused = store.excused()
    left = unexcused(counts, excused)
    abandoned_elections = sum(
        one.kind is Kind.ELECTION and one.phase is Phase.VACANT for one in excused
    )
    only_free = counts.get(Kind.ELECTION, {}).get(Phase.VACANT, 0) <= abandoned_elections
    numbers = [(phase.value, left[phase]) for phase in COUNTED]
    if flappers:
        numbers.insert(1, ("flapping", len(flappers)))
    context["counts"], context["only_free"] = numbers, only_free
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
    wanted = _of_lanes(wanted)
    found = find(
        store, wanted.replace(limit=LANES + len(incidents.covered)), flapping=flappers
    ).page
    troubled = all_trouble(store, wanted, flappers, incidents.covered)
    keys = {one.key for one in troubled} | incidents.covered
    worst = heapq.nsmallest(LANES, troubled, key=lambda one: _worst_first(one, flappers))
    shown = [*worst, *(one for one in found if one.key not in keys)][:LANES]
    bad = trouble_in(troubled, flappers)
    beyond = bad - trouble_in(shown, flappers)
    rows = ROWS - HEIGHT * len(incidents.rows)
    rest = bad - trouble_in(shown[: rows - 1], flappers)
    return {
        "tiles": _tiles(store.cluster, shown, flappers, now),
        "beyond": " ".join(str(beyond[word]) for word in WORDS),
        "rest": more(rest) if bad.total() > rows else "",
    }


def _of_lanes(wanted: LeaseFilter) -> LeaseFilter:
    return LeaseFilter(
        text=wanted.text,
        namespace=wanted.namespace,
        kinds=wanted.kinds or (Kind.ELECTION,),
        phases=wanted.phases,
        flapping=wanted.flapping,
        abandoned=wanted.abandoned or "false",
    )


def has_tile(wanted: LeaseFilter, flaps: Matcher) -> Matcher:
    """Whether a wall of this filter has a tile for a Lease, if there is room: as a lane, or beside
    them as another kind in trouble.
    """
    lanes = _of_lanes(wanted)
    matches = wants(lanes, flaps)
    return lambda one: matches(one) or (one.kind not in lanes.kinds and (_bad(one) or flaps(one)))


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
        key=lambda one: _worst_first(one, flappers),
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
