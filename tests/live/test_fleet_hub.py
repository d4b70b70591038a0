"""The page of all clusters is told what changes, each cluster drawn once for all pages."""

from __future__ import annotations

import asyncio
import gc
import json
import re
from datetime import UTC, datetime, timedelta
from itertools import count
from types import SimpleNamespace
from weakref import ref

import msgspec
import pytest
from asgiref.sync import sync_to_async
from channels.routing import URLRouter

from dashboard.feed import KEPT_CHANGES, PROCESS
from dashboard.live import fleet, shared_drawings
from dashboard.live.consumers import urlpatterns
from dashboard.live.fleet import FleetHub, FleetReader, NewsReader
from dashboard.live.messages import Show
from dashboard.live.publisher import Publisher
from dashboard.live.shared_drawings import InTurn
from dashboard.live.socket_guards import own_sites_only
from dashboard.pages.fleet import STRIP, drawing_of, told
from dashboard.parts.across import PartlyLive
from dashboard.parts.fleet_row import CALM_LASTS, LASTS, latest_row
from leases.domain.kind import Kind
from leases.domain.steady_clock import Jump
from leases.domain.watched_times import Connection, ConnectionState
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update
from leases.wire.watch_decoding import Applied, Listed
from tests.support.board import KEY, a_lease, board, fill, member  # noqa: F401
from tests.support.communicator import Socket
from tests.support.values.changes import a_change
from tests.support.values.incident_rows import incident_with

NOW = datetime(2026, 11, 20, 3, 12, 40, tzinfo=UTC)
STRIPS_OF_WALL = {"fleet-1", "fleet-2"}
STRIPS = {"strip-a", "cell-a", "strip-b", "cell-b"}


@pytest.fixture
def publisher() -> Publisher:
    """Two live clusters with one held election each."""
    stores = {name: Store(name) for name in ("a", "b")}
    for store in stores.values():
        fill(store, a_lease(now=NOW))
        store.connection = Connection(state=ConnectionState.LIVE, since=NOW)
    return Publisher(stores)


@pytest.fixture
def hub(publisher: Publisher, monkeypatch) -> FleetHub:
    monkeypatch.setattr(fleet, "SPACING", 0.0)
    return publisher.fleet


def open_page(hub: FleetHub, wall: tuple[str, ...] | None = None, **said) -> FleetReader:
    page = FleetReader(hub, wall)
    hub.join(page)
    page.show(Show(jumps=0, clusters=True, **said))
    return page


def held_now(publisher: Publisher, at: datetime | None = None) -> datetime:
    """The moment at which every Lease is held."""
    now = at or datetime.now(UTC)
    for hub in publisher.hubs.values():
        publisher.publish(hub.store.follow((Applied(a_lease(version="150", now=now)),), now))
        hub.store.connection = Connection(state=ConnectionState.LIVE, since=now, heard_at=now)
    return now


def lose_holder(publisher: Publisher, name: str, now: datetime = NOW, version: str = "200") -> None:
    lease = a_lease(holder=None, version=version, now=now)
    publisher.publish(publisher.hubs[name].store.follow((Applied(lease),), now))


async def test_a_page_gets_all_once_and_then_what_differs(publisher, hub):
    page = open_page(hub)
    await hub.tick(NOW)
    first = page.frame(NOW)
    assert set(first["regions"]) == STRIPS
    assert first["shown"]
    assert first["connection"]["state"] == "live"
    assert "live, 1 Lease" in first["clusters"]["a"]
    await hub.tick(NOW)
    assert page.frame(NOW) is None
    lose_holder(publisher, "b")
    await hub.tick(NOW)
    regions = page.frame(NOW)["regions"]
    assert set(regions) == {"strip-b", "cell-b"}
    assert "1 vacant election; no incident goes on." in regions["strip-b"]
    assert ">1 vacant election<" in regions["cell-b"]


