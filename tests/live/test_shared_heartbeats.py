"""Shared regions of heartbeats, Nodes and trouble are drawn again when what they show changes."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from dashboard.live import shared_drawings
from dashboard.live.publisher import ClusterHub
from dashboard.live.shared_drawings import GROUPS, Drawn, SharedRegions
from dashboard.pages.nodes import NodeGrid
from leases.domain.lease import Lease, LeaseSpec, ObjectMeta
from leases.tracking.store import Store
from leases.wire.watch_decoding import Applied, Deleted, Listed
from tests.support.board import a_lease

NOW = datetime.now(UTC)


def beat(name: str, version: int, renewed: float) -> Lease:
    """A heartbeat, renewed so many seconds after NOW."""
    meta = ObjectMeta(name, "kube-node-lease", f"uid-{name}", str(version), NOW)
    return Lease(meta, LeaseSpec(name, 40, None, NOW + timedelta(seconds=renewed)))


@pytest.fixture
def hub() -> ClusterHub:
    """One node in time, one that stopped ten minutes ago, and a held election."""
    store = Store("a")
    listed = (beat("alive", 1, 0), beat("silent", 2, -600), a_lease(now=NOW, version="3"))
    store.replace(Listed(listed, "9"), NOW)
    return ClusterHub(store)


def draw(hub: ClusterHub, group: str, known: dict[str, Drawn]) -> dict[str, str]:
    """The regions that differ from those known; `known` holds them afterwards."""
    fresh = shared_drawings._fresh(GROUPS[group].draw, known, hub, NOW)
    known.update({name: Drawn(1, stamp, html) for name, (stamp, html) in fresh.items()})
    return {name: html for name, (_, html) in fresh.items()}


def apply(hub: ClusterHub, event: Applied | Deleted) -> None:
    update = hub.store.follow((event,), NOW)
    assert update is not None
    hub.publish(update)


def test_an_expired_node_is_shown_until_it_renews(hub):
    known: dict[str, Drawn] = {}
    first = draw(hub, "nodes", known)
    assert "silent" in first["worst"]
    assert draw(hub, "nodes", known) == {}
    apply(hub, Applied(beat("silent", 10, 0)))
    again = draw(hub, "nodes", known)
    assert {"node-counts", "worst"} <= set(again)
    assert "silent" not in again["worst"]


def test_a_deleted_heartbeat_changes_the_counts(hub):
    known: dict[str, Drawn] = {}
    draw(hub, "nodes", known)
    apply(hub, Deleted(beat("alive", 10, 0)))
    assert "node-counts" in draw(hub, "nodes", known)


def test_trouble_is_shown_until_it_is_over(hub):
    known: dict[str, Drawn] = {}
    first = draw(hub, "overview", known)
    assert "silent" in first["attention"]
    apply(hub, Applied(beat("silent", 10, 0)))
    again = draw(hub, "overview", known)
    assert "silent" not in again["attention"]


def test_the_ages_of_heartbeats_are_drawn(hub):
    assert "No heartbeats are known." not in draw(hub, "ages", {})["ages"]


async def test_each_drawing_has_the_next_number(hub):
    shared = SharedRegions()
    for number in (1, 2):
        shared.tick(hub, ["ages"], NOW)
        await asyncio.gather(*shared._drawing.values())
        region = shared.drawn["ages"]["ages"]
        assert region.number == shared.drawings == number
        assert "Age of the last renewal of 2 heartbeats" in region.html
        shared.tick(hub, [], NOW)  # no page shows it: it is dropped, and drawn again when one does
        assert shared.drawn == {}


async def test_the_end_cancels_drawings_and_waits_for_them(hub, monkeypatch):
    shared = SharedRegions()
    began = asyncio.Event()

    async def never(*_given: object) -> None:
        began.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(shared_drawings._threads, "run", never)
    shared.tick(hub, ["ages"], NOW)
    (drawing,) = shared._drawing.values()
    await began.wait()
    await shared.stop()
    assert drawing.cancelled()


async def test_nothing_is_drawn_once_the_publisher_has_ended(hub):
    drawings = [asyncio.create_task(asyncio.Event().wait()) for _ in range(2)]
    hub.grids["none"] = NodeGrid(hub.store, hub.nodes, "none", hub._report_failure)
    hub.shared._drawing["ages"], hub.grids["none"].making = drawings
    publishing = asyncio.create_task(hub.run())
    await asyncio.sleep(0)
    publishing.cancel()
    await asyncio.gather(publishing, return_exceptions=True)
    ended = [one.cancelled() for one in drawings]
    for one in drawings:
        one.cancel()
    assert ended == [True, True]
