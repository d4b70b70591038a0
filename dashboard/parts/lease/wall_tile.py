"""One tile of the wall, readable from five metres."""

from __future__ import annotations

from datetime import datetime

import msgspec

from dashboard.parts.formatting import age, two_ends
from dashboard.parts.holder_name import HolderView, holder_view
from dashboard.parts.lease.freshness import Freshness, freshness
from dashboard.parts.lease.not_understood import state_of
from dashboard.parts.lease.row import short_name
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from leases.domain.severity import SEVERITY, TROUBLE
from leases.tracking.tracked_lease import Tracked


class WallTile(msgspec.Struct, frozen=True, kw_only=True):
    """`since` (epoch s) is the start of the trouble, or of the term; rank 0 is the worst."""

    key: str
    name: str
    namespace: str
    phase: str
    rank: int
    who: str
    hue: int | None
    since: float | None
    for_: str
    fresh: Freshness | None

    @property
    def ends(self) -> tuple[str, str]:
        return two_ends(self.name)


def wall_tile(tracked: Tracked, now: datetime) -> WallTile:
    holder = holder_view(tracked.holder)
    nobody = holder is None or tracked.phase is Phase.EXPIRED
    bad = tracked.phase in TROUBLE
    skipped = tracked.lasting.not_understood is not None
    since = tracked.phase_since if bad or skipped else tracked.held_since
    return WallTile(
        key=str(tracked.key),
        name=short_name(tracked),
        namespace=tracked.key.namespace,
        phase=state_of(tracked),
        rank=SEVERITY[tracked.phase],
        who=_who(tracked, None if nobody else holder),
        hue=None if holder is None or nobody else holder.hue,
        since=since.timestamp() if since else None,
        for_=age((now - since).total_seconds()) if since else "",
        fresh=None if nobody or skipped else freshness(tracked, now),
    )


def _who(tracked: Tracked, holder: HolderView | None) -> str:
    """The holder; for a heartbeat, which holds itself, its state."""
    if tracked.lasting.not_understood is not None:
        return "not understood"
    if tracked.kind is Kind.HEARTBEAT:
        return "stopped" if holder is None else tracked.phase.value
    return "No holder" if holder is None else holder.short
