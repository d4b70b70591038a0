"""Which Leases nobody held at an instant in the past, the longest first."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.past.as_of import PastPhase
from leases.domain.phase import Phase
from leases.history.read.states_as_of import states_at
from leases.tracking.store import Store

MAX_JUDGED = 1000  # Leases whose state at an instant is read


def nobody_at(
    store: Store, kinds: Sequence[Kind], gone: Collection[ObjectName], at: datetime
) -> list[ObjectName]:
    """Elections without a holder and expired Leases, without those that nobody needed to hold.

    `gone` were deleted since then. Of more than MAX_JUDGED Leases it tells none.
    """
    living = [tracked.key for tracked in store.select(kinds, tuple(Phase))]
    keys = sorted({*living, *gone})
    if len(keys) > MAX_JUDGED:
        return []
    bad = []
    after = store.abandoned_after
    for state in states_at(store.cluster, keys, at, abandoned_after=after):
        if state.excused:
            continue
        free = state.standing.phase is PastPhase.VACANT and state.kind is Kind.ELECTION
        if free or state.standing.phase is PastPhase.EXPIRED:
            bad.append((state.standing.since or at, state.key))
    return [key for _, key in sorted(bad)]
