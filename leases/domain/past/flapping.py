"""Decide when a Lease changes its holder too often: n changes in m minutes, for each kind.

An election changes hands when something died or was rolled out, so a handful in half an hour is
trouble (with client-go's defaults each takes at least 15 s). Locks change hands by design. A
heartbeat and an identity have one holder for life: they flap by expiring and recovering.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from leases.domain.changes.change import HOLDER_CHANGES, Change, ChangeType
from leases.domain.kind import Kind

_COMES_AND_GOES = (*HOLDER_CHANGES, ChangeType.EXPIRED)


class Rule(msgspec.Struct, frozen=True):
    """This many of these changes within this time are too many."""

    number: int
    within: timedelta
    counted: tuple[ChangeType, ...] = HOLDER_CHANGES


RULES = {
    Kind.ELECTION: Rule(5, timedelta(minutes=30)),
    Kind.LOCK: Rule(60, timedelta(minutes=30)),
    Kind.HEARTBEAT: Rule(5, timedelta(minutes=30), _COMES_AND_GOES),
    Kind.IDENTITY: Rule(5, timedelta(minutes=30), _COMES_AND_GOES),
    Kind.UNKNOWN: Rule(5, timedelta(minutes=30)),
}


def flaps(changes: Iterable[Change], now: datetime) -> list[Change]:
    """Return the changes that make a Lease flap now, or nothing."""
    found = [change for change in changes if _counts(change, now)]
    return found if found and len(found) >= RULES[found[0].kind].number else []


def _counts(change: Change, now: datetime) -> bool:
    rule = RULES[change.kind]
    return change.change in rule.counted and now - rule.within <= change.at <= now
