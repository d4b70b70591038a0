"""Choose and order the lanes of the timeline, without sorting every Lease of a kind."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice

import msgspec

from dashboard.parts.query.holder_filter import KINDS as KINDS_OF_HOLDERS
from dashboard.parts.query.time_range import BY_CHANGES, BY_NAME, TimelineFilter, TimeRange
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.severity import TROUBLE, is_in_trouble, severity
from leases.history.read.timeline_lanes import LaneTotals
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked

USUAL_KINDS = (Kind.ELECTION,)
TROUBLED, NOBODY, CHANGED, QUIET, ABSENT = "trouble", "nobody", "changed", "quiet", "absent"


class LanePlace(msgspec.Struct, frozen=True, gc=False):
    """One lane with its group: a namespace, or one of the groups above."""

    key: ObjectName
    group: str
    flaps: bool = False


class LanePage(msgspec.Struct, frozen=True):
    """One page of `total` lanes, or the last page; `changed` counts lanes with a change."""

    page: list[LanePlace]
    number: int
    total: int
    changed: int


def kinds_of(wanted: TimelineFilter) -> tuple[Kind, ...]:
    return wanted.kinds or (KINDS_OF_HOLDERS if wanted.holder else USUAL_KINDS)


def choose(
    store: Store,
    wanted: TimelineFilter,
    shown: TimeRange,
    *,
    active: Mapping[ObjectName, LaneTotals],
    gone: Collection[ObjectName] = (),
    nobody: Sequence[ObjectName] = (),
    flapping: Collection[ObjectName] = (),
    held: Collection[ObjectName] | None = None,
) -> LanePage:
    """Choose one page. `active` changed holder or were deleted in the stretch, `gone` were deleted
    since it began, `nobody` had no holder at a playhead in the past, the longest first, and
    `flapping` flap now. `held` are the Leases of the wanted holder; None if any holder is wanted.
    """
    kinds, wants = kinds_of(wanted), _wants(store, wanted, held)
    searches = bool(wanted.text) or held is not None
    busy = {key: totals for key, totals in active.items() if wants(key)}
    lost = {key for key in (*gone, *busy) if store.get(key) is None and wants(key)}
    every = _by_name(store, kinds, lost, wants if searches else None)
    if wanted.sort == BY_NAME:
        places: Iterator[LanePlace] = (LanePlace(key, key.namespace) for key in every)
    else:
        first, rank = [LanePlace(key, NOBODY) for key in nobody if wants(key)], _longest_gap
        if wanted.sort == BY_CHANGES:
            first, rank = [], _most_changes
        elif shown.follows:
            bad = _troubled_now(store, kinds, wants, flapping)
            first = [LanePlace(key, TROUBLED) for key in bad]
        places = _worst_first(every, first, busy, _not_yet(store, shown), rank)
    if searches:
        found = list(places)
        total, places = len(found), iter(found)
    else:
        counts = store.counts()
        total = sum(sum(counts.get(kind, {}).values()) for kind in kinds) + len(lost)
    number, place = wanted.page_of(total)
    some = islice(places, place.start, place.stop)
    page = [LanePlace(one.key, one.group, one.key in flapping) for one in some]
    return LanePage(page, number, total, len(busy))


def _wants(
    store: Store, wanted: TimelineFilter, held: Collection[ObjectName] | None
) -> Callable[[ObjectName], bool]:
    kinds, text = kinds_of(wanted), wanted.text.casefold()

    def wants(key: ObjectName) -> bool:
        tracked = store.get(key)
        of_kind = tracked is None or tracked.kind in kinds
        named = not text or text in str(key).casefold()
        return of_kind and named and (held is None or key in held)

    return wants


def _by_name(
    store: Store,
    kinds: Collection[Kind],
    lost: Collection[ObjectName],
    wants: Callable[[ObjectName], bool] | None,
) -> Iterator[ObjectName]:
    there = (tracked.key for tracked in store.select(kinds, tuple(Phase)))
    return heapq.merge(filter(wants, there) if wants else there, sorted(lost))


def _troubled_now(
    store: Store,
    kinds: Collection[Kind],
    wants: Callable[[ObjectName], bool],
    flapping: Collection[ObjectName],
) -> list[ObjectName]:
    bad = {
        t.key: t
        for t in store.select(kinds, TROUBLE)
        if is_in_trouble(t.phase, t.kind, excused=t.excused) and wants(t.key)
    }
    bad |= {k: t for k in flapping if (t := store.get(k)) and t.kind in kinds and wants(k)}

    def rank(tracked: Tracked) -> tuple[float, datetime, ObjectName]:
        worst = severity(tracked.phase, flaps=tracked.key in flapping)
        return worst, tracked.phase_since, tracked.key

    return [tracked.key for tracked in sorted(bad.values(), key=rank)]


def _not_yet(store: Store, shown: TimeRange) -> Callable[[ObjectName], bool]:
    """A test whether a Lease was created after the end of the stretch."""

    def came_later(key: ObjectName) -> bool:
        tracked = None if shown.live else store.get(key)
        created = tracked.lasting.lease.metadata.creation_timestamp if tracked else None
        return created is not None and created > shown.until

    return came_later


def _longest_gap(totals: LaneTotals) -> tuple[float, float]:
    return -totals.leaderless, -totals.handovers


def _most_changes(totals: LaneTotals) -> tuple[float, float]:
    return -totals.handovers, -totals.leaderless


def _worst_first(
    every: Iterable[ObjectName],
    first: Sequence[LanePlace],
    busy: Mapping[ObjectName, LaneTotals],
    came_later: Callable[[ObjectName], bool],
    rank: Callable[[LaneTotals], tuple[float, float]],
) -> Iterator[LanePlace]:
    """First the lanes of `first`; then those that changed, by `rank`; then by name; last, Leases
    that did not exist yet.
    """
    seen = {place.key for place in first}
    ranked = sorted((*rank(totals), key) for key, totals in busy.items() if key not in seen)
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
