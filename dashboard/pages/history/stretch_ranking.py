"""Rank the Leases of a stretch of time: by changes, or by time without a holder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice

import msgspec

from dashboard.pages.history.stretch_filter import BY_GAP, RankingFilter
from dashboard.parts.kept.answer_cache import AnswerCache
from dashboard.parts.query.time_range import TimeRange
from dashboard.parts.query.without_holder import nobody_at
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.past.as_of import leaderless
from leases.domain.phase import Phase
from leases.history.read.states_as_of import gone_since
from leases.history.read.stretch_totals import LeaseTotals, StretchTotals, stretch_totals
from leases.history.read.timeline_lanes import MIN_CHANGES, lanes
from leases.tracking.store import Store

AT_ONCE = 50  # Leases whose gaps are measured together
_totals: AnswerCache[StretchTotals] = AnswerCache(fresh=1.0, cost=20.0, most=32)


class Ranking(msgspec.Struct, frozen=True):
    """All Leases that changed or had no holder, in order; `changes` of all of them together."""

    leases: list[LeaseTotals]
    changes: int
    counted_from: datetime | None  # set if older changes of the stretch were not counted


def rank(store: Store, wanted: RankingFilter, shown: TimeRange) -> Ranking:
    """Rank by what the changes say. `measured` makes the times of the shown ones exact."""
    cluster, kinds, since, until = store.cluster, wanted.kinds, shown.since, shown.until
    ends = wanted.range if shown.live else (since, until)
    totals = _totals.get(
        (cluster, kinds, ends), lambda: stretch_totals(cluster, kinds, since=since, until=until)
    )
    found = {one.key: _needed(one) for one in totals.leases}
    whole = (until - since).total_seconds()
    for key, kind in _unheld_before(store, kinds or tuple(Kind), since):
        known = found.get(key)
        if known is None:
            found[key] = LeaseTotals(key, kind, 0, 0, whole, regained=False)
        elif not known.regained:
            found[key] = msgspec.structs.replace(known, gap_seconds=whole)
    return Ranking(
        in_order(found.values(), wanted.sort),
        sum(one.changes for one in totals.leases),
        totals.counted_from,
    )


def in_order(leases: Iterable[LeaseTotals], sort: str) -> list[LeaseTotals]:
    if sort == BY_GAP:
        return sorted(leases, key=lambda one: (-one.gap_seconds, -one.changes, one.key))
    return sorted(leases, key=lambda one: (-one.changes, -one.gap_seconds, one.key))


def measured(
    cluster: str, ranked: Iterable[LeaseTotals], *, since: datetime, until: datetime
) -> Iterator[LeaseTotals]:
    """Measure the time without a holder as the page of the Lease does. Of a very busy Lease the
    changes alone are summed up.
    """
    left = iter(ranked)
    while some := list(islice(left, AT_ONCE)):
        keys = [one.key for one in some]
        lives = {
            lane.key: lane.life
            for lane in lanes(cluster, keys, since=since, until=until, counted=False)
            if lane.changes <= MIN_CHANGES
        }
        for one in some:
            life = lives.get(one.key)
            seconds = one.gap_seconds if life is None else leaderless(life, since, until)
            yield _needed(msgspec.structs.replace(one, gap_seconds=seconds))


def _needed(one: LeaseTotals) -> LeaseTotals:
    """A lock needs no holder: its time without one does not count."""
    return msgspec.structs.replace(one, gap_seconds=0.0) if one.kind is Kind.LOCK else one


def _unheld_before(
    store: Store, kinds: Sequence[Kind], since: datetime
) -> Iterator[tuple[ObjectName, Kind]]:
    """Leases that had no holder when the stretch began, as far as that can be found quickly:
    elections, and what has had none up to now.
    """
    if Kind.ELECTION in kinds:
        gone = gone_since(store.cluster, since, (Kind.ELECTION,))
        for key in nobody_at(store, (Kind.ELECTION,), gone, since):
            yield key, Kind.ELECTION
    others = [kind for kind in kinds if kind is not Kind.ELECTION]
    for one in store.select(others, (Phase.EXPIRED,)):
        if one.phase_since <= since and not one.excused:
            yield one.key, one.kind