async def test_a_page_gets_what_moved_since_it_was_drawn(publisher, hub):
    open_page(hub)
    await hub.tick(NOW)
    stamp = told.stamp
    page = open_page(hub, drawn=stamp)
    await hub.tick(NOW)
    frame = page.frame(NOW)
    assert frame["shown"]
    assert "regions" not in frame
    lose_holder(publisher, "b")
    await hub.tick(NOW)
    frame = page.frame(NOW)
    assert set(frame["regions"]) == {"strip-b", "cell-b"}
    for drawn, lacks in (
        (told.stamp, set()), (stamp, {"strip-b", "cell-b"}),
        (f"1-{told.number}", STRIPS), ("nonsense", STRIPS), (None, STRIPS),
    ):  # fmt: skip
        again = open_page(hub, drawn=drawn)
        await hub.tick(NOW)
        assert set(again.frame(NOW).get("regions", ())) == lacks, drawn


async def test_a_page_hears_that_what_it_shows_was_so_for_a_moment_alone(publisher, hub):
    """The sockets were never given the drawing that the page has."""
    held_now(publisher, NOW)
    open_page(hub)
    await hub.tick(NOW)
    stamp, feed = told.stamp, publisher.hubs["b"]
    told_before = feed.store.connection
    feed.store.connection = Connection(state=ConnectionState.STALE, since=NOW, heard_at=NOW)
    assert "stale since" in drawing_of(latest_row(feed, NOW), STRIP).html
    feed.store.connection = told_before
    page = open_page(hub, drawn=stamp)
    await hub.tick(NOW)
    assert "live since" in page.frame(NOW)["regions"]["strip-b"]


async def test_a_wall_that_comes_while_strips_are_drawn_gets_all_clusters(hub, monkeypatch):
    walls, real = [], fleet.drawings_of

    def draw(row):
        if not walls:
            walls.append(FleetReader(hub, ()))
            hub.join(walls[0])
        return real(row)

    monkeypatch.setattr(fleet, "drawings_of", draw)
    monkeypatch.setattr(fleet, "SPACING", 3600.0)
    open_page(hub)
    await hub.tick(NOW)
    [wall] = walls
    wall.show(Show(jumps=0))
    await hub.tick(NOW)
    regions = wall.frame(NOW)["regions"]
    assert regions["fleet-1"]
    assert regions["fleet-2"]


async def test_a_page_hears_that_history_is_not_reachable(hub):
    hub.problem = lambda: "History of a is not reachable."
    page = open_page(hub)
    await hub.tick(NOW)
    assert page.frame(NOW)["connection"]["problem"] == "History of a is not reachable."


async def test_a_cluster_that_is_removed_is_forgotten(publisher, hub):
    open_page(hub)
    await hub.tick(NOW)
    left = ref(publisher.hubs["b"])
    publisher.remove("b")
    await hub.tick(NOW)
    async with asyncio.timeout(30):  # the thread that drew it may look at it still
        while left() is not None:
            await asyncio.sleep(0.01)
            gc.collect()


async def test_what_did_not_move_while_no_page_was_open_is_not_sent(publisher, hub):
    first = open_page(hub)
    await hub.tick(NOW)
    stamp = told.stamp
    hub.pages.discard(first)
    running = asyncio.create_task(hub.run())
    async with asyncio.timeout(30):
        while hub.drawn:
            await asyncio.sleep(0.001)
    running.cancel()
    lose_holder(publisher, "b")
    page, stranger = open_page(hub, drawn=stamp), open_page(hub)
    for _ in range(2):
        await hub.tick(NOW)
        page.wake.clear()
    assert set(page.frame(NOW)["regions"]) == {"strip-b", "cell-b"}
    assert set(stranger.frame(NOW)["regions"]) == STRIPS


def test_a_row_in_trouble_is_read_again_sooner(publisher):
    held_now(publisher, NOW)
    feed = publisher.hubs["a"]
    assert latest_row(feed, NOW).lasts == CALM_LASTS
    assert latest_row(feed, NOW + LASTS) is latest_row(feed, NOW)
    hour = timedelta(hours=1)
    assert latest_row(feed, NOW - hour) is not latest_row(feed, NOW), "sums by hour begin anew"
    feed.going_on = lambda: (incident_with(a_change(), ended=None, settled=False),)
    feed.incidents_moved()
    assert latest_row(feed, NOW).lasts == LASTS


