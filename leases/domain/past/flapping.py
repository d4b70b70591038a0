"""Decide when a Lease changes its holder too often: n changes in m minutes, for each kind.

An election changes hands when something died or was rolled out, so a handful in half an hour is
trouble (with client-go's defaults each takes at least 15 s). Locks change hands by design. A
heartbeat and an identity have one holder for life: they flap by expiring and recovering.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from leases.domain.changes.change import HOLDER_CHANGES, Change, ChangeType
from leases.domain.holder_identity import split_holder
from leases.domain.kind import Kind

_COMES_AND_GOES = (*HOLDER_CHANGES, ChangeType.EXPIRED)


class FlappingRule(msgspec.Struct, frozen=True):
    """This many of these changes within this time are too many."""

    number: int
    within: timedelta
    counted: tuple[ChangeType, ...] = HOLDER_CHANGES


# docs/words.md names these numbers.
RULES = {
    Kind.ELECTION: FlappingRule(5, timedelta(minutes=30)),
    Kind.LOCK: FlappingRule(60, timedelta(minutes=30)),
    Kind.HEARTBEAT: FlappingRule(5, timedelta(minutes=30), _COMES_AND_GOES),
    Kind.IDENTITY: FlappingRule(5, timedelta(minutes=30), _COMES_AND_GOES),
    Kind.UNKNOWN: FlappingRule(5, timedelta(minutes=30)),
}
FEWEST = min(rule.number for rule in RULES.values())


class BriefChange(msgspec.Struct, frozen=True, gc=False):
    """What the rule reads of a change."""

    change: ChangeType
    at: datetime
    holder: str | None
    gap_seconds: float | None

    @classmethod
    def of(cls, change: Change) -> BriefChange:
        return cls(change.change, change.at, change.holder, change.gap_seconds)


class Flapping(msgspec.Struct, frozen=True, gc=False):
    """How a Lease flaps: its counted changes, the first of them, and what they cost."""

    changes: int
    since: datetime
    holders: int
    hosts: int  # where they ran: a process that is started again there is another holder
    gap_seconds: float  # without a holder
    within: timedelta


def flapping(changes: Sequence[BriefChange], kind: Kind, now: datetime) -> Flapping | None:
    """Judge a Lease of this kind by its changes, in any order; None: it does not flap."""
    rule = RULES[kind]
    if len(changes) < rule.number:
        return None
    first = now - rule.within
    recent = [one for one in changes if first <= one.at <= now]
    counted = [one for one in recent if one.change in rule.counted]
    if len(counted) < rule.number:
        return None
    return Flapping(
        changes=len(counted),
        since=min(one.at for one in counted),
        holders=len(holders := {one.holder for one in counted}),
        hosts=len({split_holder(holder).host or holder for holder in holders}),
        gap_seconds=sum(one.gap_seconds or 0.0 for one in recent),
        within=rule.within,
    )
