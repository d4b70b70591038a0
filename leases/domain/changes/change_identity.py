"""Recognise one change that several replicas report, or that is reported again.

Replicas see the same writes, but each judges deadlines by its own clock.
"""

from __future__ import annotations

import hashlib

from leases.domain.changes.change import COUNTED_ONCE, ONCE, Change, ChangeType

# One write makes at most one of these. Which one may depend on the clock: one replica may see a
# take-over just after the expiry, another a replacement just before it.
OF_THE_TERM = COUNTED_ONCE | {ChangeType.RELEASED, ChangeType.RECOVERED}


_NO_RENEWAL = hashlib.sha256(b"").hexdigest()[:32]
_REBUILT = (_NO_RENEWAL, *(f" {word}" for word in ONCE))


def not_rebuilt(stored: str) -> str:
    """A stored identity, or "" where `identity` finds it without the renewal fields."""
    return "" if stored.endswith(_REBUILT) else stored


def identity(change: Change) -> str:
    """Return the key that makes a change unique in its Lease's history.

    resourceVersion alone is not enough: a cluster restored from a backup repeats numbers. The time
    of an expiry differs from clock to clock, so the renewal that expired stands for it.
    """
    if change.stored_identity:
        return change.stored_identity
    if change.change in ONCE:
        return f"{change.uid} {change.change}"
    word = "term" if change.change in OF_THE_TERM else change.change
    renewal = hashlib.sha256(change.renewal.encode()).hexdigest()[:32]
    return f"{change.uid} {word} {change.resource_version} {renewal}"