def test_a_calm_row_is_read_again_in_a_new_hour_and_with_other_labels(publisher):
    before = datetime(2026, 11, 20, 3, 59, 50, tzinfo=UTC)
    held_now(publisher, before)
    feed = publisher.hubs["a"]
    row = latest_row(feed, before)
    assert latest_row(feed, before + timedelta(seconds=5)) is row
    fresh = latest_row(feed, before + timedelta(seconds=15))
    assert fresh is not row, "its sums begin an hour later"
    feed.labels = {"env": "prod"}
    assert latest_row(feed, fresh.now) is not fresh


async def test_a_strip_is_drawn_at_once_when_its_version_is_known(publisher, hub):
    page = open_page(hub)
    await hub.tick(NOW)
    page.frame(NOW)
    publisher.hubs["a"].server_version = "v1.34.1"
    await hub.tick(NOW)
    assert "v1.34.1" in page.frame(NOW)["regions"]["strip-a"]


async def test_of_very_many_clusters_those_that_moved_come_first_and_others_in_turn(
    publisher, hub, monkeypatch
):
    drawn = []
    real = fleet.drawings_of
    monkeypatch.setattr(fleet, "drawings_of", lambda row: drawn.append(row.cluster) or real(row))
    monkeypatch.setattr(shared_drawings, "LOOKS_AT_ONCE", 1)
    monkeypatch.setattr(shared_drawings, "LOOKS_PER_SECOND", 0)
    versions = map(str, count(200))
    held_now(publisher, NOW)
    open_page(hub)
    await hub.tick(NOW)
    await hub.tick(NOW)
    drawn.clear()
    open_page(hub, wall=())
    await hub.tick(NOW)
    assert sorted(drawn) == ["a", "b"], "what was never drawn for a wall waits for no turn"
    drawn.clear()
    for moved in ("b", "b", "a"):
        lose_holder(publisher, moved, version=next(versions))
        await hub.tick(NOW)
        assert drawn == [moved]
        drawn.clear()
    for _ in range(2):  # whosever turn it is
        lose_holder(publisher, "b", version=next(versions))
        monkeypatch.setattr(fleet, "SPACING", 60.0)
        for _ in range(3):
            await hub.tick(NOW)
        assert not drawn
        monkeypatch.setattr(fleet, "SPACING", 0.0)
        await hub.tick(NOW)
        assert drawn == ["b"], "it moved, and waits for no turn"
        drawn.clear()
    for hub_of_one in publisher.hubs.values():
        hub_of_one.server_version = "v1.34.1"  # nobody tells of it
    await hub.tick(NOW)
    assert len(drawn) == 1
    await hub.tick(NOW)
    assert sorted(drawn) == ["a", "b"]
    drawn.clear()
    for hub_of_one in publisher.hubs.values():
        hub_of_one.server_version = "v1.35.0"
    monkeypatch.setattr(fleet, "SPACING", 60.0)
    for _ in range(2):
        await hub.tick(NOW)
    assert not drawn
    monkeypatch.setattr(fleet, "SPACING", 0.0)
    await hub.tick(NOW)
    assert sorted(drawn) == ["a", "b"], "each had its turn, but was drawn a moment ago"


@pytest.mark.parametrize(("many", "drawn"), [(2, True), (1, False)])
async def test_where_much_happens_at_once_each_is_drawn_less_often(
    publisher, hub, monkeypatch, *, many, drawn
):
    monkeypatch.setattr(fleet, "LONG_SPACING", 3600.0)
    monkeypatch.setattr(fleet, "MANY", many)
    held_now(publisher, NOW)
    page = open_page(hub)
    await hub.tick(NOW)
    page.frame(NOW)
    for name in ("a", "b"):
        lose_holder(publisher, name)
    await hub.tick(NOW)
    assert (page.frame(NOW) is not None) is drawn


