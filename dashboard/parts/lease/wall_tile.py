"""One tile of the wall, readable from five metres."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from dashboard.parts.formatting import age
from dashboard.parts.holder_name import HolderView, holder_view
from dashboard.parts.lease.flapping import flap_view
from dashboard.parts.lease.freshness import freshness
from dashboard.parts.lease.not_understood import state_of
from dashboard.parts.lease.row import domain_of
from dashboard.parts.lease.shown_name import ShownName, cut_name, shown_name
from leases.domain.kind import Kind
from leases.domain.past.flapping import Flapping
from leases.domain.phase import Phase
from leases.domain.severity import FLAPPING_SEVERITY, TROUBLE, severity
from leases.tracking.tracked_lease import Tracked

MAX_RANKED = 1000  # changes; with more, names decide


def wall_tile(
    cluster: str, tracked: Tracked, now: datetime, *, flapping: Flapping | None = None
) -> dict[str, Any]:
    holder = holder_view(tracked.holder)
    bad, expired = tracked.phase in TROUBLE, tracked.phase is Phase.EXPIRED
    excused = tracked.excused
    nobody = holder is None or expired
    skipped = tracked.lasting.not_understood is not None
    since = tracked.phase_since if bad or skipped else tracked.held_since
    return {
        "key": str(tracked.key),
        "shown": shown_name(cluster, tracked.key, domain_of(tracked)),
        "phase": state_of(tracked),
        "excused": excused,
        "rank": _rank(tracked.phase, flapping, excused=excused),
        "flap": flap_view(flapping, tracked.kind) if flapping and not expired else None,
        "who": _who(tracked, None if nobody else holder),
        "hue": None if holder is None or nobody else holder.hue,
        "since": since.timestamp() if since else None,
        "for_": age((now - since).total_seconds()) if since else "",
        "fresh": None if nobody or skipped else freshness(tracked, now),
    }


def _rank(phase: Phase, flapping: Flapping | None, *, excused: bool) -> float:
    """The smaller, the worse; of those that flap, the one with the most changes first."""
    rank = severity(phase, flaps=flapping is not None, excused=excused)
    if flapping is None or rank != FLAPPING_SEVERITY:
        return rank
    return round(rank - min(flapping.changes, MAX_RANKED) / 10_000, 4)


def _who(tracked: Tracked, holder: HolderView | None) -> ShownName:
    """The holder; for a heartbeat, which holds itself, its state."""
    if tracked.lasting.not_understood is not None:
        return cut_name("not understood")
    if tracked.kind is Kind.HEARTBEAT:
        return cut_name("stopped" if holder is None else tracked.phase.value)
    return cut_name("No holder") if holder is None else cut_name(holder.host + holder.tail)
