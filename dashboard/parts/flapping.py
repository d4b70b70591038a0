"""How a Lease flaps, in words: short for its row and tile, a sentence for its page."""

from datetime import datetime, timedelta

import msgspec

from dashboard.board import running_board
from dashboard.feed import Flappers
from dashboard.parts.formatting import age, clock, counted, span_of
from leases.domain.flapping import Flapping
from leases.domain.kind import Kind


def flappers_of(cluster: str, now: datetime) -> Flappers:
    """The Leases of one cluster that flap, for a page."""
    return running_board().feeds[cluster].flappers.at(now)


# They flap by expiring and recovering.
ONE_HOLDER = (Kind.HEARTBEAT, Kind.IDENTITY)


class FlapView(msgspec.Struct, frozen=True):
    """`amount` is "58 changes", `within` "in 30 min", `short` "58 in 30 min"; `says` is a sentence.

    A count that began later, with the watching, has "since 12:59:48" instead.
    """

    amount: str
    within: str
    says: str
    short: str


def counted_within(length: timedelta, since: datetime | None) -> str:
    """`in 30 min`; where somebody watched only a part of it, `since 12:59:48`."""
    return f"in {span_of(length)}" if since is None else f"since {clock(since)}"


def flap_view(how: Flapping, kind: Kind) -> FlapView:
    within = counted_within(how.within, how.counted_since)
    brief = within if how.counted_since is None else f"since {clock(how.counted_since)[:5]}"
    short = f"{how.changes:,} {brief}"
    lost = f"; {age(how.gap_seconds)} without a holder" if how.gap_seconds else ""
    if kind in ONE_HOLDER and how.holders == 1:
        said = f"Expired {how.changes:,} times {within}{lost}."
        return FlapView(counted(how.changes, "expiry", "expiries"), within, said, short)
    among = counted(how.holders, "holder")
    if how.hosts < how.holders:
        among = f"{among} on {counted(how.hosts, 'host')}"
    said = f"{counted(how.changes, 'change')} of holder {within}, {among}{lost}."
    return FlapView(counted(how.changes, "change"), within, said, short)
