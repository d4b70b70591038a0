"""How a Lease flaps, in words: short for its row and tile, a sentence for its page."""

from __future__ import annotations

import msgspec

from dashboard.parts.formatting import age, counted, span_of
from leases.domain.kind import Kind
from leases.domain.past.flapping import Flapping

# They flap by expiring and recovering.
ONE_HOLDER = (Kind.HEARTBEAT, Kind.IDENTITY)


class FlapView(msgspec.Struct, frozen=True):
    """`amount` is "58 changes", `within` "30 min", `short` "58 in 30 min"; `says` is a sentence."""

    amount: str
    within: str
    says: str
    short: str


def flap_view(how: Flapping, kind: Kind) -> FlapView:
    within = span_of(how.within)
    short = f"{how.changes:,} in {within}"
    lost = f"; {age(how.gap_seconds)} without a holder" if how.gap_seconds else ""
    if kind in ONE_HOLDER and how.holders == 1:
        said = f"Expired {how.changes:,} times in {within}{lost}."
        return FlapView(counted(how.changes, "expiry", "expiries"), within, said, short)
    among = counted(how.holders, "holder")
    if how.hosts < how.holders:
        among = f"{among} on {counted(how.hosts, 'host')}"
    said = f"{counted(how.changes, 'change')} of holder in {within}, {among}{lost}."
    return FlapView(counted(how.changes, "change"), within, said, short)
