"""Names, counts and selections follow every event and every turn of the clock."""

from __future__ import annotations

from leases.domain.kind import Kind
from leases.domain.phase import Phase
from leases.tracking.store import Store
from leases.wire.watch_decoding import Deleted, Listed
from tests.support.values.leases import after, lease
from tests.tracking.store.one_store import put


def test_names_stay_in_order_and_counts_follow() -> None:
    store = Store("c")
    many = [lease(name=f"n-{n:03}", uid=str(n), version=n, renewed=1) for n in range(1, 400)]
    store.replace(Listed(tuple(reversed(many)), "400"), after(2))
    put(store, 3, name="n-0055", uid="x", version=401)
    put(store, 3, name="z", namespace="zz", uid="y", version=402)
    store.follow((Deleted(lease(name="n-007", uid="7", version=403)),), after(3))
    names = [tracked.key for tracked in store.snapshot()]
    assert names == sorted(names)
    assert len(names) == 400
    assert store.counts()[Kind.ELECTION][Phase.HELD] == 400


def test_a_selection_is_in_name_order_and_follows_every_turn() -> None:
    store = Store("c")
    nodes = [
        lease(
            f"n-{n:03}", name=f"n-{n:03}", namespace="kube-node-lease", uid=str(n), version=n,
            renewed=90 + n % 2 * 10, acquired=None, transitions=None,
        )
        for n in range(1, 200)
    ]  # fmt: skip
    elections = [lease(name=f"e-{n}", uid=f"e{n}", version=n, renewed=100) for n in (2, 1)]
    store.replace(Listed((*nodes, *elections), "400"), after(100))

    def names(kinds: tuple[Kind, ...], *phases: Phase) -> list[str]:
        return [tracked.lease.metadata.name for tracked in store.select(kinds, phases)]

    assert names((Kind.ELECTION,), *Phase) == ["e-1", "e-2"]
    assert len(names(tuple(Kind), Phase.HELD)) == 201
    while store.turn(after(107)):
        pass  # a step turns only so many
    assert names((Kind.HEARTBEAT,), Phase.EXPIRED) == [f"n-{n:03}" for n in range(2, 200, 2)]
    gone = lease("n-002", name="n-002", namespace="kube-node-lease", uid="2", version=500)
    store.follow((Deleted(gone),), after(108))
    assert "n-002" not in names(tuple(Kind), Phase.EXPIRED)
    everything = [tracked.lease.metadata.name for tracked in store.snapshot()]
    assert names(tuple(Kind), *Phase) == everything
    assert store.namespaces() == ["default", "kube-node-lease"]
    assert store.of_namespace("default") == store.snapshot()[:2]
