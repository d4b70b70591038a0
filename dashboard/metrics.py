"""`/metrics`, for Prometheus. docs/operations.md names all metrics.

Through the library's samples, 2,000 elections would take more than 100 ms.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    core,
    generate_latest,
)
from prometheus_client.registry import Collector

from dashboard import clock
from dashboard.access.api_tokens import is_token_set, sends_token
from dashboard.board import Board, running_board
from dashboard.config import Config
from dashboard.parts.formatting import shortened
from dashboard.watched_cluster import WatchedCluster
from leases.domain.incident import Cause
from leases.domain.kind import Kind
from leases.domain.notify import Sort
from leases.domain.phase import Phase
from leases.domain.watched_times import ConnectionState
from leases.tracking.tracked_lease import Tracked

PREFIX = "leaseboard_election_"
MAX_HOLDER = 512  # characters of a label; an API server accepts a megabyte
# Name, type and help of each family, in the order in which `_samples` gives their values.
FAMILIES = (
    ("holder_info", "gauge", "Whom the election names, also once expired; absent while nobody."),
    ("seconds_since_renewal", "gauge", "Age of the last renewal, by our own clock."),
    ("duration_seconds", "gauge", "leaseDurationSeconds."),
    ("expiry_timestamp_seconds", "gauge", "When others may take it, by our own clock."),
    (
        "holder_changes_total",
        "counter",
        "How often somebody came while it existed, since the start.",
    ),
    ("handovers_total", "counter", "How often another holder came, also after it was made anew."),
    (
        "unheld_seconds_total",
        "counter",
        "Seconds in which nobody validly held it, as far as it is watched.",
    ),
)


def shown(cluster: WatchedCluster, limit: int) -> Iterator[Tracked]:
    """The first elections by name, so that each scrape has the same ones."""
    return islice(cluster.store.select((Kind.ELECTION,), tuple(Phase)), limit)


def left_out(cluster: WatchedCluster, limit: int) -> int:
    """How many elections have no series of their own."""
    return max(0, sum(cluster.store.counts()[Kind.ELECTION].values()) - limit)


def election_series(clusters: Iterable[WatchedCluster], limit: int, now: datetime) -> str:
    """All families with their lines, at most `limit` elections of each cluster."""
    lines: list[list[str]] = [
        [f"# HELP {PREFIX}{name} {text}", f"# TYPE {PREFIX}{name} {kind}"]
        for name, kind, text in FAMILIES
    ]
    for cluster in clusters:
        for tracked in shown(cluster, limit):
            for family, line in _samples(cluster, tracked, now):
                lines[family].append(line)
    return "".join(f"{line}\n" for family in lines for line in family)


def _samples(cluster: WatchedCluster, tracked: Tracked, now: datetime) -> Iterator[tuple[int, str]]:
    """Each value's family, as an index of FAMILIES, and its line."""
    key, spec = tracked.key, tracked.lease.spec
    namespace, name = _escaped(key.namespace), _escaped(key.name)
    labels = f'cluster="{cluster.name}",namespace="{namespace}",name="{name}"'
    holder, runs_out_at = tracked.holder, tracked.runs_out_at
    if holder is not None:
        yield (
            0,
            f'{PREFIX}holder_info{{{labels},holder="{_escaped(shortened(holder, MAX_HOLDER))}"}} 1',
        )
        age = (now - tracked.renewed_at).total_seconds()
        yield 1, f"{PREFIX}seconds_since_renewal{{{labels}}} {age:.3f}"
    if spec.lease_duration_seconds is not None:
        yield 2, f"{PREFIX}duration_seconds{{{labels}}} {spec.lease_duration_seconds}"
    if runs_out_at is not None:
        yield 3, f"{PREFIX}expiry_timestamp_seconds{{{labels}}} {runs_out_at.timestamp():.3f}"
    # As of the last word of the cluster: nobody knows whether a gap goes on while nobody watches.
    counted = cluster.counters.election(tracked, cluster.as_of(now))
    yield 4, f"{PREFIX}holder_changes_total{{{labels}}} {counted.holder_changes}"
    yield 5, f"{PREFIX}handovers_total{{{labels}}} {counted.handovers}"
    yield 6, f"{PREFIX}unheld_seconds_total{{{labels}}} {counted.unheld_seconds:.3f}"


