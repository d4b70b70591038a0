"""The overview: is anything wrong, and what just happened? The same for everyone who looks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from typing import Protocol

import msgspec

from dashboard.charts.ages import USUAL_DURATION, AgesChart, ages_chart, spans
from dashboard.charts.hours import HoursChart, hours_chart
from dashboard.node_book import NodeBook
from dashboard.presenters.attention import Attention, attention
from dashboard.presenters.kpis import Counts, Kpi, kpis, last_day, of_kind
from dashboard.presenters.nodes import orphans_of
from dashboard.presenters.row import SEVERITY, RowView, row_view
from dashboard.presenters.tile import TROUBLE
from leases.domain.connection import Connection
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from leases.history.activity import HOLDER_CHANGES, Activity
from leases.tracking.store import Store
from leases.tracking.tracked import Tracked

ELECTIONS = 15
ATTENTION = 10
SAMPLE = 1000  # heartbeats whose durations tell the usual one


class Watched(Protocol):
    """What is known of one cluster: the part of a live channel that is read here."""

    store: Store
    activity: Activity
    nodes: NodeBook


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """What moves when a phase or a holder does."""

    cluster: str
    connection: Connection
    kpis: tuple[Kpi, ...]
    attention: list[Attention]
    more: int
    quiet: str
    elections: list[RowView]
    election_total: int
    hours: HoursChart


def overview(watched: Watched, now: datetime) -> Overview:
    """Key figures, attention, elections and the day's changes of one cluster."""
    store, activity = watched.store, watched.activity
    cluster, counts = store.cluster, store.counts()
    elections = list(store.select((Kind.ELECTION,), tuple(Phase)))
    lines = attention(
        cluster,
        store.select(tuple(Kind), TROUBLE),
        holder_changes=list(activity.holder_changes),
        missed=list(activity.missed),
        orphans=orphans_of(watched),
        now=now,
    )
    shown = sorted(elections, key=lambda lease: SEVERITY[lease.phase])[:ELECTIONS]
    numbers = activity.of_kind(Kind.ELECTION, HOLDER_CHANGES, now)
    return Overview(
        cluster=cluster,
        connection=store.connection,
        kpis=kpis(cluster, counts, last_day(activity, elections, now)),
        attention=lines[:ATTENTION],
        more=max(0, len(lines) - ATTENTION),
        quiet=_quiet(counts, elections),
        elections=[row_view(cluster, lease, now) for lease in shown],
        election_total=len(elections),
        hours=hours_chart(numbers, now, what="Changes of holder"),
    )


def heartbeat_ages(store: Store, now: datetime) -> AgesChart:
    """How old the last renewals of all heartbeats are."""
    beats = list(store.select((Kind.HEARTBEAT,), (Phase.HELD, Phase.LATE, Phase.EXPIRED)))
    duration = _usual_duration(beats)
    ages = (((now - beat.observed_at).total_seconds(), beat.phase) for beat in beats)
    return ages_chart(spans(ages, duration), duration, of="heartbeats")


def _usual_duration(beats: Iterable[Tracked]) -> float:
    found = Counter(
        seconds
        for beat in islice(beats, SAMPLE)
        if (seconds := beat.lease.spec.lease_duration_seconds)
    )
    return float(found.most_common(1)[0][0]) if found else USUAL_DURATION


def _quiet(counts: Counts, elections: list[Tracked]) -> str:
    """What was looked at when nothing needs attention."""
    numbers = {kind: sum(counts.get(kind, {}).values()) for kind in Kind}
    looked = [f"{of_kind(len(elections), Kind.ELECTION)} held"]
    beats = numbers[Kind.HEARTBEAT]
    if beats:
        looked.append(f"{of_kind(beats, Kind.HEARTBEAT)} in time")
    return f"{' and '.join(looked)}. {sum(numbers.values()):,} Leases are watched."
