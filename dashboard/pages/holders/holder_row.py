"""A holder as a row: what goes down with it, what it holds, and when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from dashboard.charts.holder_spells import Spell, spells
from dashboard.charts.time_scale import Scale
from dashboard.parts.formatting import age, counted, percent, span_of, when
from dashboard.parts.holder_name import HolderView, holder_view, shown_holder
from dashboard.parts.kept.holdings import HELD, HolderSummary, host_of
from dashboard.parts.lease.row import lease_url
from dashboard.parts.lease.shown_name import ShownName, shown_name
from dashboard.parts.query.holder_filter import IDENTITY, HolderFilter
from dashboard.parts.query.holder_parameter import holder_parameter, part_of
from leases.domain.lease import ObjectName
from leases.domain.past.terms import Life
from leases.domain.phase import Phase
from leases.tracking.tracked_lease import Tracked

CHIPS = 8
IDENTITIES = 12
LANES = 8  # Leases of one holder whose terms are drawn


def drawn_leases(page: Iterable[HolderSummary]) -> list[ObjectName]:
    """The Leases whose terms are needed to draw these holders."""
    keys: dict[ObjectName, None] = {}
    for holder in page:
        own = [*(tracked.key for tracked in holder.holds), *(ended.key for ended in holder.ended)]
        keys.update(dict.fromkeys(list(dict.fromkeys(own))[:LANES]))
    return list(keys)


def holder_rows(
    cluster: str,
    page: Sequence[HolderSummary],
    lives: Mapping[ObjectName, Life],
    *,
    wanted: HolderFilter,
    held: int,
    scale: Scale,
    now: datetime,
) -> list[dict[str, Any]]:
    """Present one page; `held` counts all validly held Leases."""
    terms = _terms(lives.values(), wanted.group, now)
    return [
        _row(cluster, holder, terms.get(holder.name, []), wanted, held, scale, now)
        for holder in page
    ]


def _terms(
    lives: Iterable[Life], group: str, now: datetime
) -> dict[str, list[tuple[datetime, datetime]]]:
    found: dict[str, list[tuple[datetime, datetime]]] = {}
    for life in lives:
        for term in life.terms:
            name = term.holder if group == IDENTITY else host_of(term.holder)
            found.setdefault(name, []).append((term.since, term.until or now))
    return found


def _row(
    cluster: str,
    holder: HolderSummary,
    terms: Sequence[tuple[datetime, datetime]],
    wanted: HolderFilter,
    held: int,
    scale: Scale,
    now: datetime,
) -> dict[str, Any]:
    identities = [name for name in list(holder.identities)[:IDENTITIES] if name != holder.name]
    said, phase = _said(holder, wanted.group, now)
    drawn = spells(terms, scale)
    holds = sorted(holder.holds, key=lambda one: (one.phase in HELD, one.key))
    which = {"holder": holder_parameter(holder.name)}
    # History finds whole identities, or parts of them.
    found_by = which if wanted.group == IDENTITY else {"q": part_of(holder.name)}
    time = {"range": wanted.range}
    key = shown_holder(holder.name)
    return {
        "key": key,
        "view": holder_view(holder.name) or HolderView(key, key, "", "", 1),
        "said": said,
        "phase": phase,
        "identities": tuple(filter(None, map(holder_view, identities))),
        "identity_count": len(holder.identities),
        "takes_down": holder.takes_down,
        "share": percent(holder.takes_down, held) if holder.takes_down else "",
        "unread": holder.heartbeat is not None,
        "chips": tuple(_chip(cluster, one) for one in holds[:CHIPS]),
        "more": max(0, len(holds) - CHIPS),
        "more_url": f"{reverse('leases', args=[cluster])}?{urlencode(which)}",
        "timeline_url": f"{reverse('timeline', args=[cluster])}?{urlencode(time | which)}",
        "history_url": f"{reverse('history', args=[cluster])}?{urlencode(time | found_by)}",
        "spells": [(spell, _title(spell, now)) for spell in drawn],
        "lane_says": _lane_says(drawn, scale),
        "terms": holder.terms,
    }


def _said(holder: HolderSummary, group: str, now: datetime) -> tuple[str, str]:
    """A remark about the holder, and the phase that colours it."""
    heartbeat = holder.heartbeat
    if heartbeat is not None:
        for_long = age((now - heartbeat.phase_since).total_seconds())
        if heartbeat.phase is Phase.EXPIRED:
            return f"node, heartbeat expired for {for_long}", "expired"
        if heartbeat.phase is Phase.LATE:
            return "node, heartbeat late", "late"
        return "node, heartbeat in time", ""
    late = [one for one in holder.holds if one.phase is Phase.LATE]
    if late:
        return f"renewing {counted(len(late), 'Lease')} late", "late"
    expired = [one for one in holder.holds if one.phase is Phase.EXPIRED]
    if expired:
        return f"still named by {counted(len(expired), 'expired Lease')}", "expired"
    if group == IDENTITY and host_of(holder.name) != holder.name:
        return f"on {shown_holder(host_of(holder.name))}", ""
    return "", ""


def _chip(cluster: str, tracked: Tracked) -> dict[str, str | ShownName]:
    plain = tracked.phase in (Phase.HELD, Phase.UNTIMED)
    return {
        "name": tracked.key.name,
        "shown": shown_name(cluster, tracked.key),
        "url": lease_url(cluster, tracked.key),
        "phase": "" if plain else tracked.phase.value,
        "title": f"{tracked.key}, {tracked.kind.value}, {tracked.phase.value}",
    }


def _title(spell: Spell, now: datetime) -> str:
    length = age((spell.until - spell.since).total_seconds())
    until = "now" if spell.until >= now else when(spell.until, now)
    terms = counted(spell.terms, "term")
    return f"{terms}, {when(spell.since, now)} to {until} ({length})"


def _lane_says(drawn: Sequence[Spell], scale: Scale) -> str:
    if not drawn:
        return "Held nothing in the range"
    seconds = sum(
        (min(spell.until, scale.until) - max(spell.since, scale.since)).total_seconds()
        for spell in drawn
    )
    return f"Held something for {age(seconds)} of {span_of(scale.length)}"
