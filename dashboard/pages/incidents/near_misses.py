"""Elections whose renewals came close to running out in the last hour."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from math import inf
from typing import Any

import msgspec
from django.http import HttpResponseBase
from django.views.decorators.http import require_safe

from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.lists import url_parameters
from dashboard.lists.declaration import FoundRows, List
from dashboard.lists.url_parameters import ListFilter
from dashboard.parts.answer_cache import AnswerCache
from dashboard.parts.formatting import MINUTE, age, counted, seconds, when
from dashboard.parts.key_figures import Calm
from dashboard.parts.names import HolderView, ShownName, holder_view, lease_url, shown_name
from dashboard.watched_cluster import WatchedCluster
from leases.domain.cause.clue import LateRenewal
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import DEADLINE_SHARE, Phase
from leases.domain.watched_times import ConnectionState
from leases.tracking.renewals import SLOT, SLOTS, LongestInterval
from leases.tracking.tracked_lease import Tracked
from leases.wire.microtime import format_microtime, microtime_or_none

HOUR = timedelta(seconds=SLOT * SLOTS)
BARS = 24
WIDTH, HEIGHT, LIMIT = 96, 24, 2.0  # of the bars, in pixels; the duration is drawn at LIMIT
_HELD = (Phase.HELD, Phase.LATE)
_found: AnswerCache[list[NearMiss]] = AnswerCache(fresh=5.0)


class Bar(msgspec.Struct, frozen=True):
    """In pixels; `hot` is a near miss."""

    x: float
    y: float
    height: float
    hot: bool


class NearMiss(msgspec.Struct, frozen=True, kw_only=True):
    """The near misses of a Lease in the last hour: how many, and that closest to running out."""

    key: ObjectName
    holder: str
    at: datetime
    seconds: float
    duration: int
    times: int
    cadence: float | None
    intervals: tuple[LongestInterval, ...]

    @property
    def left(self) -> float:
        return self.duration - self.seconds


class NearMissLine(msgspec.Struct, frozen=True, kw_only=True):
    key: ObjectName
    shown: ShownName
    url: str
    holder: HolderView | None
    longest: str
    duration: str
    left: str
    moment: str
    cadence: str
    times: int
    bars: tuple[Bar, ...]
    says: str


def near_misses(watched: WatchedCluster, now: datetime) -> list[NearMiss]:
    """The Leases with near misses in the last hour, the closest to running out first."""
    return _found.get(watched, lambda: _look(watched, now))


def near_miss_line(cluster: str, miss: NearMiss, now: datetime) -> NearMissLine:
    longest, lasts = _tenths(miss.seconds), seconds(miss.duration)
    return NearMissLine(
        key=miss.key,
        shown=shown_name(cluster, miss.key),
        url=lease_url(cluster, miss.key),
        holder=holder_view(miss.holder),
        longest=longest,
        duration=lasts,
        left=_tenths(miss.left),
        moment=when(miss.at, now),
        cadence=_tenths(miss.cadence) if miss.cadence is not None else "",
        times=miss.times,
        bars=tuple(_bars(miss, now)),
        says=f"Longest interval: {longest}. The Lease runs out at {lasts}.",
    )


def none_near(watched: WatchedCluster, now: datetime) -> Calm:
    """The words for a list without near misses."""
    connection = watched.store.connection
    if connection.state is not ConnectionState.LIVE:
        usual = "There is no connection to the cluster, so its renewals are not known."
        return Calm("Not watched now", connection.detail or usual, "i-unplug")
    elections = list(watched.store.select((Kind.ELECTION,), _HELD))
    seen = [lease for lease in elections if lease.renewals_seen > 0]
    if not seen:
        return Calm("No election was renewed yet", "Nothing can be said of its margin.", "i-clock")
    since = connection.since if now - connection.since < HOUR else now - HOUR
    text = f"{counted(len(seen), 'election')} renewed since {when(since, now)}."
    tight = sum(_is_tight(watched, lease, now - HOUR) for lease in seen)
    if tight:
        leaves, was = ("leaves", "was") if tight == 1 else ("leave", "were")
        what = (
            f"{tight:,} of them always {leaves} less than a third of the time, or {was} renewed "
            "after running out."
        )
        return Calm("No unusual near miss", f"{text} {what}", "i-clock")
    unseen = sum(not watched.renewals.follows(lease.key) for lease in seen)
    if unseen:
        what = f"The margin of {counted(unseen, 'election')} is not followed."
        return Calm("No near miss is known", f"{text} {what}", "i-clock")
    return Calm("Every renewal left more than a third of the time", text, "st-held", "is-held")


def near_miss_item(cluster: str, miss: NearMiss) -> dict[str, Any]:
    return {
        "cluster": cluster,
        "namespace": miss.key.namespace,
        "name": miss.key.name,
        "holder": miss.holder,
        "at": microtime_or_none(miss.at),
        "seconds": round(miss.seconds, 3),
        "duration_seconds": miss.duration,
        "left_seconds": round(miss.left, 3),
        "times": miss.times,
        "cadence_seconds": miss.cadence,
        "intervals": [
            {"at": format_microtime(one.since), "seconds": round(one.seconds, 3)}
            for one in miss.intervals
        ],
    }


def _look(watched: WatchedCluster, now: datetime) -> list[NearMiss]:
    since = watched.as_of(now) - HOUR
    by_lease: dict[ObjectName, list[LateRenewal]] = {}
    for one in watched.store.near_misses(since):
        by_lease.setdefault(one.key, []).append(one)
    found = [
        _of_lease(watched, lease, some, since)
        for key, some in by_lease.items()
        if (lease := watched.store.get(key)) is not None
    ]
    return sorted(found, key=lambda miss: (miss.left / miss.duration, miss.key))


def _of_lease(
    watched: WatchedCluster, lease: Tracked, some: Sequence[LateRenewal], since: datetime
) -> NearMiss:
    worst = min(some, key=lambda one: 1 - one.seconds / one.duration_seconds)
    return NearMiss(
        key=lease.key,
        holder=worst.holder,
        at=worst.at,
        seconds=worst.seconds,
        duration=worst.duration_seconds,
        times=len(some),
        cadence=lease.cadence_seconds,
        intervals=tuple(one for one in watched.renewals.of(lease) if one.since >= since),
    )


def _is_tight(watched: WatchedCluster, lease: Tracked, since: datetime) -> bool:
    """Whether a renewal came in the last third or later, though it is no near miss."""
    limit = DEADLINE_SHARE * (lease.lasts_seconds or inf)
    if watched.renewals.longest(lease.key) < limit:
        return False
    return any(one.seconds >= limit for one in watched.renewals.of(lease) if one.since >= since)


def _bars(miss: NearMiss, now: datetime) -> Iterable[Bar]:
    """The longest interval of each 24th of the hour; a longer one than the duration is cut."""
    step = WIDTH / BARS
    for place, longest in enumerate(_longest(miss.intervals, now)):
        if longest:
            share = min(1.0, longest / miss.duration)
            height = round(max(1.0, share * (HEIGHT - LIMIT)), 1)
            hot = longest >= DEADLINE_SHARE * miss.duration
            yield Bar(place * step, round(HEIGHT - height, 1), height, hot)


def _longest(intervals: Sequence[LongestInterval], now: datetime) -> list[float]:
    found = [0.0] * BARS
    for one in intervals:
        place = BARS - 1 - int((now - one.since) / HOUR * BARS)
        if 0 <= place < BARS:
            found[place] = max(found[place], one.seconds)
    return found


def _tenths(length: float) -> str:
    return f"{length:.1f} s" if length < 2 * MINUTE else age(length)


class NearMissFilter(ListFilter, frozen=True, kw_only=True):
    """A page of the list."""

    PARAMETERS = {"limit": url_parameters.LIMIT, "page": url_parameters.PAGE}


class NearMisses(List[NearMissFilter, NearMiss]):
    """The closest to running out first."""

    name = "near_misses"
    reads = NearMissFilter
    templates = ("incidents/near_misses.html", "incidents/_near_misses.html")
    shows_now = True
    draws_unknown_formats = True

    def find(self) -> FoundRows[NearMiss]:
        return self.cut(near_misses(self.request.cluster, self.now))

    def item(self, row: NearMiss) -> dict[str, Any]:
        return near_miss_item(self.request.cluster.name, row)

    def page(self, found: FoundRows[NearMiss]) -> dict[str, Any]:
        cluster = self.request.cluster
        return {
            "misses": [near_miss_line(cluster.name, one, self.now) for one in found.rows],
            "pager": self.links.pager(found.number, found.total),
            "json_url": self.links.url_as("json", page=self.wanted.page),
            "calm": none_near(cluster, self.now),
        }

    def refused(self) -> dict[str, Any]:
        return {"clear_url": self.request.path}


@require_safe
@viewer_required
def near_misses_page(request: ClusterRequest, _cluster: str) -> HttpResponseBase:
    """The closest to running out first, as a page or JSON."""
    return NearMisses(request).answer()
