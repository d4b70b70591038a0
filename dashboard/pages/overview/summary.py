"""Everything that the overview shows; it is the same for every viewer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, islice
from typing import Protocol

import msgspec

from dashboard.charts.changes_per_hour import HoursChart, hours_chart
from dashboard.charts.heartbeat_ages import SHOWN, USUAL_DURATION, AgesChart, ages_chart, spans
from dashboard.pages.overview.abandoned_line import abandoned_line
from dashboard.pages.overview.attention import attention
from dashboard.pages.overview.attention_line import Attention
from dashboard.pages.overview.receiver_lines import receiver_lines
from dashboard.parts.all_clear import Calm, calm
from dashboard.parts.kept.flapping_leases import Flappers, FlappingLeases
from dashboard.parts.key_figures import Kpi, kpis, last_day, with_elections
from dashboard.parts.lease.row import RowView, row_view
from dashboard.parts.node_summary import NodeSummarySource, orphans_of
from leases.domain.cause.incident import Incident
from leases.domain.changes.change import HOLDER_CHANGES
from leases.domain.connection import Connection
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from leases.domain.severity import TROUBLE, severity
from leases.history.notify.delivery_log import FailingReceiver
from leases.history.refused_rows import RefusedValue
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked

ELECTIONS = 15
ATTENTION = 10
AGES_EVERY = timedelta(seconds=4)
SAMPLE = 1000  # heartbeats that are read to find the usual duration


class OverviewSource(NodeSummarySource, Protocol):
    """The part of a live channel that this module reads."""

    ages: HeartbeatAges
    flappers: FlappingLeases
    refused: Callable[[datetime], Sequence[RefusedValue]]
    failing_receivers: Callable[[], Sequence[FailingReceiver]]
    going_on: Callable[[], Sequence[Incident]]


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
    election_total: int
    hours: HoursChart


def overview(watched: OverviewSource, now: datetime) -> Overview:
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
        now=now,
    )
    lines += receiver_lines(watched.failing_receivers(), now)
    shown = sorted(elections, key=partial(_severity, flappers))
    numbers = activity.of_kind(Kind.ELECTION, HOLDER_CHANGES, now)
    day = last_day(sum(numbers), activity, elections, now)
    return Overview(
        cluster=cluster,
        connection=store.connection,
        kpis=kpis(cluster, counts, day, known=store.known, excused=excused),
        attention=lines[:ATTENTION],
        more=max(0, len(lines) - ATTENTION),
        abandoned=abandoned_line(cluster, excused, store.abandoned_after, now),
        calm=calm(store, counts),
        elections=[
            row_view(cluster, lease, now, flapping=flappers.get(lease.key))
            for lease in shown[:ELECTIONS]
        ],
        election_total=len(elections),
        hours=hours_chart(numbers, now, what="Changes of holder", blind=day.watched.spans),
    )


def _severity(flappers: Flappers, lease: Tracked) -> float:
    return severity(lease.phase, flaps=lease.key in flappers, excused=lease.excused)


class HeartbeatAges:
    """Caches the chart of ages for a few seconds, because it reads every heartbeat."""

    def __init__(self) -> None:
        self._kept: tuple[datetime, AgesChart] | None = None

    def of(self, store: Store, now: datetime) -> AgesChart:
        kept = self._kept
        if kept is None or abs(now - kept[0]) >= AGES_EVERY:
            kept = self._kept = (now, heartbeat_ages(store, now))
        return kept[1]


def heartbeat_ages(store: Store, now: datetime) -> AgesChart:
    beats = {phase: list(store.select((Kind.HEARTBEAT,), (phase,))) for phase in SHOWN}
    duration = _usual_duration(chain.from_iterable(beats.values()))
    ages = {
        phase: [(now - beat.observed_at).total_seconds() for beat in some]
        for phase, some in beats.items()
    }
    return ages_chart(spans(ages, duration), duration, of="heartbeats")


def _usual_duration(beats: Iterable[Tracked]) -> float:
    found = Counter(
        seconds
        for beat in islice(beats, SAMPLE)
        if (seconds := beat.lasting.lease.spec.lease_duration_seconds)
    )
    return float(found.most_common(1)[0][0]) if found else USUAL_DURATION
