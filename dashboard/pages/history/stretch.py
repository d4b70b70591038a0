"""A stretch of one's own: its Leases, ranked by changes or by time without a holder."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any
from urllib.parse import urlencode

import msgspec
from django.http import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.lists.declaration import FoundRows, List
from dashboard.lists.url_parameters import (
    LIMIT,
    PAGE,
    Parameter,
    one_of,
    typed,
    words,
    write_moment,
)
from dashboard.parts.answer_cache import AnswerCache
from dashboard.parts.as_of import nobody_at
from dashboard.parts.formatting import age, counted, span_of, when
from dashboard.parts.incident_line import incident_line, incidents_between, incidents_url
from dashboard.parts.lease_controls import KIND_LABELS
from dashboard.parts.names import shown_name
from dashboard.parts.page_links import lease_url_at, shown_time
from dashboard.parts.time_range import StretchFilter, TimeRange, stretch_links, window
from leases.domain.figures import LONG_GAP_SECONDS
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.terms import leaderless
from leases.history.change_counts import LeaseTotals, StretchTotals, stretch_totals
from leases.history.states_as_of import gone_since
from leases.history.timeline_lanes import MIN_CHANGES, lanes
from leases.history.watched_spans import unwatched_times
from leases.tracking.store import Store
from leases.wire.microtime import format_microtime

USUAL_RANGE = "1h"
BY_CHANGES, BY_GAP = SORTS = ("changes", "gap")


class RankingFilter(StretchFilter, frozen=True, kw_only=True):
    """No kinds mean all. The page has no playhead."""

    PARAMETERS = {
        **{name: StretchFilter.PARAMETERS[name] for name in ("range", "since", "until")},
        "kinds": Parameter("kind", words, Kind),
        "sort": Parameter("sort", one_of, SORTS),
        "limit": LIMIT,
        "page": PAGE,
    }
    range: str = USUAL_RANGE
    kinds: tuple[Kind, ...] = ()
    sort: str = BY_CHANGES


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


FIELDS = ("cluster", "namespace", "name", "kind", "from", "to", "changes", "handovers",
          "gap_seconds")  # fmt: skip


def ranked_item(cluster: str, one: LeaseTotals, shown: TimeRange) -> dict[str, Any]:
    values = (
        cluster,
        one.key.namespace,
        one.key.name,
        one.kind.value,
        format_microtime(shown.since),
        format_microtime(shown.until),
        one.changes,
        one.handovers,
        round(one.gap_seconds, 3),
    )
    return dict(zip(FIELDS, values, strict=True))


INCIDENTS = 6


class StretchRanking(List[RankingFilter, LeaseTotals]):
    """The Leases of a stretch, ranked; a file has all of them."""

    name = "stretch"
    reads = RankingFilter
    templates = ("history/stretch.html", "history/_stretch_board.html")
    files = ("csv",)
    fields = FIELDS
    draws_unknown_formats = True
    shown: TimeRange
    ranking: Ranking

    def find(self) -> FoundRows[LeaseTotals]:
        self._rank()
        found = self.cut(self.ranking.leases)
        return FoundRows(list(self._measured(found.rows)), found.total, found.number)

    def every(self) -> Iterator[LeaseTotals]:
        self._rank()
        return self._measured(self.ranking.leases)

    def file_name(self) -> str:
        ends = (f"{end:%Y%m%dT%H%M%SZ}" for end in (self.shown.since, self.shown.until))
        return "-".join((self.request.cluster.name, "leases", *ends))

    def item(self, row: LeaseTotals) -> dict[str, Any]:
        return ranked_item(self.request.cluster.name, row, self.shown)

    def page(self, found: FoundRows[LeaseTotals]) -> dict[str, Any]:
        cluster, shown = self.request.cluster.name, self.shown
        time = shown_time(shown, self.wanted.range, None)
        return {
            **self._around(),
            **_ranked(cluster, shown, self.ranking, self.now),
            "rows": [
                _row(cluster, one, lease_url_at(cluster, one.key, time), shown)
                for one in in_order(found.rows, self.wanted.sort)
            ],
            "incidents": self._incidents(),
            "pager": self.links.pager(found.number, found.total),
        }

    def refused(self) -> dict[str, Any]:
        self.shown = window(self.wanted, self.now)
        given = {name: typed(self.request.GET, name) for name in ("from", "to")}
        return self._around() | {"given": given}

    def _rank(self) -> None:
        self.shown = window(self.wanted, self.now)
        self.ranking = rank(self.request.cluster.store, self.wanted, self.shown)

    def _measured(self, leases: Iterable[LeaseTotals]) -> Iterator[LeaseTotals]:
        """Nothing is known after the cluster was last heard of: a gap does not grow there."""
        cluster, since = self.request.cluster, self.shown.since
        until = max(since, min(self.shown.until, cluster.as_of(self.now)))
        return measured(cluster.name, leases, since=since, until=until)

    def _around(self) -> dict[str, Any]:
        """The choices, and the same stretch on other pages."""
        links, wanted, shown = self.links, self.wanted, self.shown
        time = shown_time(shown, wanted.range, None)
        sorts = {BY_CHANGES: "Most changes", BY_GAP: "Longest without a holder"}
        since, until = (moment.replace(microsecond=0) for moment in (shown.since, shown.until))

        def page(name: str, query: dict[str, str]) -> str:
            kinds = [("kind", kind.value) for kind in wanted.kinds]
            pairs = [*((key, value) for key, value in query.items() if value), *kinds]
            return f"{reverse(name, args=[self.request.cluster.name])}?{urlencode(pairs)}"

        return {
            "links": stretch_links(links, wanted, shown, now=self.now),
            "sorts": [links.chip(label, "sort", value) for value, label in sorts.items()],
            "fixed_url": links.url(since=since, until=until) if shown.live else "",
            "json_url": links.url_as("json"),
            "csv_url": links.url_as("csv"),
            "changes_csv_url": page("history", time.of_history() | {"format": "csv"}),
            "history_url": page("history", time.of_history()),
            "timeline_url": page("timeline", time.of_timeline()),
            "clear_url": links.path,
            "kinds": [(kind.value, KIND_LABELS[kind], kind in wanted.kinds) for kind in Kind],
            "given": {
                "from": write_moment(wanted.since),
                "to": write_moment(wanted.until),
            },
            "sort": "" if wanted.sort == BY_CHANGES else wanted.sort,
            "says": _says(shown, self.now),
        }

    def _incidents(self) -> dict[str, Any]:
        """Those that went on in the stretch: what goes on and the longest gaps first."""
        cluster, shown = self.request.cluster, self.shown
        as_of = cluster.as_of(self.now)
        found = incidents_between(cluster.name, shown.since, shown.until)
        worst = sorted(
            found, key=lambda one: (one.ended is not None, -(one.worst_gap_seconds or 0.0))
        )
        return {
            "lines": [incident_line(one, as_of) for one in worst[:INCIDENTS]],
            "total": len(found),
            "url": incidents_url(cluster.name, shown.since, shown.until),
        }


@require_safe
@viewer_required
def stretch(request: ClusterRequest, _cluster: str) -> HttpResponseBase:
    """The ranked Leases as a page, as JSON, or all of them as CSV."""
    return StretchRanking(request).answer()


def _says(shown: TimeRange, now: datetime) -> str:
    span = "Last " if shown.live else f"{when(shown.since, now)} to {when(shown.until, now)}, "
    return f"{span}{span_of(shown.length)}"


def _ranked(cluster: str, shown: TimeRange, ranking: Ranking, now: datetime) -> dict[str, Any]:
    blind = unwatched_times(cluster, since=shown.since, until=shown.until, now=now)
    lost = sum(one.gap_seconds > 0 for one in ranking.leases)
    counted_from = ranking.counted_from
    return {
        "total": len(ranking.leases),
        "sum": f"{counted(ranking.changes, 'change')} of {counted(len(ranking.leases), 'Lease')}"
        f", {lost:,} of them some time without a holder",
        "blind_for": age(sum(one.seconds for one in blind)) if blind else "",
        "counted_from": when(counted_from, now) if counted_from else "",
    }


def _row(cluster: str, one: LeaseTotals, url: str, shown: TimeRange) -> dict[str, Any]:
    share = 100 * one.gap_seconds / (shown.until - shown.since).total_seconds()
    return {
        "key": str(one.key),
        "namespace": one.key.namespace,
        "shown": shown_name(cluster, one.key),
        "name": one.key.name,
        "url": url,
        "kind": one.kind.value,
        "changes": one.changes,
        "handovers": one.handovers,
        "gap": age(one.gap_seconds) if one.gap_seconds else "",
        "may_be_free": one.kind is Kind.LOCK,
        "gap_is_long": one.gap_seconds >= LONG_GAP_SECONDS,
        "share": round(min(100.0, share), 2),
    }
