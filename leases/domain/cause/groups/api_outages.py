"""Group what one trouble of the API server did to many Leases."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from leases.domain.cause.groups.judged import Group, Judged, chains
from leases.domain.cause.incident import Cause
from leases.domain.changes.change import ChangeType

API_GAP = timedelta(seconds=60)  # between two stalls of one trouble
_API = (Cause.API_OUTAGE, Cause.API_SLOW)


def outages(left: list[Judged]) -> list[Group]:
    mine = sorted((one for one in left if one.verdict.cause in _API), key=lambda one: one.lost_at)
    groups = []
    for chain in chains(mine, API_GAP, lambda one: one.at):
        worst = min(chain, key=lambda one: (one.verdict.cause is not Cause.API_OUTAGE, one.at))
        verdict = worst.verdict
        lost = [one for one in chain if one.episode.opening is ChangeType.EXPIRED]
        if len(lost) > 1:
            verdict = msgspec.structs.replace(
                verdict, sentence=f"{verdict.sentence}; {len(lost)} Leases ran out"
            )
        groups.append(Group(tuple(chain), verdict))
    return groups
