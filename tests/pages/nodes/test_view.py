"""Heartbeats beside Nodes: counts, the worst, groups, orphans, disagreement."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta

import pytest

from dashboard.live.publisher import ClusterHub
from dashboard.pages.nodes import NodeGrid
from dashboard.parts.node_summary import group_lines, nodes_view
from leases.domain.lease import Lease, LeaseSpec, Node, ObjectMeta
from leases.wire.watch_decoding import Listed

NOW = datetime.now(UTC)


def beat(name: str, *, age: float = 1.0, now: datetime = NOW) -> Lease:
    born = now - timedelta(days=1)
    meta = ObjectMeta(name, "kube-node-lease", f"uid-{name}", "1", born)
    return Lease(meta, LeaseSpec(name, 40, None, now - timedelta(seconds=age)))


def listed(hub: ClusterHub, now: datetime) -> None:
    """Four heartbeats: one dead for long, one for a moment, one without a Node."""
    ages = {"n-1": 1, "n-2": 400, "n-3": 45, "n-4": 1}
    beats = [beat(name, age=age, now=now) for name, age in ages.items()]
    hub.store.replace(Listed(tuple(beats), "9"), now)
    hub.store.turn(now)


@pytest.fixture
def hub(board):
    one = board.publisher.hubs["a"]
    listed(one, NOW)
    return one


def read_nodes(hub, *nodes: Node) -> None:
    hub.nodes.nodes = {node.name: node for node in nodes}
    hub.nodes.read_at, hub.nodes.problem = NOW, ""


def test_heartbeats_are_counted_and_the_oldest_come_first(hub):
    view = nodes_view(hub, NOW)
    assert view.counts == (("held", 2), ("late", 0), ("expired", 2))
    assert [beat.full for beat in view.worst] == ["n-2", "n-3"]
    assert view.finding == "4 heartbeats: 2 held, 0 late, 2 expired."
    assert not view.join.known
    assert view.join.says == "The Nodes have not been read yet."


def test_heartbeats_that_were_never_read_are_unknown_and_not_none(board, operator):
    html = operator.get("/c/a/nodes/").content.decode()
    assert html.count('<dd class="num">?</dd>') == 5
    assert "data-count=" not in html
    assert "The heartbeats are not read yet." in html
    board.clusters["a"].store.replace(Listed((), "1"), NOW)
    html = operator.get("/c/a/nodes/").content.decode()
    assert 'data-count="heartbeat.held">0<' in html
    assert "No heartbeat is known here." in html


def test_leases_without_a_node_and_ready_nodes_without_a_heartbeat_are_listed(hub):
    read_nodes(hub, Node("n-1", True), Node("n-2", True), Node("n-3", True))
    join = nodes_view(hub, NOW).join
    assert [beat.full for beat in join.orphans] == ["n-4"]
    assert [beat.full for beat in join.disagreeing] == ["n-2"]  # n-3 may yet turn NotReady


def test_nodes_without_a_heartbeat_are_listed(hub, operator):
    read_nodes(hub, *(Node(f"n-{n}", True) for n in range(1, 7)))
    join = nodes_view(hub, NOW).join
    assert (join.silent, join.silent_total) == (("n-5", "n-6"), 2)
    html = operator.get("/c/a/nodes/").content.decode()
    assert 'Nodes without a heartbeat <span class="count">2</span>' in html
    assert "n-5, n-6" in html


def test_a_node_that_is_not_ready_agrees_with_its_dead_heartbeat(hub):
    read_nodes(hub, *(Node(f"n-{n}", n != 2) for n in range(1, 5)))
    join = nodes_view(hub, NOW).join
    assert (join.orphan_total, join.disagreeing_total) == (0, 0)


def test_groups_come_troubled_first(hub):
    zones = {"n-1": "a", "n-2": "b", "n-3": "b", "n-4": "c"}
    read_nodes(hub, *(Node(name, True, zone) for name, zone in zones.items()))
    lines = group_lines(hub, "zone")
    assert [(line.name, line.nodes, line.expired) for line in lines] == [
        ("b", 2, 2), ("a", 1, 0), ("c", 1, 0),
    ]  # fmt: skip
    assert group_lines(hub, "none") == ()


def test_the_page_shows_everything_without_a_script(hub, operator):
    read_nodes(hub, Node("n-1", True, "eu-1a"), Node("n-2", True, "eu-1b"))
    html = operator.get("/c/a/nodes/").content.decode()
    for said in ("eu-1b", "4 heartbeats: 2 held, 0 late, 2 expired.", 'title="n-2"', "n-4"):
        assert said in html
    assert 'aria-current="true">Zone</a>' in html
    assert "data-lease=" not in html  # it says which Leases a page shows
    assert "Pools" in operator.get("/c/a/nodes/?group=pool").content.decode()


def test_orphans_are_one_line_of_the_overview(hub, operator):
    read_nodes(hub, Node("n-1", True))
    html = re.sub(r"\s+", " ", operator.get("/c/a/").content.decode())
    assert "<b>Orphaned.</b> 3 heartbeats of Nodes that are not there." in html


def test_cells_name_their_nodes(board, operator):
    hub = board.publisher.hubs["a"]
    listed(hub, datetime.now(UTC))  # the view reads the clock: NOW may be minutes ago
    field = hub.grids["none"] = NodeGrid(hub.store, hub.nodes, "none")

    async def order() -> None:
        field.tick()
        await field.making

    asyncio.run(order())
    cells = operator.get("/c/a/nodes/cells/?generation=1&first=2").json()["cells"]
    assert [name for name, _ in cells] == [f"kube-node-lease/n-{n}" for n in (2, 3, 4)]
    assert cells[0][1].startswith("renewed 6 m ")


def test_cells_of_a_picture_that_nobody_sees_are_refused(hub, operator):
    answer = operator.get("/c/a/nodes/cells/?group=none&generation=1")
    assert (answer.status_code, answer.json()["error"]) == (409, "The picture is another by now.")
    assert operator.get("/c/a/nodes/cells/?first=x").status_code == 400
