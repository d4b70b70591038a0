"""How much trouble a wall has no row for, by word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from dashboard.parts.query.lease_filter import LeaseFilter, wants
from leases.domain.lease import ObjectName
from leases.domain.severity import FLAPPING_SEVERITY, SEVERITY, TROUBLE, severity
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked

_WORDS: dict[float, str] = {
    **{SEVERITY[phase]: phase.value for phase in TROUBLE},
    FLAPPING_SEVERITY: "flapping",
}
# The worst first; `static/js/wall_lanes.js` has the same.
WORDS = tuple(_WORDS[rank] for rank in sorted(_WORDS))


def trouble_in(leases: Iterable[Tracked], flappers: Collection[ObjectName]) -> Counter[str]:
    """Count the Leases in trouble, each once, under its worst word."""
    ranks = (severity(t.phase, flaps=t.key in flappers, excused=t.excused) for t in leases)
    return Counter(_WORDS[rank] for rank in ranks if rank in _WORDS)


def all_trouble(
    store: Store,
    wanted: LeaseFilter,
    flappers: Collection[ObjectName],
    covered: Collection[ObjectName] = (),
) -> Counter[str]:
    """The same of all Leases that a filter selects, without those of incidents that have a row."""
    leases = {one.key: one for one in store.select(wanted.kinds, TROUBLE)}
    leases |= {key: one for key in flappers if (one := store.get(key)) is not None}
    for key in covered:
        leases.pop(key, None)
    matches = wants(wanted, lambda one: one.key in flappers)
    return trouble_in(filter(matches, leases.values()), flappers)


def more(numbers: Mapping[str, int]) -> str:
    """`6 more expired, 1 more late`."""
    return ", ".join(f"{numbers[word]:,} more {word}" for word in WORDS if numbers.get(word))
