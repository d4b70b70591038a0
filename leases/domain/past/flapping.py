"""When a Lease changes its holder too often, for what it is: n changes in m minutes, per kind.

An election changes hands when something died or was rolled out, so that a handful in half an hour
is trouble (client-go's defaults need at least 15 s for each). A lock is made to change hands. A
heartbeat and an identity have one holder for life: they flap by running out and coming back.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from leases.domain.changes.change import Change, ChangeType
from leases.domain.kind import Kind

_HOLDER_CHANGES = frozenset({ChangeType.ACQUIRED, ChangeType.TAKEN_OVER, ChangeType.REPLACED})
_COMES_AND_GOES = frozenset({ChangeType.EXPIRED, *_HOLDER_CHANGES})


class Rule(msgspec.Struct, frozen=True):
    """So many of these changes within such a time are too many."""

    number: int
    within: timedelta
    counted: frozenset[ChangeType] = _HOLDER_CHANGES


RULES = {
    Kind.ELECTION: Rule(5, timedelta(minutes=30)),
    Kind.LOCK: Rule(60, timedelta(minutes=30)),
    Kind.HEARTBEAT: Rule(5, timedelta(minutes=30), _COMES_AND_GOES),
    Kind.IDENTITY: Rule(5, timedelta(minutes=30), _COMES_AND_GOES),
    Kind.UNKNOWN: Rule(5, timedelta(minutes=30)),
}


def flaps(changes: Iterable[Change], now: datetime) -> list[Change]:
    """The changes of one Lease, as they were given, that make it flap now; none if it does not."""
    found = [change for change in changes if _counts(change, now)]
    return found if found and len(found) >= RULES[found[0].kind].number else []


def _counts(change: Change, now: datetime) -> bool:
    rule = RULES[change.kind]
    return change.change in rule.counted and now - rule.within <= change.at <= now
