"""A stretch of one's own: its Leases, ranked by changes or by time without a holder."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any
from urllib.parse import urlencode

import msgspec
from django.http import HttpResponseBase
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
from dashboard.parts.incident_line import as_known, incident_line, incidents_between, incidents_url
from dashboard.parts.key_figures import Measure, lease_measures
from dashboard.parts.lease_controls import KIND_LABELS
from dashboard.parts.names import cluster_path, shown_name
from dashboard.parts.page_links import lease_url_at, shown_time
from dashboard.parts.time_range import StretchFilter, TimeRange, stretch_links, window
from leases.domain.figures import LONG_GAP_SECONDS, Span
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.history.change_counts import LeaseTotals, StretchTotals, stretch_totals
from leases.history.lease_figures import Stretch, figures_of, read_stretch
from leases.history.states_as_of import gone_since
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
    measured: bool = False  # all of them, not the shown ones alone


def rank(
    store: Store, wanted: RankingFilter, shown: TimeRange, blind: Sequence[Span] = ()
) -> Ranking:
    """Rank by what the changes say. `measured` makes the times of the shown ones exact."""
    cluster, kinds, since, until = store.cluster, wanted.kinds, shown.since, shown.until
    ends = wanted.range if shown.live else (since, until)
    totals = _totals.get(
        (cluster, kinds, ends),
        lambda: stretch_totals(cluster, kinds, since=since, until=until, blind=blind),
    )
    found = {one.key: one for one in totals.leases}
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


def measured(stretch: Stretch, ranked: Iterable[LeaseTotals]) -> Iterator[LeaseTotals]:
    """Count hand-overs and the time without a holder as every other page does."""
    left = iter(ranked)
    while some := list(islice(left, AT_ONCE)):
        found = figures_of(stretch, [one.key for one in some])
        for one in some:
            totals, _ = found[one.key]
            yield msgspec.structs.replace(
                one, gap_seconds=totals.gap_seconds, handovers=totals.handovers
            )


MAX_MEASURED = 500  # of more Leases, those of the shown page alone are measured
_measured: AnswerCache[list[LeaseTotals]] = AnswerCache(fresh=1.0, cost=20.0, most=32)


def _in_measured_order(
    stretch: Stretch, ranking: Ranking, wanted: RankingFilter, ends: object
) -> Ranking:
    """Rank by the figures themselves, if they are not too many."""
    if len(ranking.leases) > MAX_MEASURED:
        return ranking
    found = _measured.get(
        (stretch.cluster, wanted.kinds, ends), lambda: list(measured(stretch, ranking.leases))
    )
    return msgspec.structs.replace(ranking, leases=in_order(found, wanted.sort), measured=True)


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
    shows_now = True
    draws_unknown_formats = True
    shown: TimeRange
    counted_in: Stretch
    ranking: Ranking

    def find(self) -> FoundRows[LeaseTotals]:
        self._rank()
        found = self.cut(self.ranking.leases)
        return FoundRows(list(measured(self.counted_in, found.rows)), found.total, found.number)

    def every(self) -> Iterator[LeaseTotals]:
        self._rank()
        return measured(self.counted_in, self.ranking.leases)

    def file_name(self) -> str:
        ends = (f"{end:%Y%m%dT%H%M%SZ}" for end in (self.shown.since, self.shown.until))
        return "-".join((self.request.cluster.name, "leases", *ends))

    def item(self, row: LeaseTotals) -> dict[str, Any]:
        return ranked_item(self.request.cluster.name, row, self.shown)

    def page(self, found: FoundRows[LeaseTotals]) -> dict[str, Any]:
        cluster = self.request.cluster.name
        time = shown_time(self.shown, self.wanted.range, None)
        return {
            **self._around(),
            **_ranked(self.wanted, self.counted_in, self.ranking, self.now),
            "rows": [
                _row(cluster, one, lease_url_at(cluster, one.key, time), self.counted_in)
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
        cluster, wanted = self.request.cluster, self.wanted
        self.shown = shown = window(wanted, self.now)
        # Nothing is known after the cluster was last heard of: a gap does not grow there.
        known = max(shown.since, min(shown.until, cluster.as_of(self.now)))
        self.counted_in = read_stretch(
            cluster.name,
            since=shown.since,
            until=known,
            now=self.now,
            abandoned_after=cluster.store.abandoned_after,
        )
        ends = wanted.range if shown.live else (shown.since, known)
        ranking = rank(cluster.store, wanted, shown, self.counted_in.blind)
        self.ranking = _in_measured_order(self.counted_in, ranking, wanted, ends)

    def _around(self) -> dict[str, Any]:
        """The choices, and the same stretch on other pages."""
        links, wanted, shown = self.links, self.wanted, self.shown
        time = shown_time(shown, wanted.range, None)
        sorts = {BY_CHANGES: "Most changes", BY_GAP: "Longest without a holder"}
        since, until = (moment.replace(microsecond=0) for moment in (shown.since, shown.until))

        def page(name: str, query: dict[str, str]) -> str:
            kinds = [("kind", kind.value) for kind in wanted.kinds]
            pairs = [*((key, value) for key, value in query.items() if value), *kinds]
            return f"{cluster_path(name, self.request.cluster.name)}?{urlencode(pairs)}"

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
        found = as_known(incidents_between(cluster.name, shown.since, shown.until), as_of)
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


def _ranked(
    wanted: RankingFilter, stretch: Stretch, ranking: Ranking, now: datetime
) -> dict[str, Any]:
    lost = sum(one.gap_seconds > 0 for one in ranking.leases)
    counted_from, blind = ranking.counted_from, stretch.unwatched_seconds
    of_kinds = " or ".join(kind.value for kind in wanted.kinds)
    return {
        "total": len(ranking.leases),
        "changes": counted(ranking.changes, "change"),
        "changes_measure": Measure("changes", of_kinds, stretch.since, stretch.until),
        "sum": f"of {counted(len(ranking.leases), 'Lease')}"
        + (f", {lost:,} of them some time without a holder" if ranking.measured else ""),
        "blind_for": age(blind) if blind else "",
        "counted_from": when(counted_from, now) if counted_from else "",
    }


def _row(cluster: str, one: LeaseTotals, url: str, stretch: Stretch) -> dict[str, Any]:
    share = 100 * one.gap_seconds / (stretch.until - stretch.since).total_seconds()
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
        "measures": lease_measures(one.key, stretch.since, stretch.until),
    }
