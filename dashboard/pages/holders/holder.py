"""One holder: what it holds, its terms, where it runs, what goes down with it, its incidents."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import msgspec
from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, check_view, find_cluster, viewer_required
from dashboard.board import running_board
from dashboard.charts.lanes import spells
from dashboard.charts.time_axis import Scale
from dashboard.lists import responses
from dashboard.lists.controls import ListLinks
from dashboard.lists.url_parameters import BadFilter, ListFilter, Parameter, one_of
from dashboard.pages.holders.list import holder_item, holder_rows, lane_says, spell_title
from dashboard.parts import holdings
from dashboard.parts.formatting import capitalized, counted, thousands
from dashboard.parts.holder_place import SECONDS, place_view
from dashboard.parts.incident_line import as_known, incident_line
from dashboard.parts.key_figures import Kpi
from dashboard.parts.lease_row import row_view
from dashboard.parts.names import cluster_path, holder_view, is_digest, part_of, shown_name
from dashboard.parts.page_links import NotKnown, holder_page
from dashboard.parts.time_range import RANGES, range_label
from dashboard.watched_cluster import WatchedCluster
from leases.domain.figures import Span
from leases.domain.lease import ObjectName
from leases.domain.terms import Life
from leases.history.find_incidents import find_incidents
from leases.history.timeline_lanes import lanes
from leases.history.watched_spans import blind_between
from leases.tracking.tracked_lease import Tracked

MOST = 60  # Leases with a lane
INCIDENTS = 8
LONGEST = max(RANGES, key=RANGES.__getitem__)


class HolderStretch(ListFilter, frozen=True, kw_only=True):
    PARAMETERS = {"range": Parameter("range", one_of, tuple(RANGES))}
    range: str = holdings.USUAL_RANGE


class Asked(msgspec.Struct, frozen=True):
    """The holder that a path names. `held` counts all validly held Leases of its cluster."""

    cluster: WatchedCluster
    holder: holdings.HolderSummary
    wanted: HolderStretch
    held: int
    now: datetime

    @property
    def keys(self) -> list[ObjectName]:
        """The Leases that it holds or held: those that lose a holder with it first."""
        holder = self.holder
        now = sorted(holder.all_named_by, key=lambda one: (not holdings.is_held(one), one.key))
        keys = [one.key for one in now] + sorted({one.key for one in holder.ended})
        return list(dict.fromkeys(keys))


def _asked(cluster: WatchedCluster, named: str, wanted: HolderStretch) -> Asked:
    """Raises Http404."""
    now = cluster.as_of(clock.now())
    known = holdings.holdings_of(cluster.store)
    found, held = known.one(named, holdings.HolderFilter(range=wanted.range), now, cluster.pods)
    if found is None:
        text = (
            f"No Lease of {cluster.name} names {named} as its holder now, and none did in the "
            f"last {range_label(wanted.range)}. History knows older ones."
        )
        part = "" if is_digest(named) else urlencode({"q": part_of(named)})
        url = f"{cluster_path('history', cluster.name)}?{part}".rstrip("?")
        raise NotKnown(text, url, "Look in History")
    return Asked(cluster, found, wanted, held, now)


@require_safe
@viewer_required
def holder(request: ClusterRequest, _cluster: str, host: str) -> HttpResponseBase:
    """The holder of this name, or of this digest of its name, as a page or as JSON."""
    try:
        answer_as = responses.read_format(request)
        wanted = HolderStretch.read(request.GET)
    except BadFilter as error:
        if request.GET.get("format") == "json":
            return responses.json({"error": str(error)}, status=responses.BAD_REQUEST)
        context = {"error": str(error), "holder_url": request.path}
        return render(request, "holders/holder.html", context, status=responses.BAD_REQUEST)
    asked = _asked(request.cluster, host, wanted)
    if answer_as == "json":
        name, held = request.cluster.name, asked.held
        return responses.json(holder_item(name, asked.holder, held=held, now=asked.now))
    return render(request, "holders/holder.html", _page(asked))


def _page(asked: Asked) -> dict[str, Any]:
    cluster, wanted, now = asked.cluster.name, asked.wanted, asked.now
    scale = Scale(now - RANGES[wanted.range], now)
    keys, feed_seq = asked.keys, running_board().feeds[cluster].settled_seq()
    drawn = lanes(cluster, keys[:MOST], since=scale.since, until=scale.until, counted=False)
    lives = {lane.key: lane.life for lane in drawn}
    blind = blind_between(cluster, since=scale.since, until=scale.until, now=now)
    known = holdings.holdings_of(asked.cluster.store)
    [row] = holder_rows(
        cluster,
        [asked.holder],
        lives,
        wanted=holdings.HolderFilter(range=wanted.range),
        held=asked.held,
        scale=scale,
        now=now,
        pods=known.pods_read(asked.cluster.pods, clock.now()),
        blind=blind,
    )
    links = ListLinks(row["url"], wanted)
    which = {"holder": asked.holder.name, "range": wanted.range, "show": "all"}
    stored = find_incidents(cluster, holder=asked.holder.name, since=scale.since, limit=INCIDENTS)
    return {
        "holder": row,
        "board": {"kpis": list(_kpis(row, asked))},
        "ranges": [links.chip(range_label(name), "range", name) for name in RANGES],
        "lane_title": f"Terms, last {range_label(wanted.range)}",
        "leases": list(_leases(asked, keys[:MOST], lives, scale, blind)),
        "more": max(0, len(keys) - MOST),
        "incidents": [
            incident_line(one, now) for one in as_known((one.incident for one in stored), now)
        ],
        "incidents_url": f"{cluster_path('incidents', cluster)}?{urlencode(which)}",
        "place_url": f"{row['url']}place/",
        "json_url": links.url_as("json"),
        "feed_seq": feed_seq,
    }


def _kpis(row: dict[str, Any], asked: Asked) -> Iterator[Kpi]:
    holder, lasting = asked.holder, asked.wanted.range
    yield Kpi(
        label="Lose their holder with it",
        value=((thousands(holder.takes_down), ""),),
        detail=row["by_pods"] or (f"{row['share']} of all held Leases" if row["share"] else "none"),
        url=row["more_url"],
    )
    yield Kpi(
        label="Holds now",
        value=((thousands(holder.takes_down), ""),),
        detail=_held_how(holder),
        url=row["more_url"],
    )
    yield Kpi(
        label=f"Terms, {range_label(lasting)}",
        value=((thousands(holder.terms), ""),),
        detail=row["lane_says"],
        url=row["history_url"],
    )
    if holder.heartbeat is not None:
        beat = holder.heartbeat
        yield Kpi(
            label="Its heartbeat",
            value=((capitalized(beat.phase.value), ""),),
            detail=row["said"].removeprefix("node, "),
            url=reverse("lease", args=[asked.cluster.name, beat.key.namespace, beat.key.name]),
            phase=beat.phase.value,
        )


def _held_how(holder: holdings.HolderSummary) -> str:
    if holder.last_held:
        return f"last held {counted(len(holder.last_held), 'expired Lease')}"
    if holder.identities:
        return counted(len(holder.identities), "identity", "identities")
    return "by its Pods"


def _leases(
    asked: Asked,
    keys: Sequence[ObjectName],
    lives: Mapping[ObjectName, Life],
    scale: Scale,
    blind: Sequence[Span],
) -> Iterator[dict[str, Any]]:
    """Each Lease with the terms that this holder had in it, or one of its Pods has."""
    cluster, store = asked.cluster.name, asked.cluster.store
    by_pods = {one.key for one in asked.holder.pods_named_by}
    mine = {one.key for one in asked.holder.named_by} | by_pods
    for key in keys:
        tracked = store.get(key)
        life = lives.get(key)
        terms = () if life is None else life.terms
        mine_here = [
            term
            for term in terms
            if _is_of(term.holder, tracked if key in by_pods else None, asked.holder.name)
        ]
        drawn = spells([(term.since, term.until or asked.now) for term in mine_here], scale)
        yield {
            "name": key.name,
            "shown": shown_name(cluster, key),
            "namespace": key.namespace,
            "url": reverse("lease", args=[cluster, key.namespace, key.name]),
            "row": row_view(cluster, tracked, asked.now) if tracked and key in mine else None,
            "through": holder_view(tracked.holder) if tracked and key in by_pods else None,
            "through_url": holder_page(cluster, holdings.host_of(tracked.holder))
            if tracked and tracked.holder and key in by_pods
            else "",
            "spells": [(spell, spell_title(spell, asked.now)) for spell in drawn],
            "says": lane_says(mine_here, scale, asked.now, blind),
            "terms": sum(spell.terms for spell in drawn),
        }


def _is_of(identity: str, by_pod: Tracked | None, host: str) -> bool:
    by_its_pod = by_pod is not None and identity == by_pod.holder
    return by_its_pod or holdings.host_of(identity) == host


@require_safe
async def holder_place(request: HttpRequest, cluster: str, host: str) -> HttpResponseBase:
    """Where it runs, as the cluster says now: a part of the holder's page."""
    refusal = await sync_to_async(check_view)(request)
    if refusal is not None:
        return refusal
    watched = request.cluster = find_cluster(cluster)  # type: ignore[attr-defined]
    asked = await sync_to_async(_asked)(watched, host, HolderStretch(range=LONGEST))
    beat, named_by = asked.holder.heartbeat, asked.holder.named_by
    lease = beat or next(iter(named_by), None)
    key = lease.key if lease is not None else asked.keys[0]
    identity = next(iter(asked.holder.identities), asked.holder.name)
    place = await watched.pods.place_of(key, identity, is_node=beat is not None, within=SECONDS)
    context = {"place": place_view(place, watched.source, clock.now())}
    return await sync_to_async(render)(request, "holders/place.html", context)
