"""Is anything wrong, and what just happened?"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from dashboard.access import ClusterRequest, viewer_required
from dashboard.presenters.attention import HOLDER_CHANGES, attention
from dashboard.presenters.change import change_line
from dashboard.presenters.kpis import DAY, Counts, kpis, last_day, of_kind
from dashboard.presenters.row import SEVERITY, row_view
from dashboard.recent import recent_changes
from leases.domain.change import Change
from leases.domain.kind import Kind
from leases.history import queries
from leases.history.streams import HistoryFilter
from leases.tracking.tracked import Tracked

ELECTIONS = 15
ATTENTION = 10
FEED = 12
DAY_LIMIT = 1000  # changes of a day that are summed up


@require_GET
@viewer_required
def overview(request: ClusterRequest, cluster: str) -> HttpResponse:
    """Key figures, attention, elections and the newest changes of one cluster."""
    now = timezone.now()
    store = request.cluster.store
    feed_seq, newest = recent_changes(cluster, FEED)
    leases, counts = store.snapshot(), store.counts()
    elections = [lease for lease in leases if lease.kind is Kind.ELECTION]
    changes, total = _day(cluster, now)
    lines = attention(cluster, leases, changes, now)
    shown = sorted(elections, key=lambda lease: SEVERITY[lease.phase])[:ELECTIONS]
    day = last_day(changes, total=total, elections=elections, now=now)
    context: dict[str, Any] = {
        "kpis": kpis(cluster, counts, day),
        "attention": lines[:ATTENTION],
        "more": max(0, len(lines) - ATTENTION),
        "quiet": _quiet(counts, elections),
        "elections": [row_view(cluster, lease, now) for lease in shown],
        "election_total": len(elections),
        "changes": [change_line(change, now) for change in newest],
        "feed_seq": feed_seq,
    }
    return render(request, "overview/index.html", context)


def _day(cluster: str, now: datetime) -> tuple[list[Change], int]:
    """The changes by which elections came to a holder in the last 24 h, and how many there were."""
    wanted = HistoryFilter(
        change=(*HOLDER_CHANGES, "recovered"), kind=(Kind.ELECTION.value,), since=now - DAY
    )
    found = queries.find(cluster, wanted, limit=DAY_LIMIT)
    return found.changes, found.total


def _quiet(counts: Counts, elections: list[Tracked]) -> str:
    """What was looked at when nothing needs attention."""
    numbers = {kind: sum(counts.get(kind, {}).values()) for kind in Kind}
    looked = [f"{of_kind(len(elections), Kind.ELECTION)} held"]
    beats = numbers[Kind.HEARTBEAT]
    if beats:
        looked.append(f"{of_kind(beats, Kind.HEARTBEAT)} in time")
    return f"{' and '.join(looked)}. {sum(numbers.values()):,} Leases are watched."
