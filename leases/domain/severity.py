"""Which Leases are in trouble, and which trouble comes first on every page."""

from __future__ import annotations

from datetime import datetime, timedelta

from leases.domain.kind import Kind
from leases.domain.past.as_of import PastPhase
from leases.domain.phase import Phase

# The smaller, the worse.
SEVERITY = {Phase.EXPIRED: 0, Phase.VACANT: 1, Phase.LATE: 2, Phase.UNTIMED: 3, Phase.HELD: 4}
PAST_SEVERITY = {PastPhase.EXPIRED: 0, PastPhase.VACANT: 1, PastPhase.HELD: 2}
# A Lease that flaps stands below those that nobody can rely on now, above all others.
FLAPPING_SEVERITY = 0.7
# A Lease that nobody need hold: abandoned, or an admin said that it may be vacant.
EXCUSED_SEVERITY = 5
TROUBLE = (Phase.EXPIRED, Phase.VACANT, Phase.LATE)
LONG_GAP_SECONDS = 30.0  # from here on, a gap without a holder is shown in red
# A normal hand-over leaves an election vacant: client-go's contenders look every 2 s, others
# every 15 s.
VACANT_GRACE = timedelta(seconds=30)


def severity(phase: Phase, *, flaps: bool, excused: bool = False) -> float:
    own = EXCUSED_SEVERITY if excused else SEVERITY[phase]
    return min(own, FLAPPING_SEVERITY) if flaps else own


def is_in_trouble(phase: Phase, kind: Kind, *, excused: bool = False) -> bool:
    """A vacant election is in trouble unless it is excused; a vacant lock is only free."""
    if excused:
        return False
    return phase in TROUBLE and (phase is not Phase.VACANT or kind is Kind.ELECTION)


def needs_attention(
    phase: Phase, kind: Kind, *, since: datetime, now: datetime, excused: bool = False
) -> bool:
    """Whether a Lease that is in this phase since `since` belongs on the Attention list."""
    if phase is Phase.VACANT and now - since < VACANT_GRACE:
        return False
    return is_in_trouble(phase, kind, excused=excused)
