"""How a watched cluster follows the renewals of its Leases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from dashboard import watched_cluster
from dashboard.watched_cluster import REMEMBERS
from leases.domain.lease import Lease, ObjectName
from leases.kube.open_watch import Slices
from leases.wire.watch_decoding import Applied
from tests.support.board import a_lease, fill

NAMES = [ObjectName("default", f"lease-{number}") for number in range(5)]


def renewed(lease: Lease, at: datetime, version: int) -> Lease:
    meta = msgspec.structs.replace(lease.metadata, resource_version=str(version))
    spec = msgspec.structs.replace(lease.spec, renew_time=at)
    return Lease(meta, spec)


@pytest.mark.parametrize(("seconds", "looks"), [(10.0, 4), (2.0, 4), (1.0, 2), (0.25, 1)])
async def test_elections_are_followed_in_slices_and_heartbeats_once_a_page_asks(
    board, monkeypatch, seconds, looks
):
    """`looks`: of so many, one is needed where the fastest is renewed every `seconds`."""
    monkeypatch.setattr(watched_cluster, "SLICE", 2)
    cluster = board.clusters["a"]
    begin = datetime.now(UTC)
    node = ObjectName("kube-node-lease", "worker-1")
    keys = [*NAMES, node]
    leases = {key: a_lease(key, holder="cp-1", now=begin) for key in NAMES}
    leases[node] = a_lease(node, holder=node.name, now=begin)
    fill(cluster.store, *leases.values())
    cluster.renewals.of(cluster.store.get(node))
    for step in (1, 2, 3):
        at = begin + timedelta(seconds=seconds * step)
        for key in keys:
            cluster.store.apply(Applied(renewed(leases[key], at, 200 + step)), at)
        looked = []
        for _ in range(REMEMBERS):
            cluster.counters.events += len(keys)
            await cluster.look_at_renewals(at, Slices())
            looked.append(cluster._looked == cluster.counters.events)
        assert looked == [not number % looks for number in range(REMEMBERS)]
        assert cluster.renewals._rings[keys[0]].seen == step
    cluster._looked = cluster.counters.events
    for _ in range(REMEMBERS):
        await cluster.look_at_renewals(at, Slices())
    assert cluster._looks <= 0, "nothing came, so nothing was looked at"
    assert set(cluster.renewals._rings) == set(keys)
    for key in keys:
        reported = cluster.renewals.of(cluster.store.get(key))
        assert max(one.seconds for one in reported) == seconds, key
    await cluster.look_at_renewals(begin + timedelta(hours=2), Slices())
    assert cluster.renewals._rings == {}
