"""Which Leases flap: how many changes, within how long, by kind.

An election changes hands when something died or was rolled out, so a handful in half an hour is
trouble (with client-go's defaults each takes at least 15 s). Locks change hands by design. A
heartbeat and an identity have one holder for life: they flap by expiring and recovering.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from operator import attrgetter

import msgspec

from leases.domain.change import HOLDER_CHANGES, Change, ChangeType
from leases.domain.holder_identity import split_holder
from leases.domain.kind import Kind
from leases.domain.steady_clock import EARLIEST

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
# An election also flaps if each of so many holders lost it so soon after taking it, unless each
# was another one that let it go, as in a rollout. It does for so long after the last of them.
QUICK_LOSSES = 3
LOST_SOON = timedelta(seconds=60)
QUICK_UNTIL = timedelta(minutes=5)
_LOST = (ChangeType.ACQUIRED, ChangeType.TAKEN_OVER)  # the holder before had lost it or let it go
FEWEST = min(QUICK_LOSSES, *(rule.number for rule in RULES.values()))


class BriefChange(msgspec.Struct, frozen=True, array_like=True, gc=False):
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
    counted_since: datetime | None = None  # somebody watched only a part of `within`, from here on


def flapping(
    changes: Sequence[BriefChange], kind: Kind, now: datetime, *, watched_since: datetime = EARLIEST
) -> Flapping | None:
    """Judge a Lease of this kind by its changes, in any order; None: it does not flap.

    The count starts anew when a time ends that nobody watched.
    """
    rule = RULES[kind]
    if len(changes) < FEWEST:
        return None
    first = max(now - rule.within, watched_since)
    recent = [one for one in changes if first <= one.at <= now]
    counted = [one for one in recent if one.change in rule.counted]
    quick = kind is Kind.ELECTION and any(now - at <= QUICK_UNTIL for at in _lost_soon(counted))
    if len(counted) < rule.number and not quick:
        return None
    return Flapping(
        changes=len(counted),
        since=min(one.at for one in counted),
        holders=len(holders := {one.holder for one in counted}),
        hosts=len({split_holder(holder).host or holder for holder in holders}),
        # A gap may have begun before the count did.
        gap_seconds=sum(
            min(one.gap_seconds or 0.0, (one.at - watched_since).total_seconds()) for one in recent
        ),
        within=rule.within,
        counted_since=first if first == watched_since else None,
    )


def flapped(changes: Sequence[BriefChange], kind: Kind) -> bool:
    """Whether a Lease with these changes, oldest first, was ever one that flaps."""
    rule = RULES[kind]
    counted = [one for one in changes if one.change in rule.counted]
    spells = zip(counted, counted[rule.number - 1 :], strict=False)
    if any(last.at - first.at <= rule.within for first, last in spells):
        return True
    return kind is Kind.ELECTION and any(_lost_soon(counted))


def _lost_soon(changes: Sequence[BriefChange]) -> Iterable[datetime]:
    """Yield when the last of QUICK_LOSSES holders or more took it, each soon after another."""
    run: list[BriefChange] = []
    for one in sorted((one for one in changes if one.change in _LOST), key=attrgetter("at")):
        lost_at = one.at - timedelta(seconds=one.gap_seconds or 0.0)
        run = [*run, one] if run and lost_at - run[-1].at < LOST_SOON else [one]
        hosts = {split_holder(each.holder).host or each.holder for each in run}
        died = all(each.change is ChangeType.TAKEN_OVER for each in run)
        if len(run) >= QUICK_LOSSES and (died or len(hosts) < len(run)):
            yield one.at
