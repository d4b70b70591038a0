"""Put episodes of one cause together. Each step claims its episodes; what is left stands alone."""

from __future__ import annotations

from collections.abc import Iterable

from leases.domain.cause.groups.crowds import bursts, flapping, one_pod, outages, rolling, storms
from leases.domain.cause.groups.dead_nodes import dead_nodes
from leases.domain.cause.groups.drains import drains, series
from leases.domain.cause.groups.judged import Group, Judged


def grouped(judged: Iterable[Judged]) -> list[Group]:
    """Return the incidents that these episodes are."""
    left = sorted(judged, key=lambda one: (one.at, one.episode.key))
    groups: list[Group] = []
    for claim in (outages, dead_nodes, drains, storms, rolling, flapping, bursts, one_pod, series):
        found = claim(left)
        if not found:
            continue
        groups += found
        claimed = {id(one.episode) for group in found for one in group.episodes}
        left = [one for one in left if id(one.episode) not in claimed]
    groups += [Group((one,), one.verdict) for one in left]
    return groups
