"""Put episodes of one cause together. Each step claims its episodes; what is left stands alone."""

from __future__ import annotations

from collections.abc import Iterable

from leases.domain.cause.groups.api_outages import outages
from leases.domain.cause.groups.dead_nodes import dead_nodes
from leases.domain.cause.groups.drains import drains, series
from leases.domain.cause.groups.judged import Group, Judged
from leases.domain.cause.groups.one_command import bursts
from leases.domain.cause.groups.one_pod import one_pod
from leases.domain.cause.groups.repeated_losses import flapping
from leases.domain.cause.groups.rollouts import rolling, storms


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
