"""All heartbeats as one picture: slots in order, a byte a phase, small differences."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from dashboard.pages.nodes import CHANGES, GONE, WHOLE, NodeGrid
from dashboard.watched_cluster import NodeBook
from leases.domain.lease import Lease, LeaseSpec, Node, ObjectMeta
from leases.tracking.store import Store
from leases.wire.watch_decoding import Applied, Deleted, Listed

NOW = datetime.now(UTC)
HELD, EXPIRED = 0, 2


def beat(name: str, *, version: int = 1, seconds: float = 0.0) -> Lease:
    meta = ObjectMeta(name, "kube-node-lease", f"uid-{name}", str(version), NOW)
    spec = LeaseSpec(name, 40, None, NOW + timedelta(seconds=seconds))
    return Lease(meta, spec)


@pytest.fixture
def store():
    one = Store("a")
    one.replace(Listed(tuple(beat(f"n-{number}") for number in range(5)), "9"), NOW)
    return one


async def ordered(field: NodeGrid) -> NodeGrid:
    field.tick()
    if field.making is not None:
        await field.making
    return field


def read(picture: bytes) -> tuple[int, int, int, list[tuple[int, int]] | bytes]:
    what, generation, size = struct.unpack_from("<III", picture)
    body = picture[12:]
    if what == WHOLE:
        return what, generation, size, body
    pairs = [(pair >> 3, pair & 7) for (pair,) in struct.iter_unpack("<I", body)]
    return what, generation, size, sorted(pairs)


async def test_every_heartbeat_has_a_slot_in_name_order(store):
    field = await ordered(NodeGrid(store, NodeBook(), "none"))
    assert [key.name for key in field.layout.keys] == ["n-0", "n-1", "n-2", "n-3", "n-4"]
    assert field.layout.groups == [("", 5)]
    assert read(field.whole()) == (WHOLE, 1, 5, bytes([HELD] * 5))


async def test_slots_lie_in_the_groups_of_their_nodes_those_without_one_last(store):
    nodes = NodeBook()
    nodes.nodes = {f"n-{n}": Node(f"n-{n}", True, zone="ab"[n % 2]) for n in range(4)}
    field = await ordered(NodeGrid(store, nodes, "zone"))
    assert [key.name for key in field.layout.keys] == ["n-0", "n-2", "n-1", "n-3", "n-4"]
    assert field.layout.groups == [("a", 2), ("b", 2), ("", 1)]


async def test_a_difference_holds_only_the_slots_that_changed(store):
    field = await ordered(NodeGrid(store, NodeBook(), "none"))
    start = field.position
    assert field.since(start) is None
    field.notice(store.follow((Applied(beat("n-1", version=10, seconds=30)),), at(30)))
    field.notice(store.turn(at(41)))
    assert read(field.since(start)) == (CHANGES, 1, 5, [(n, EXPIRED) for n in (0, 2, 3, 4)])
    later = field.position
    field.notice(store.follow((Applied(beat("n-3", version=11, seconds=42)),), at(42)))
    assert read(field.since(later)) == (CHANGES, 1, 5, [(3, HELD)])
    assert read(field.whole())[3] == bytes([EXPIRED, HELD, EXPIRED, HELD, EXPIRED])


async def test_new_nodes_come_last_and_deleted_ones_leave_a_gap(store):
    field = await ordered(NodeGrid(store, NodeBook(), "none"))
    start = field.position
    field.notice(store.follow((Applied(beat("a-new", version=10)),), at(1)))
    field.notice(store.follow((Deleted(beat("n-0", version=11)),), at(1)))
    assert read(field.since(start)) == (CHANGES, 1, 6, [(0, GONE), (5, HELD)])
    assert field.layout.groups == [("", 5), ("Came later", 1)]


async def test_a_list_orders_everything_anew_under_the_next_generation(store):
    field = await ordered(NodeGrid(store, NodeBook(), "none"))
    field.notice(store.replace(Listed((beat("z"), beat("a", version=20)), "30"), at(1)))
    await ordered(field)
    assert field.layout.generation == 2
    assert [key.name for key in field.layout.keys] == ["a", "z"]


async def test_changes_while_the_order_is_made_are_not_lost(store):
    field = NodeGrid(store, NodeBook(), "none")
    field.tick()
    field.notice(store.follow((Deleted(beat("n-2", version=11)),), at(1)))
    await field.making
    assert read(field.whole())[3] in (bytes([HELD, HELD, GONE, HELD, HELD]), bytes([HELD] * 4))


async def test_a_page_that_fell_far_behind_gets_the_whole(store):
    many = tuple(beat(f"m-{number}") for number in range(60))
    store.replace(Listed(many, "90"), NOW)
    field = await ordered(NodeGrid(store, NodeBook(), "none"))
    start = field.position
    for version in range(100, 170):
        lease = beat("m-0", version=version)
        holder = "x" if version % 2 else None
        spec = msgspec.structs.replace(lease.spec, holder_identity=holder)
        field.notice(store.follow((Applied(Lease(lease.metadata, spec)),), at(1)))
    assert field.position - start > 60
    assert read(field.since(start))[0] == WHOLE


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)
