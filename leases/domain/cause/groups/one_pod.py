"""Group the Leases that one Pod lost together."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta

from leases.domain.cause.groups.judged import Group, Judged, chains, several
from leases.domain.cause.incident import Cause, Confidence
from leases.domain.cause.verdict import Verdict

ONE_DEATH = timedelta(seconds=10)


def one_pod(left: list[Judged]) -> list[Group]:
    """Several Leases of one Pod that were lost together."""
    by_pod: dict[str, list[Judged]] = defaultdict(list)
    for one in left:
        loser = one.episode.loser
        if loser is not None and loser.is_pod and one.verdict.cause is not Cause.BY_HAND:
            by_pod[loser.host].append(one)
    groups = []
    for there in several(by_pod):
        ordered = sorted(there, key=lambda one: one.lost_at)
        for chain in chains(ordered, ONE_DEATH, lambda one: one.lost_at):
            if len({one.episode.key for one in chain}) > 1:
                best = min(chain, key=lambda one: _rank(one.verdict))
                groups.append(Group(tuple(chain), best.verdict))
    return groups


def _rank(verdict: Verdict) -> int:
    return list(Confidence).index(verdict.confidence)
