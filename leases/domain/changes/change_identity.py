"""When two accounts of a change tell of one and the same: whoever gives them, and however often.

Replicas see the same writes and judge the time between them by clocks of their own.
"""

from __future__ import annotations

import hashlib

from leases.domain.changes.change import ONCE, Change, ChangeType

# One write does at most one of these. Which, may depend on whose clock judges: what one replica
# saw taken over the moment it ran out, another saw replaced the moment before.
OF_THE_TERM = frozenset(
    {
        ChangeType.ACQUIRED,
        ChangeType.RELEASED,
        ChangeType.TAKEN_OVER,
        ChangeType.REPLACED,
        ChangeType.RECOVERED,
        ChangeType.RESTARTED,
    }
)


def identity(change: Change) -> str:
    """What makes a change unique in its Lease's history.

    Not a resourceVersion alone: a cluster restored from a backup counts on from an old one. Nor
    the moment of a run-out, which differs from clock to clock: the renewal that ran out.
    """
    if change.change in ONCE:
        return f"{change.uid} {change.change}"
    word = "term" if change.change in OF_THE_TERM else change.change
    renewal = hashlib.sha256(change.renewal.encode()).hexdigest()[:32]
    return f"{change.uid} {word} {change.resource_version} {renewal}"
