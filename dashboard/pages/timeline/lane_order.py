"""Choose and order the lanes of the timeline, without sorting every Lease of a kind."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

import msgspec

from dashboard.parts.query.time_range import BY_NAME, TimelineFilter, TimeRange
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.severity import SEVERITY, TROUBLE, is_in_trouble
from leases.history.read.timeline_lanes import LaneTotals
from leases.tracking.store import Store

USUAL_KINDS = (Kind.ELECTION,)
TROUBLED, NOBODY, CHANGED, QUIET, ABSENT = "trouble", "nobody", "changed", "quiet", "absent"


class LanePlace(msgspec.Struct, frozen=True, gc=False):
    """One lane with its group: a namespace, or one of the groups above."""

    key: ObjectName
    group: str


class Chosen(msgspec.Struct, frozen=True):
    """One page of `total` lanes, or the last page; `changed` counts lanes with a change."""

    page: list[LanePlace]
    number: int
    total: int
    changed: int


def kinds_of(wanted: TimelineFilter) -> tuple[Kind, ...]:
    return wanted.kinds or USUAL_KINDS


def choose(
    store: Store,
    wanted: TimelineFilter,
    shown: TimeRange,
    *,
    active: Mapping[ObjectName, LaneTotals],
    gone: Collection[ObjectName] = (),
    nobody: Sequence[ObjectName] = (),
) -> Chosen:
    """Choose one page. `active` changed holder in the stretch, `gone` were deleted since it began,
    and `nobody` had no holder at a playhead in the past, the longest first.
    """
    kinds, text = kinds_of(wanted), wanted.text.casefold()

    def wants(key: ObjectName) -> bool:
        tracked = store.get(key)
        of_kind = tracked is None or tracked.kind in kinds
        return of_kind and (not text or text in str(key).casefold())

    busy = {key: totals for key, totals in active.items() if wants(key)}
    lost = {key for key in (*gone, *busy) if store.get(key) is None and wants(key)}
    every = _by_name(store, kinds, lost, wants if text else None)
    if wanted.sort == BY_NAME:
        places: Iterator[LanePlace] = (LanePlace(key, key.namespace) for key in every)
    else:
        if shown.follows:
            first = [LanePlace(key, TROUBLED) for key in _troubled_now(store, kinds, wants)]
        else:
            first = [LanePlace(key, NOBODY) for key in nobody if wants(key)]
        places = _worst_first(every, first, busy, _not_yet(store, shown))
    if text:
        found = list(places)
        total, places = len(found), iter(found)
    else:
        counts = store.counts()
        total = sum(sum(counts.get(kind, {}).values()) for kind in kinds) + len(lost)
    number, place = wanted.page_of(total)
    return Chosen(list(islice(places, place.start, place.stop)), number, total, len(busy))


def _by_name(
    store: Store,
    kinds: Collection[Kind],
    lost: Collection[ObjectName],
    wants: Callable[[ObjectName], bool] | None,
) -> Iterator[ObjectName]:
    there = (tracked.key for tracked in store.select(kinds, tuple(Phase)))
    return heapq.merge(filter(wants, there) if wants else there, sorted(lost))


def _troubled_now(
    store: Store, kinds: Collection[Kind], wants: Callable[[ObjectName], bool]
) -> list[ObjectName]:
    bad = [
        t for t in store.select(kinds, TROUBLE) if is_in_trouble(t.phase, t.kind) and wants(t.key)
    ]
    bad.sort(key=lambda tracked: (SEVERITY[tracked.phase], tracked.phase_since, tracked.key))
    return [tracked.key for tracked in bad]


def _not_yet(store: Store, shown: TimeRange) -> Callable[[ObjectName], bool]:
    """A test whether a Lease was created after the end of the stretch."""

    def came_later(key: ObjectName) -> bool:
        tracked = None if shown.live else store.get(key)
        created = tracked.lasting.lease.metadata.creation_timestamp if tracked else None
        return created is not None and created > shown.until

    return came_later


def _worst_first(
    every: Iterable[ObjectName],
    first: Sequence[LanePlace],
    busy: Mapping[ObjectName, LaneTotals],
    came_later: Callable[[ObjectName], bool],
) -> Iterator[LanePlace]:
    """First the lanes without a holder at the playhead; then by time without a holder and by
    number of changes; then by name; last, Leases that did not exist yet.
    """
    seen = {place.key for place in first}
    ranked = sorted(
        (-totals.leaderless, -totals.handovers, key)
        for key, totals in busy.items()
        if key not in seen
    )
    seen.update(busy)
    absent: list[ObjectName] = []

    def quiet() -> Iterator[LanePlace]:
        for key in every:
            if key in seen:
                continue
            if came_later(key):
                absent.append(key)
            else:
                yield LanePlace(key, QUIET)

    def later() -> Iterator[LanePlace]:
        yield from (LanePlace(key, ABSENT) for key in absent)

    return chain(first, (LanePlace(key, CHANGED) for _, _, key in ranked), quiet(), later())
