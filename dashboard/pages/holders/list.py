"""The list of holders, and what goes down with each: filter, sort, page."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.drawing_gate import drawing_gate
from dashboard.access.guards import ClusterRequest, check_view, find_cluster, viewer_required
from dashboard.board import running_board
from dashboard.charts.lanes import Spell, fog, spells
from dashboard.charts.time_axis import Scale
from dashboard.lists.controls import Chip, ListLinks
from dashboard.lists.declaration import FoundRows, List
from dashboard.lists.url_parameters import typed
from dashboard.parts import holdings, names
from dashboard.parts.formatting import (
    age,
    capitalized,
    counted,
    listed,
    percent,
    span_of,
    thousands,
    when,
)
from dashboard.parts.key_figures import Kpi, unread
from dashboard.parts.lease_controls import KIND_LABELS
from dashboard.parts.lease_row import held_view
from dashboard.parts.names import cluster_path, lease_url
from dashboard.parts.page_links import holder_page
from dashboard.parts.time_range import RANGES, range_label
from leases.domain.figures import Span, held
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.terms import Life, Term
from leases.history.timeline_lanes import lanes
from leases.history.watched_spans import blind_between
from leases.tracking.tracked_lease import Tracked
from leases.wire.microtime import microtime_or_none


def holder_item(
    cluster: str, holder: holdings.HolderSummary, *, held: int, now: datetime
) -> dict[str, Any]:
    return {
        "cluster": cluster,
        "holder": holder.name,
        "identities": list(holder.identities),
        "takes_down": holder.takes_down,
        "share": 10_000 * holder.takes_down // held / 10_000 if held else 0.0,
        "terms": holder.terms,
        "heartbeat": holder.heartbeat.phase.value if holder.heartbeat else None,
        "holds": [_held_item(cluster, tracked, now) for tracked in holder.holds],
        "pods_hold": [
            _held_item(cluster, tracked, now) | {"holder": tracked.holder}
            for tracked in holder.pods_hold
        ],
        "last_held": [
            _held_item(cluster, tracked, now) | {"holder": tracked.holder}
            for tracked in holder.last_held
        ],
    }


def _held_item(cluster: str, tracked: Tracked, now: datetime) -> dict[str, Any]:
    lasts = held_view(cluster, tracked, now)
    meta = tracked.lease.metadata
    return {
        "namespace": meta.namespace,
        "name": meta.name,
        "kind": tracked.kind.value,
        "phase": tracked.phase.value,
        "held_since": microtime_or_none(tracked.held_since),
        "held_seconds": round(lasts.watched, 3) if lasts else None,
        "unwatched_seconds": round(lasts.unwatched, 3) if lasts else None,
    }


CHIPS = 8
POD_CHIPS = 40  # of a node with Pods: no list of Leases has just these
IDENTITIES = 12
LANES = 8  # Leases of one holder whose terms are drawn


def drawn_leases(page: Iterable[holdings.HolderSummary]) -> list[ObjectName]:
    """The Leases whose terms are needed to draw these holders."""
    keys: dict[ObjectName, None] = {}
    for holder in page:
        own = [
            *(tracked.key for tracked in holder.all_named_by),
            *(ended.key for ended in holder.ended),
        ]
        keys.update(dict.fromkeys(list(dict.fromkeys(own))[:LANES]))
    return list(keys)


def holder_rows(
    cluster: str,
    page: Sequence[holdings.HolderSummary],
    lives: Mapping[ObjectName, Life],
    *,
    wanted: holdings.HolderFilter,
    held: int,
    scale: Scale,
    now: datetime,
    pods: holdings.PodsRead,
    blind: Sequence[Span] = (),
) -> list[dict[str, Any]]:
    """Present one page; `held` counts all validly held Leases, `blind` is what nobody watched."""
    terms = _terms(lives, page, wanted.group)
    rows = [
        _row(cluster, holder, terms.get(holder.name, []), wanted, held, scale, now, blind)
        for holder in page
    ]
    for holder, row in zip(page, rows, strict=True):
        row["by_pods"] = "" if holder.heartbeat is None else _by_pods(holder, pods)
    return rows


def _by_pods(holder: holdings.HolderSummary, pods: holdings.PodsRead) -> str:
    """How a node takes its Leases down: by its own name, or with the Pods on it."""
    if not pods.read and pods.holders:
        return "by name; what its Pods hold is not known"
    number = len(holder.pods_hold)
    said = f"{number:,} of them by its Pods" if holder.holds else "by its Pods"
    said = said if number else "by its name alone"
    return said if pods.read == pods.holders else f"{said}, as far as Pods are read"


def _terms(
    lives: Mapping[ObjectName, Life],
    page: Iterable[holdings.HolderSummary],
    group: str,
) -> dict[str, list[Term]]:
    """The terms of each holder; of a node also those of its Pods in what they hold now."""
    nodes = {(one.key, one.holder): node.name for node in page for one in node.pods_named_by}
    found: dict[str, list[Term]] = {}
    for key, life in lives.items():
        for term in life.terms:
            name = term.holder if group == holdings.IDENTITY else holdings.host_of(term.holder)
            node = nodes.get((key, term.holder))
            for one in dict.fromkeys(filter(None, (name, node))):
                found.setdefault(one, []).append(term)
    return found


def _row(
    cluster: str,
    holder: holdings.HolderSummary,
    terms: Sequence[Term],
    wanted: holdings.HolderFilter,
    held: int,
    scale: Scale,
    now: datetime,
    blind: Sequence[Span],
) -> dict[str, Any]:
    identities = [name for name in list(holder.identities)[:IDENTITIES] if name != holder.name]
    said, phase = _said(holder, wanted.group, now)
    drawn = spells([(term.since, term.until or now) for term in terms], scale)
    holds = sorted((*holder.holds, *holder.pods_hold), key=lambda one: one.key)
    last_held = sorted(holder.last_held, key=lambda one: one.key)
    most = POD_CHIPS if holder.pods_named_by else CHIPS
    which = {"holder": names.holder_parameter(holder.name)}
    # History finds whole identities, or parts of them.
    found_by = which if wanted.group == holdings.IDENTITY else {"q": names.part_of(holder.name)}
    time = {"range": wanted.range}
    key = names.shown_holder(holder.name)
    return {
        "key": key,
        "url": holder_page(cluster, holdings.host_of(holder.name)),
        "view": names.holder_view(holder.name) or names.HolderView(key, key, "", "", 1),
        "said": said,
        "phase": phase,
        "identities": tuple(filter(None, map(names.holder_view, identities))),
        "identity_count": len(holder.identities),
        "takes_down": holder.takes_down,
        "share": percent(holder.takes_down, held) if holder.takes_down else "",
        "chips": tuple(_chip(cluster, one) for one in holds[:most]),
        "last_held": tuple(_chip(cluster, one) for one in last_held[:most]),
        "more": max(0, len(holds) - most) + max(0, len(last_held) - most),
        "more_url": f"{cluster_path('leases', cluster)}?{urlencode(which)}",
        "timeline_url": f"{cluster_path('timeline', cluster)}?{urlencode(time | which)}",
        "history_url": f"{cluster_path('history', cluster)}?{urlencode(time | found_by)}",
        "spells": [(spell, spell_title(spell, now)) for spell in drawn],
        "fogs": fog(blind, scale),
        "lane_says": lane_says(terms, scale, now, blind),
        "terms": holder.terms,
    }


def _said(holder: holdings.HolderSummary, group: str, now: datetime) -> tuple[str, str]:
    """A remark about the holder, and the phase that colours it."""
    heartbeat = holder.heartbeat
    if heartbeat is not None:
        for_long = age((now - heartbeat.phase_since).total_seconds())
        if heartbeat.phase is Phase.EXPIRED:
            return f"node, heartbeat expired for {for_long}", "expired"
        if heartbeat.phase is Phase.LATE:
            return "node, heartbeat late", "late"
        return "node, heartbeat in time", ""
    late = [one for one in holder.named_by if one.phase is Phase.LATE]
    if late:
        return f"renewing {counted(len(late), 'Lease')} late", "late"
    expired = [one for one in holder.named_by if one.phase is Phase.EXPIRED]
    if expired:
        return f"still named by {counted(len(expired), 'expired Lease')}", "expired"
    if group == holdings.IDENTITY and holdings.host_of(holder.name) != holder.name:
        return f"on {names.shown_holder(holdings.host_of(holder.name))}", ""
    return "", ""


def _chip(cluster: str, tracked: Tracked) -> dict[str, str | names.ShownName]:
    plain = tracked.phase in (Phase.HELD, Phase.UNTIMED)
    by = "held" if holdings.is_held(tracked) else "last held"
    return {
        "name": tracked.key.name,
        "shown": names.shown_name(cluster, tracked.key),
        "url": lease_url(cluster, tracked.key),
        "phase": "" if plain else tracked.phase.value,
        "title": f"{tracked.key}, {tracked.kind.value}, {tracked.phase.value}, "
        f"{by} by {names.shown_holder(tracked.holder or '')}",
    }


def spell_title(spell: Spell, now: datetime) -> str:
    length = age((spell.until - spell.since).total_seconds())
    until = "now" if spell.until >= now else when(spell.until, now)
    terms = counted(spell.terms, "term")
    return f"{terms}, {when(spell.since, now)} to {until} ({length})"


def joined(terms: Iterable[Span]) -> Iterator[Span]:
    """The times in which any of these terms were valid, oldest first."""
    begun: datetime | None = None
    for since, until in sorted(terms):
        if begun is None:
            begun, ended = since, until
        elif since > ended:
            yield begun, ended
            begun, ended = since, until
        ended = max(ended, until)
    if begun is not None:
        yield begun, ended


def lane_says(terms: Iterable[Term], scale: Scale, now: datetime, blind: Sequence[Span]) -> str:
    """How long something was held, by the terms themselves: a drawn spell may hold many."""
    parts = ((since, until or now) for term in terms for since, until, _ in term.parts)
    inside = [
        (max(since, scale.since), min(until, scale.until))
        for since, until in parts
        if until > scale.since and since < scale.until
    ]
    if not inside:
        return "Held nothing in the range"
    lasted = [held(since, until, blind) for since, until in joined(inside)]
    said = (
        f"Held something for {age(sum(one.watched for one in lasted))} of {span_of(scale.length)}"
    )
    unwatched = sum(one.unwatched for one in lasted)
    return f"{said}, and {age(unwatched)} that nobody watched" if unwatched else said


def holder_board(
    links: ListLinks,
    wanted: holdings.HolderFilter,
    found: holdings.FoundHolders,
    now: datetime,
    *,
    known: bool,
    pods: holdings.PodsRead,
) -> dict[str, Any]:
    """Make the controls. Without `known`, no list was read yet."""
    columns = {holdings.NAME: "Holder", holdings.DOWN: "Takes down", holdings.TERMS: "Terms"}
    figures = _kpis(links.url, wanted, found.figures, pods)
    return {
        "text": wanted.text,
        "choices": _choices(links),
        "heads": [links.head(column, label) for column, label in columns.items()],
        "kept": wanted.replace(text="", page=1).pairs(),
        "kpis": figures if known else [unread(figure) for figure in figures],
        "lane_title": f"Terms, last {range_label(wanted.range)}",
        "cut": _cut(found.since, now) if found.since > now - RANGES[wanted.range] else "",
        "nodes": found.figures.nodes,
        "says": _says(wanted),
        "pager": links.pager(found.number, found.total),
        "clear_url": links.path,
        "json_url": links.url_as("json"),
        "pods": tuple(_of_pods(pods, now)),
        "asks_pods": counted(len(pods.to_ask), "Pod") if pods.to_ask else "",
    }


def _of_pods(pods: holdings.PodsRead, now: datetime) -> Iterator[str]:
    """What is known of the Pods, from when, and why not of all."""
    if pods.since is not None:
        holders = counted(pods.holders, "holder")
        some = "" if pods.read == pods.holders else f"{pods.read:,} of "
        yield (
            f"The cluster was asked for the Pods of {some}{holders}, first at "
            f"{when(pods.since, now)}; of {pods.on_nodes:,} it told the node."
        )
    if pods.problems:
        namespaces, problems = sorted(pods.problems), pods.problems.values()
        yield f"Pods in {listed(namespaces)} cannot be read: {next(iter(problems)).rstrip('.')}."


def _choices(links: ListLinks) -> list[tuple[str, list[Chip]]]:
    groups = {holdings.HOST: "By host or pod", holdings.IDENTITY: "By identity"}
    holds = {"": "All", holdings.NOW: "Hold now", holdings.PAST: "Held before"}
    kinds = [links.chip(KIND_LABELS[kind], "kinds", (kind,)) for kind in holdings.KINDS]
    return [
        ("Group", [links.chip(label, "group", value) for value, label in groups.items()]),
        ("Which", [links.chip(label, "holds", value) for value, label in holds.items()]),
        ("Kind", [links.chip("All kinds", "kinds", ()), *kinds]),
        ("Range", [links.chip(range_label(name), "range", name) for name in RANGES]),
    ]


def _cut(since: datetime, now: datetime) -> str:
    return f"More happened than is read at once: terms before {when(since, now)} are left out"


def _kpis(
    url: Any, wanted: holdings.HolderFilter, figures: holdings.Figures, pods: holdings.PodsRead
) -> tuple[Kpi, ...]:
    largest = figures.largest
    view = names.holder_view(largest.name) if largest else None
    down = largest.takes_down if largest else 0
    share = f", {percent(down, figures.held)}" if figures.held else ""
    stranded = figures.stranded
    return (
        Kpi(
            label="Largest holder",
            value=((view.short if view else "none", ""),),
            detail=f"{thousands(down)} of {counted(figures.held, 'held Lease')}{share}",
            url=url(text=names.part_of(largest.name) if largest else "", holds=""),
        ),
        Kpi(
            label="Holders now",
            value=((thousands(figures.holders_now), ""),),
            detail=f"of {thousands(figures.holders)} seen in {range_label(wanted.range)}",
            url=url(text="", holds=holdings.NOW),
        ),
        Kpi(
            label="Held by a dead node",
            value=((thousands(stranded), ""),),
            detail=_dead_by(pods),
            url=url(text="", holds=holdings.NOW),
            phase="expired" if stranded else "",
            bad=bool(stranded),
        ),
        Kpi(
            label="Only ever one host",
            value=((thousands(figures.single), ""),),
            detail=f"held Leases without another in {range_label(wanted.range)}",
            url=url(text="", holds=holdings.NOW),
        ),
    )


def _dead_by(pods: holdings.PodsRead) -> str:
    if pods.read == pods.holders:
        return "by the node's name or by its Pods"
    return (
        "by name, or by the Pods that are read"
        if pods.read
        else "by the node's name; Pods are not read"
    )


def _says(wanted: holdings.HolderFilter) -> str:
    said = []
    if wanted.text:
        said.append(f"contains {wanted.text}")
    if wanted.kinds:
        said.append(f"kind is {' or '.join(wanted.kinds)}")
    if wanted.holds:
        said.append("holds something now" if wanted.holds == holdings.NOW else "holds nothing now")
    return capitalized(", ".join(said))


class Holders(List[holdings.HolderFilter, holdings.HolderSummary]):
    """What each pod or node holds, and what goes down with it."""

    name = "holders"
    reads = holdings.HolderFilter
    templates = ("holders/index.html", "holders/_board.html")
    shows_now = True
    found: holdings.FoundHolders
    pods: holdings.PodsRead

    @cached_property
    def as_of(self) -> datetime:
        return self.request.cluster.as_of(self.now)

    def find(self) -> FoundRows[holdings.HolderSummary]:
        cluster = self.request.cluster
        known = holdings.holdings_of(cluster.store)
        self.pods = known.pods_read(cluster.pods, clock.now())
        self.found = known.find(self.wanted, self.as_of, cluster.pods)
        return FoundRows(self.found.page, self.found.total, self.found.number)

    def item(self, row: holdings.HolderSummary) -> dict[str, Any]:
        return holder_item(
            self.request.cluster.name, row, held=self.found.figures.held, now=self.as_of
        )

    def page(self, found: FoundRows[holdings.HolderSummary]) -> dict[str, Any]:
        cluster, now = self.request.cluster.name, self.as_of
        scale = Scale(now - RANGES[self.wanted.range], now)
        keys, feed_seq = drawn_leases(found.rows), running_board().feeds[cluster].settled_seq()
        blind = blind_between(cluster, since=scale.since, until=scale.until, now=now)
        known = lanes(cluster, keys, since=scale.since, until=scale.until, counted=False)
        rows = holder_rows(
            cluster,
            found.rows,
            {lane.key: lane.life for lane in known},
            wanted=self.wanted,
            held=self.found.figures.held,
            scale=scale,
            now=now,
            pods=self.pods,
            blind=blind,
        )
        return {"board": self._board(), "rows": rows, "feed_seq": feed_seq}

    def refused(self) -> dict[str, Any]:
        self.find()
        return {"board": self._board() | {"text": typed(self.request.GET, "q")}}

    def _board(self) -> dict[str, Any]:
        known = self.request.cluster.store.known
        board = holder_board(
            self.links, self.wanted, self.found, self.as_of, known=known, pods=self.pods
        )
        asks = cluster_path("holder_pods", self.request.cluster.name)
        return board | {"asks_url": f"{asks}?{self.query()}"}


@require_safe
@viewer_required
def holders(request: ClusterRequest, _cluster: str) -> HttpResponseBase:
    """The list as a page, as the part that a filter changes, or as JSON."""
    with drawing_gate.large():
        return Holders(request).answer()


ASKED_AT_ONCE = 20  # Pods; then another page has its turn
MAX_ASKED = 200
WITHIN = 10.0  # seconds for all of them


@require_safe
async def holder_pods(request: HttpRequest, cluster: str) -> HttpResponseBase:
    """Ask the cluster where holders run, a part of them at a time, and lead back to the list."""
    refusal = await sync_to_async(check_view)(request)
    if refusal is not None:
        return refusal
    watched = find_cluster(cluster)
    known = holdings.holdings_of(watched.store)
    left = (await sync_to_async(known.pods_read)(watched.pods, clock.now())).to_ask[:MAX_ASKED]
    with suppress(TimeoutError):
        async with asyncio.timeout(WITHIN):
            for first in range(0, len(left), ASKED_AT_ONCE):
                some = left[first : first + ASKED_AT_ONCE]
                # Another page that is open may have asked meanwhile.
                await watched.pods.ask(some, within=WITHIN, fresh=holdings.KEPT.total_seconds())
    query = request.GET.urlencode()
    return redirect(f"{cluster_path('holders', cluster)}{'?' if query else ''}{query}")
