"""How a watched cluster follows the renewals of its Leases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from dashboard import watched_cluster
from dashboard.watched_cluster import LOOKS
from leases.domain.lease import Lease, ObjectName
from leases.kube.open_watch import Slices
from leases.wire.watch_decoding import Applied
from tests.support.board import a_lease, fill

NAMES = [ObjectName("default", f"lease-{number}") for number in range(5)]


def renewed(lease: Lease, at: datetime, version: int) -> Lease:
    meta = msgspec.structs.replace(lease.metadata, resource_version=str(version))
    spec = msgspec.structs.replace(lease.spec, renew_time=at)
    return Lease(meta, spec)


@pytest.mark.parametrize(("seconds", "looks"), [(10.0, LOOKS), (2.0, LOOKS), (1.0, 1)])
async def test_elections_are_followed_in_slices_and_heartbeats_once_a_page_asks(
    board, monkeypatch, seconds, looks
):
    """`looks`: of so many, one is at those that are renewed every `seconds`."""
    monkeypatch.setattr(watched_cluster, "SLICE", 2)
    cluster = board.clusters["a"]
    begin = datetime.now(UTC)
    node = ObjectName("kube-node-lease", "worker-1")
    leases = {key: a_lease(key, holder="cp-1", now=begin) for key in NAMES}
    leases[node] = a_lease(node, holder=node.name, now=begin)
    fill(cluster.store, *leases.values())
    cluster.renewals.of(cluster.store.get(node))
    rings = cluster.renewals._rings
    for step in range(1, 10):
        at = begin + timedelta(seconds=seconds * step)
        for lease in leases.values():
            cluster.store.follow((Applied(renewed(lease, at, 200 + step)),), at)
        cluster.counters.events += len(leases)
        await cluster.look_at_renewals(at, Slices())
        assert rings[node].seen == step, "a page shows it"
        assert rings[NAMES[0]].seen == step - (step - 1) % looks
    assert set(rings) == set(leases)
    for key in leases:
        reported = cluster.renewals.of(cluster.store.get(key))
        assert max(one.seconds for one in reported) == seconds, key
    await cluster.look_at_renewals(begin + timedelta(hours=2), Slices())
    assert rings == {}


async def test_nothing_is_looked_at_where_nothing_came(board, monkeypatch):
    cluster = board.clusters["a"]
    fill(cluster.store, a_lease(NAMES[0], holder="cp-1"))
    looked = []
    monkeypatch.setattr(cluster.renewals, "look", looked.append)
    for came in (True, False, False):
        cluster.counters.events += came
        await cluster.look_at_renewals(datetime.now(UTC), Slices())
    assert len(looked) == 1