def _escaped(value: str) -> str:
    """Escape a label's value for the text format."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def exposition(board: Board, *, elections: int, now: datetime) -> str:
    """The whole page, with series for at most `elections` elections of each cluster."""
    registry = CollectorRegistry()
    registry.register(_Families(board, elections))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    few = generate_latest(registry).decode()
    return few + election_series(board.clusters.values(), elections, now)


class _Families(Collector):
    """Reads the running process at each scrape."""

    def __init__(self, board: Board, elections: int) -> None:
        self._runtime = board
        self._elections = elections

    def collect(self) -> Iterable[core.Metric]:
        clusters = list(self._runtime.clusters.values())
        known = [cluster for cluster in clusters if cluster.store.known]
        yield _leases(known)
        yield self._flapping()
        yield from _counted(clusters)
        yield from _watch(clusters)
        yield self._live_clients()
        yield from self._history()
        yield core.CounterMetricFamily(
            "leaseboard_clock_jumps", "Times the wall clock of the server jumped.",
            self._runtime.clock.jumps,
        )  # fmt: skip
        yield self._restarts()
        yield self._notifications()
        yield _gauge(
            "elections_left_out",
            "Elections without series of their own, beyond LEASEBOARD_METRICS_ELECTIONS.",
            ((cluster.name, left_out(cluster, self._elections)) for cluster in known),
        )

    def _live_clients(self) -> core.Metric:
        family = core.GaugeMetricFamily(
            "leaseboard_live_clients", "Open pages and readers of the live feed.",
            labels=["cluster", "kind"],
        )  # fmt: skip
        for name, feed in self._runtime.feeds.items():
            for kind, number in feed.readers.items():
                family.add_metric([name, kind], number)
        return family

    def _flapping(self) -> core.Metric:
        family = core.GaugeMetricFamily(
            "leaseboard_leases_flapping", "Leases that change hands too often.",
            labels=["cluster", "kind"],
        )  # fmt: skip
        for name, feed in self._runtime.feeds.items():
            if not feed.store.known:
                continue
            as_of = feed.store.connection.as_of(clock.now())
            found = map(feed.store.get, feed.flappers.at(as_of))
            kinds = Counter(one.kind for one in found if one is not None)
            for kind in Kind:
                family.add_metric([name, kind.value], kinds[kind])
        return family

    def _restarts(self) -> core.Metric:
        family = core.CounterMetricFamily(
            "leaseboard_task_restarts",
            "Times a task stopped on an error that nobody expected; no cluster: of the process.",
            labels=["task", "cluster"],
        )
        for (task, cluster), number in sorted(self._runtime.supervisor.restarts.copy().items()):
            family.add_metric([task, cluster], number)
        return family

    def _notifications(self) -> core.Metric:
        family = core.CounterMetricFamily(
            "leaseboard_notifications",
            "Deliveries to receivers since the start, each attempt: sent or failed.",
            labels=["receiver", "outcome"],
        )
        outcomes = self._runtime.notifications.outcomes.copy()
        for sort in Sort:
            for outcome in ("sent", "failed"):
                family.add_metric([sort.value, outcome], outcomes[sort.value, outcome])
        return family

    def _history(self) -> Iterator[core.Metric]:
        recorder = self._runtime.recorder
        yield core.GaugeMetricFamily(
            "leaseboard_history_queue_changes", "Changes not yet written.", recorder.waiting
        )
        yield core.GaugeMetricFamily(
            "leaseboard_history_failing",
            "1 while the database does not take what is to be written.",
            int(recorder.problem is not None),
        )
        yield core.CounterMetricFamily(
            "leaseboard_history_refused",
            "Changes, states and times of watching that the database refused, now set aside.",
            recorder.refused.total,
        )
        yield core.SummaryMetricFamily(
            "leaseboard_history_write_seconds", "How long each transaction took to write.",
            count_value=recorder.writes, sum_value=recorder.write_seconds,
        )  # fmt: skip


def _leases(clusters: Iterable[WatchedCluster]) -> core.Metric:
    family = core.GaugeMetricFamily(
        "leaseboard_leases", "Leases that there are.", labels=["cluster", "kind", "phase"]
    )
    for cluster in clusters:
        for kind, phases in cluster.store.counts().items():
            for phase, number in phases.items():
                family.add_metric([cluster.name, kind.value, phase.value], number)
    return family


def _counted(clusters: Iterable[WatchedCluster]) -> Iterator[core.Metric]:
    """The counters of the clusters."""
    changes = core.CounterMetricFamily(
        "leaseboard_changes", "Changes seen since the start.", labels=["cluster", "kind", "change"]
    )
    relists = core.CounterMetricFamily(
        "leaseboard_relists", "Complete lists read, by why.", labels=["cluster", "reason"]
    )
    for cluster in clusters:
        for (kind, change), number in sorted(dict(cluster.counters.changes).items()):
            changes.add_metric([cluster.name, kind.value, change.value], number)
        for reason, number in sorted(dict(cluster.counters.lists).items()):
            relists.add_metric([cluster.name, reason], number)
    yield changes
    yield relists
    yield _incidents(clusters)
    totals = [(cluster.name, cluster.counters) for cluster in clusters]
    for word, text, values in (
        ("watch_events", "Events of the watch.", [(n, t.events) for n, t in totals]),
        ("watch_bookmarks", "Bookmarks of the watch.", [(n, t.bookmarks) for n, t in totals]),
        ("watch_breaks", "Times the watch broke.", [(n, t.breaks) for n, t in totals]),
        (
            "events_not_understood",
            "Writes of Leases that could not be followed and were skipped.",
            [(n, t.not_understood) for n, t in totals],
        ),
        (
            "near_misses",
            "Near misses of elections since the start; the page lists those of the last hour.",
            [(n, t.near_misses) for n, t in totals],
        ),
    ):
        family = core.CounterMetricFamily(f"leaseboard_{word}", text, labels=["cluster"])
        for name, number in values:
            family.add_metric([name], number)
        yield family


def _incidents(clusters: Iterable[WatchedCluster]) -> core.Metric:
    family = core.CounterMetricFamily(
        "leaseboard_incidents", "Settled incidents.", labels=["cluster", "cause"]
    )
    for cluster in clusters:
        for cause in Cause:
            family.add_metric([cluster.name, cause.value], cluster.counters.incidents[cause])
    return family


def _watch(clusters: Iterable[WatchedCluster]) -> Iterator[core.Metric]:
    """The state of each watch."""
    stands = [(cluster.name, cluster.store.connection) for cluster in clusters]
    yield _gauge(
        "connected", "1 while the watch is live.",
        ((name, int(stand.state is ConnectionState.LIVE)) for name, stand in stands),
    )  # fmt: skip
    yield _gauge(
        "synced", "1 once a complete list has been read.",
        ((cluster.name, int(cluster.synced)) for cluster in clusters),
    )  # fmt: skip
    yield _gauge(
        "seconds_behind",
        "How old the newest event taken is while more wait; else how late renewals arrive.",
        ((name, stand.behind_seconds) for name, stand in stands),
    )  # fmt: skip
    yield _gauge(
        "last_heard_timestamp_seconds", "When the cluster last sent anything.",
        ((name, at.timestamp() if (at := stand.heard_at) else None) for name, stand in stands),
    )  # fmt: skip


def _gauge(word: str, text: str, values: Iterable[tuple[str, float | None]]) -> core.Metric:
    """One value for each cluster; unknown values are left out."""
    family = core.GaugeMetricFamily(f"leaseboard_{word}", text, labels=["cluster"])
    for name, value in values:
        if value is not None:
            family.add_metric([name], value)
    return family


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """All metrics; 401 without the token if the settings have one."""
    config: Config = settings.LEASEBOARD
    api_token = getattr(request, "api_token", None)
    if is_token_set() and not sends_token(request) and api_token is None:
        return HttpResponse(
            "Send LEASEBOARD_METRICS_TOKEN as a bearer token.\n",
            status=401,
            headers={"WWW-Authenticate": "Bearer", "Content-Type": "text/plain"},
        )
    text = exposition(running_board(), elections=config.metrics_elections, now=clock.now())
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST)