async def test_the_first_clusters_are_on_the_page_while_others_are_drawn(
    publisher, hub, monkeypatch
):
    there: list[int] = []
    real = fleet.drawings_of
    monkeypatch.setattr(fleet, "DRAWN_AT_ONCE", 1)
    monkeypatch.setattr(fleet, "drawings_of", lambda row: there.append(len(hub.drawn)) or real(row))
    held_now(publisher, NOW)
    page = open_page(hub)
    page.wake.clear()
    await hub.tick(NOW)
    assert there == [0, 2], "a strip and a cell of the first one"
    assert page.wake.is_set()


def test_what_is_looked_at_in_turn_is_looked_at_once_a_round(monkeypatch):
    monkeypatch.setattr(shared_drawings, "LOOKS_AT_ONCE", 3)
    monkeypatch.setattr(shared_drawings, "LOOKS_PER_SECOND", 0)
    in_turn, names = InTurn(), ("a", "b", "c", "d", "e", "f", "g")
    seen = [one for _ in range(7) for one in in_turn.some(names)]
    assert seen == [*names] * 3
    assert in_turn.some(("a", "b")) == ("a", "b"), "some were removed meanwhile"


def test_the_longer_the_last_look_is_ago_the_more_are_looked_at(monkeypatch):
    monkeypatch.setattr(shared_drawings, "LOOKS_AT_ONCE", 1)
    in_turn, names = InTurn(), [str(number) for number in range(5_000)]
    moments = iter((1000.0, 1000.1, 1000.1, 1002.1))
    monkeypatch.setattr(shared_drawings, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    assert [len(in_turn.some(names)) for _ in range(4)] == [5_000, 100, 1, 2_000]


async def test_a_cluster_that_is_cut_off_is_drawn_at_once(publisher, hub):
    page = open_page(hub)
    await hub.tick(NOW)
    page.frame(NOW)
    lost = Connection(state=ConnectionState.STALE, since=NOW, heard_at=NOW)
    publisher.hubs["a"].store.connection = lost
    await hub.tick(NOW)
    frame = page.frame(NOW)
    assert "not-live" in frame["regions"]["strip-a"]
    assert "stale since" in frame["clusters"]["a"]
    assert frame["connection"]["state"] == "live", "the page itself is"


async def drawn_next(page: FleetReader) -> set[str]:
    """The clusters that this page is told to draw next, by a hub that runs."""
    async with asyncio.timeout(30):
        while not (regions := (page.frame(datetime.now(UTC)) or {}).get("regions")):
            page.wake.clear()
            await page.wake.wait()
    return set(regions)


async def test_what_happens_does_not_wait_for_the_next_look(publisher, hub, monkeypatch):
    looks, real = [], hub.menu.look
    monkeypatch.setattr(hub.menu, "look", lambda now: looks.append(now) or real(now))
    monkeypatch.setattr(fleet, "TICK", 3600.0)
    monkeypatch.setattr(fleet, "SOON", 0.0)
    monkeypatch.setattr(fleet, "CLUSTERS_PER_SECOND", float("inf"))
    page, now = open_page(hub), held_now(publisher)
    running = asyncio.create_task(hub.run())
    assert await drawn_next(page) == STRIPS
    lose_holder(publisher, "b", now + timedelta(seconds=1))
    assert await drawn_next(page) == {"strip-b", "cell-b"}
    for _ in range(50):
        await asyncio.sleep(0)
    assert len(looks) == 2, "nothing happened since"
    running.cancel()


async def test_what_moved_is_drawn_once_for_all_pages_and_not_too_often(
    publisher, hub, monkeypatch
):
    drawn = []
    real = fleet.drawings_of
    monkeypatch.setattr(fleet, "drawings_of", lambda row: drawn.append(row.cluster) or real(row))
    held_now(publisher, NOW)
    for _ in range(3):
        open_page(hub)
    await hub.tick(NOW)
    assert sorted(drawn) == ["a", "b"]
    monkeypatch.setattr(fleet, "SPACING", 60.0)
    lose_holder(publisher, "a")
    await hub.tick(NOW)
    assert len(drawn) == 2
    monkeypatch.setattr(fleet, "SPACING", 0.0)
    await hub.tick(NOW)
    assert drawn[2:] == ["a"]
    for later, again in ((LASTS, ["a"]), (CALM_LASTS, ["a", "b"])):
        drawn.clear()
        for name in ("a", "b"):
            store = publisher.hubs[name].store
            store.connection = msgspec.structs.replace(store.connection, heard_at=NOW + later)
        await hub.tick(NOW + later)
        assert sorted(drawn) == again, "time without a holder grows though nothing moves"


async def test_a_wall_of_all_shows_the_worst_first_and_gets_what_moved(publisher, hub):
    now = held_now(publisher)
    desk = open_page(hub)
    await hub.tick(now)
    desk.frame(now)
    wall = open_page(hub, wall=())
    await hub.tick(now)
    first = wall.frame(now)
    assert set(first["regions"]) == {*STRIPS_OF_WALL, "fleet-counts", "fleet-rest", "fleet-sums"}
    assert first["version"]
    assert "clusters" not in first, "a wall has no menu"
    assert desk.frame(now) is None, "what a wall shows is drawn for walls alone"
    await hub.tick(now)
    assert wall.frame(now) is None
    lose_holder(publisher, "b", now)
    await hub.tick(now)
    moved = wall.frame(now)["regions"]
    assert set(moved) == {"fleet-1", "fleet-2", "fleet-counts", "fleet-sums"}
    assert 'data-cluster="b"' in moved["fleet-1"]
    assert "2 clusters, 1 quiet" in moved["fleet-sums"]


async def test_a_cluster_without_leases_does_not_look_vacant_on_a_wall(publisher, hub):
    now = held_now(publisher)
    lose_holder(publisher, "a", now)
    empty = publisher.hubs["b"].store
    empty.replace(Listed((), "9"), now)
    await hub.tick(now)
    wall = open_page(hub, wall=())
    await hub.tick(now)
    strips = wall.frame(now)["regions"]
    said = {name: strips[name] for name in ("fleet-1", "fleet-2")}
    looks = {
        re.search(r'data-cluster="(.)"', drawn)[1]: re.search(r'class="([^"]*)"', drawn)[1]
        for drawn in said.values()
    }
    assert "excused" in looks["b"]
    assert "excused" not in looks["a"]
    assert any("There are no Leases." in drawn for drawn in said.values())


async def test_a_free_lock_is_no_trouble_that_a_wall_of_several_colours(publisher, hub):
    now = held_now(publisher)
    store = publisher.hubs["a"].store
    store.set_overrides({KEY: (Kind.LOCK, "set by ada")}, now)
    lose_holder(publisher, "a", now)
    wall = open_page(hub, wall=())
    await hub.tick(now)
    free = wall.frame(now)["regions"]
    assert '"w-count is-vacant free"><b>1</b>' in free["fleet-counts"]
    assert '<span class="is-vacant excused">' in free["fleet-1"]
    lose_holder(publisher, "b", now)
    await hub.tick(now)
    trouble = wall.frame(now)["regions"]
    assert '"w-count is-vacant"><b>2</b>' in trouble["fleet-counts"]
    assert '<span class="is-vacant">' in trouble["fleet-1"]
    assert '<span class="is-vacant excused">' in trouble["fleet-2"], "it is still free"


async def test_a_wall_of_all_counts_what_flaps(publisher, hub):
    now = held_now(publisher)
    for second in range(1, 7):
        at = now + timedelta(seconds=second)
        lease = a_lease(holder=f"cp-{second}", version=str(150 + second), now=at)
        publisher.publish(publisher.hubs["b"].store.follow((Applied(lease),), at))
    wall = open_page(hub, wall=())
    await hub.tick(at)
    strips = wall.frame(at)["regions"]
    flaps = re.compile(r'<span class="is-flapping">\s*<svg[^>]*><use href="#i-flap"/></svg>1<')
    assert flaps.search(strips["fleet-1"])
    assert "is-flapping" not in strips["fleet-2"]


def cut_off(publisher: Publisher, name: str, now: datetime) -> None:
    lost = Connection(state=ConnectionState.STALE, since=now, heard_at=now)
    publisher.hubs[name].store.connection = lost


async def test_a_page_of_several_says_how_many_are_live(publisher, hub, monkeypatch):
    monkeypatch.setattr(fleet, "HEARTBEAT", 0.0)
    now = held_now(publisher)
    some, only_a, desk = open_page(hub, wall=()), open_page(hub, wall=("a",)), open_page(hub)
    await hub.tick(now)
    pages = (some, only_a, desk)
    assert [page.frame(now)["connection"]["partly_live"] for page in pages] == [None] * 3
    cut_off(publisher, "b", now)
    await hub.tick(now)
    told_of_b = PartlyLive("1 of 2 live", ConnectionState.STALE)
    found = [page.frame(now)["connection"]["partly_live"] for page in pages]
    assert found == [told_of_b, None, told_of_b]
    publisher.hubs["a"].store.connection = Connection(state=ConnectionState.PAUSED, since=now)
    await hub.tick(now)
    found = [page.frame(now)["connection"]["partly_live"] for page in pages]
    both = PartlyLive("0 of 2 live", ConnectionState.STALE)
    assert found == [both, PartlyLive("0 of 1 live", ConnectionState.PAUSED), both]
    assert (both.shape, found[1].shape) == ("expired", "late")


async def test_the_first_page_after_a_pause_hears_at_once_how_many_are_live(publisher, hub):
    now = held_now(publisher)
    cut_off(publisher, "b", now)
    page = open_page(hub)
    assert page.frame(now)["connection"]["partly_live"].says == "1 of 2 live"


async def test_a_wall_sums_what_is_known_now_and_says_which_numbers_are_old(publisher, hub):
    now = held_now(publisher)
    lose_holder(publisher, "b", now)
    cut_off(publisher, "b", now)
    wall = open_page(hub, wall=())
    await hub.tick(now)
    regions = wall.frame(now)["regions"]
    counts = " ".join(re.sub(r"<[^>]+>", " ", regions["fleet-counts"]).split())
    assert counts == "0 expired 0 vacant 1 old 0 late 1 held"
    assert "2 clusters, 1 quiet, 1 not live; 1 Lease, 1 old" in regions["fleet-sums"]
    assert '"w-count is-vacant free"' in regions["fleet-counts"]
    cut_off(publisher, "a", now)
    await hub.tick(now)
    counts = wall.frame(now)["regions"]["fleet-counts"]
    assert counts.count("<b data-none>?</b>") == 4, "nobody knows what is held now"
    assert "1 old" in counts


async def test_a_wall_of_some_clusters_hears_of_no_others(publisher, hub):
    now = held_now(publisher)
    hub.problem = lambda: "History of a is not reachable."
    wall, same, other = (open_page(hub, wall=names) for names in (("b",), ("b",), ("a",)))
    await hub.tick(now)
    frame = wall.frame(now)
    assert "1 cluster, 1 quiet" in frame["regions"]["fleet-sums"]
    assert not any('data-cluster="a"' in html for html in frame["regions"].values())
    assert frame["connection"]["problem"] == ""
    assert same.frame(now)["regions"] == frame["regions"]
    other.frame(now)
    lose_holder(publisher, "b", now)
    await hub.tick(now)
    assert other.frame(now) is None
    moved = wall.frame(now)["regions"]
    assert "fleet-1" in moved
    assert "1 cluster, none quiet" in moved["fleet-sums"]


async def test_a_cluster_that_cannot_be_drawn_stops_no_other(publisher, hub, monkeypatch):
    real, failed = fleet.drawings_of, []

    def draw(row):
        if row.cluster == "a":
            raise KeyError
        return real(row)

    monkeypatch.setattr(fleet, "drawings_of", draw)
    hub.failed = lambda part, _error: failed.append(part)
    page = open_page(hub)
    await hub.tick(NOW)
    assert set(page.frame(NOW)["regions"]) == {"strip-b", "cell-b"}
    assert failed == ["strips"]


async def test_a_cluster_that_is_watched_no_longer_says_so(publisher, hub):
    page = open_page(hub)
    await hub.tick(NOW)
    page.frame(NOW)
    publisher.remove("b")
    await hub.tick(NOW)
    frame = page.frame(NOW)
    assert frame["regions"]["strip-b"] == '<p class="muted">b is watched no longer.</p>'
    assert frame["list"]
    publisher.add(Store("c"))
    await hub.tick(NOW)
    frame = page.frame(NOW)
    assert frame["list"]
    assert "strip-c" in frame["regions"]


async def test_a_page_follows_a_clock_that_was_set(publisher, hub):
    page = open_page(hub)
    await hub.tick(NOW)
    page.frame(NOW)
    later = NOW + timedelta(hours=1)
    for one in publisher.hubs.values():
        one.clock_jumped(Jump(NOW, later))
    await hub.tick(later)
    frame = page.frame(later)
    assert (frame["moved"], frame["jumps"]) == (3600.0, 1)
    assert "moved" not in (page.frame(later) or {})


async def test_a_page_hears_each_second_that_the_server_lives(hub, monkeypatch):
    page = open_page(hub)
    await hub.tick(NOW)
    assert page.frame(NOW) is not None
    assert page.frame(NOW) is None
    monkeypatch.setattr(fleet, "HEARTBEAT", 0.0)
    assert page.frame(NOW)["now"] == NOW.timestamp()


@pytest.mark.django_db(transaction=True)
async def test_the_socket_of_all_clusters_sends_their_strips(board):  # noqa: F811
    for cluster in board.clusters.values():
        fill(cluster.store, a_lease())
    olga = await sync_to_async(member)("olga", "operator")
    router = own_sites_only(URLRouter(urlpatterns))
    one = Socket(router, "/live/fleet/", olga, [(b"host", b"testserver")])
    await one.connect()
    hub = board.publisher.fleet
    await one.say(json.dumps({"show": {}, "jumps": 0}))
    while not hub.pages or not next(iter(hub.pages))._answers_show:
        await one.hear()
        break
    await hub.tick(datetime.now(UTC))
    while "regions" not in (frame := await one.hear()):
        pass
    assert set(frame["regions"]) == STRIPS
    await one.leave()
    assert not hub.pages


@pytest.fixture
def news(board) -> NewsReader:  # noqa: F811
    """A page that lists what happens in both clusters, drawn now."""
    now = held_now(board.publisher)
    return open_news(board.publisher.fleet, now)


def open_news(hub: FleetHub, drawn: datetime, **said) -> NewsReader:
    reader = NewsReader(hub)
    hub.join(reader)
    show_news(reader, drawn, **said)
    reader.frame(drawn)
    return reader


def show_news(reader: NewsReader, drawn: datetime, query: str = "", feed: int | None = 0) -> None:
    stamp = f"{PROCESS}-{drawn.timestamp():.6f}"
    reader.show(Show(jumps=0, query=query, feed=feed, drawn=stamp))


async def test_a_page_over_clusters_hears_of_each_change_at_once(board, news):  # noqa: F811
    now, publisher = datetime.now(UTC), board.publisher
    assert news.frame(now) is None
    news.wake.clear()
    lose_holder(publisher, "b", now)
    assert news.wake.is_set(), "not only with the next tick"
    frame = news.frame(now)
    assert frame["changes"] == 1
    assert news.frame(now) is None
    lose_holder(publisher, "a", now)
    assert news.frame(now)["changes"] == 1


async def test_it_hears_of_the_clusters_that_it_shows_alone(board, news):  # noqa: F811
    now, publisher = datetime.now(UTC), board.publisher
    only_a = open_news(publisher.fleet, now, query="?cluster=a&range=7d")
    refused = open_news(publisher.fleet, now, query="?cluster=nowhere")
    lose_holder(publisher, "b", now)
    assert (only_a.frame(now), refused.frame(now)) == (None, None)
    show_news(only_a, now - timedelta(seconds=60), query="?cluster=b")
    assert only_a.frame(now)["changes"] == 2, "those since the page was drawn, too"
    show_news(only_a, now - timedelta(seconds=60), query="?cluster=b&range=1h")
    assert "changes" not in only_a.frame(now), "none twice"


async def test_a_list_of_incidents_hears_of_incidents_and_counts_no_change(board):  # noqa: F811
    now, publisher = held_now(board.publisher), board.publisher
    page = open_news(publisher.fleet, now, feed=None)
    lose_holder(publisher, "a", now)
    assert page.frame(now) is None
    publisher.hubs["a"].incidents_moved()
    frame = page.frame(now)
    assert frame["incidents"]
    assert page.frame(now) is None


async def test_it_hears_that_a_cluster_is_cut_off(board, news):  # noqa: F811
    now, hub = datetime.now(UTC), board.publisher.hubs["b"]
    lost = Connection(state=ConnectionState.STALE, since=now, heard_at=now)
    hub.store.connection = lost
    hub.publish(Update(cluster="b", now=now, seq=1, connection=lost))
    assert news.frame(now)["recount"]
    assert news.frame(now) is None


async def test_it_says_how_many_of_its_clusters_are_live(board, news, monkeypatch):  # noqa: F811
    monkeypatch.setattr(fleet, "HEARTBEAT", 0.0)
    now, publisher = datetime.now(UTC), board.publisher
    only_a = open_news(publisher.fleet, now, query="?cluster=a")
    cut_off(publisher, "b", now)
    await publisher.fleet.tick(now)
    stale = PartlyLive("1 of 2 live", ConnectionState.STALE)
    assert news.frame(now)["connection"]["partly_live"] == stale
    assert only_a.frame(now)["connection"]["partly_live"] is None


async def test_more_changes_than_are_known_are_fetched(board, news):  # noqa: F811
    now, hub = datetime.now(UTC), board.publisher.hubs["a"]
    for number in range(KEPT_CHANGES + 1):
        hub.recent.append((hub.seq + number + 1, None))
    hub.seq += KEPT_CHANGES + 1
    hub.told(False)
    assert news.frame(now)["refetch"]
    hub.told(True)
    assert news.frame(now)["refetch"], "some that come in no frame"
    old = open_news(board.publisher.fleet, now - timedelta(days=1))
    show_news(old, datetime.now(UTC))
    assert "refetch" not in (old.frame(now) or {}), "once, when it came"


async def test_a_page_of_news_draws_no_cluster(board, news, monkeypatch):  # noqa: F811
    drawn = []
    monkeypatch.setattr(fleet, "latest_row", drawn.append)
    await board.publisher.fleet.tick(datetime.now(UTC))
    assert drawn == []


@pytest.mark.django_db(transaction=True)
async def test_the_socket_of_a_page_over_clusters_sends_news(board):  # noqa: F811
    held_now(board.publisher)
    olga = await sync_to_async(member)("olga", "operator")
    router = own_sites_only(URLRouter(urlpatterns))
    one = Socket(router, "/live/fleet/?news=1", olga, [(b"host", b"testserver")])
    await one.connect()
    now = datetime.now(UTC)
    shown = {"show": {}, "jumps": 0, "query": "", "feed": 0, "drawn": f"0-{now.timestamp() + 5}"}
    await one.say(json.dumps(shown))
    assert (await one.hear())["shown"]
    lose_holder(board.publisher, "b", now)
    assert (await one.hear())["changes"] == 1
    await one.leave()
