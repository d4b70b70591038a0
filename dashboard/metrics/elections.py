"""The series of each election, written directly in Prometheus' text format.

Through the library's samples, 2,000 elections would take more than 100 ms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice

from dashboard.parts.formatting import shortened
from dashboard.parts.kept.watched_cluster import WatchedCluster
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from leases.tracking.tracked_lease import Tracked

PREFIX = "leaseboard_election_"
MAX_HOLDER = 512  # characters of a label; an API server accepts a megabyte
# Name, type and help of each family, in the order in which `_samples` gives their values.
FAMILIES = (
    ("holder_info", "gauge", "Who holds the election; absent while nobody does."),
    ("seconds_since_renewal", "gauge", "Age of the last renewal, by our own clock."),
    ("duration_seconds", "gauge", "leaseDurationSeconds."),
    ("expiry_timestamp_seconds", "gauge", "When others may take it, by our own clock."),
    ("holder_changes_total", "counter", "Changes of holder since the start."),
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


def exposition(clusters: Iterable[WatchedCluster], limit: int, now: datetime) -> str:
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
        age = (now - tracked.observed_at).total_seconds()
        yield 1, f"{PREFIX}seconds_since_renewal{{{labels}}} {age:.3f}"
    if spec.lease_duration_seconds is not None:
        yield 2, f"{PREFIX}duration_seconds{{{labels}}} {spec.lease_duration_seconds}"
    if runs_out_at is not None:
        yield 3, f"{PREFIX}expiry_timestamp_seconds{{{labels}}} {runs_out_at.timestamp():.3f}"
    # As of the last word of the cluster: nobody knows whether a gap goes on while nobody watches.
    changes, unheld = cluster.counters.election(tracked, cluster.as_of(now))
    yield 4, f"{PREFIX}holder_changes_total{{{labels}}} {changes}"
    yield 5, f"{PREFIX}unheld_seconds_total{{{labels}}} {unheld:.3f}"


def _escaped(value: str) -> str:
    """Escape a label's value for the text format."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
