"""A wall link reads what its wall draws and nothing else."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime

import msgspec
import pytest
from asgiref.sync import sync_to_async
from channels.routing import URLRouter
from django.contrib.auth.models import AnonymousUser
from django.test import Client
from django.utils import timezone

from dashboard.access import links
from dashboard.access.known_rights import WallRight
from dashboard.live import consumers
from dashboard.live.consumers import urlpatterns
from dashboard.live.socket_guards import own_sites_only
from dashboard.pages.wall import TICKER
from leases.domain.lease import ObjectName
from leases.listener.protocol import FRAMES
from leases.models import WallLink
from leases.wire.watch_decoding import Applied
from tests.support.board import KEY, a_lease, board, fill  # noqa: F401
from tests.support.communicator import Socket

ROUTER = own_sites_only(URLRouter(urlpatterns))
pytestmark = pytest.mark.django_db(transaction=True)

NODE = ObjectName("kube-node-lease", "node-1")
DOWN = ObjectName("kube-node-lease", "node-2")


def heartbeat(key: ObjectName, *, version: str = "1", renewed: datetime | None = None):
    """A Node's Lease; without a renewal, one that ran out long ago."""
    one = a_lease(
        key, holder=key.name, version=version, now=renewed or datetime(2026, 1, 1, tzinfo=UTC)
    )
    spec = msgspec.structs.replace(one.spec, acquire_time=None, lease_transitions=None)
    return msgspec.structs.replace(one, spec=spec)


@pytest.fixture
def store(board):  # noqa: F811
    found = board.clusters["a"].store
    fill(found, a_lease(), heartbeat(NODE, renewed=datetime.now(UTC)), heartbeat(DOWN))
    return found


@pytest.fixture
async def key(transactional_db) -> str:
    _, token = await sync_to_async(links.create)(
        name="lobby", clusters=["a"], created_by="ada", now=timezone.now()
    )
    return token


def socket(path: str, **more: object) -> Socket:
    return Socket(ROUTER, path, AnonymousUser(), [(b"host", b"testserver")], **more)


async def refused(path: str) -> tuple[int, str]:
    one = socket(path)
    await one.connect()
    message = await one.receive_output()
    return message["code"], message["reason"]


async def open_wall(key: str, query: str = "", **more: object) -> Socket:
    one = socket(f"/c/a/live/page/?key={key}{query}", **more)
    await one.connect()
    return one


async def shown_to(one, *keys: ObjectName, **more: object) -> tuple[set[str], set[str]]:
    """The Leases that a wall's socket draws when the page asks for these, and those it refuses."""
    await one.say(json.dumps({"show": {"tile": [str(key) for key in keys]}, **more}))
    drawn, gone = set(), set()
    while True:
        frame = await one.hear()
        drawn |= frame.get("html", {}).get("tile", {}).keys()
        gone |= set(frame.get("gone", ()))
        if "shown" in frame:
            return drawn, gone


async def test_a_wall_gets_the_tiles_of_its_wall_and_no_others(store, key):
    one = await open_wall(key)
    missing = ObjectName("nowhere", "nothing")
    drawn, gone = await shown_to(one, KEY, NODE, DOWN, missing)
    assert drawn == {str(KEY), str(DOWN)}, "elections, and what is in trouble beside them"
    assert gone == {str(NODE), str(missing)}, "one that is there looks like one that is not"
    await one.leave()


async def test_a_wall_that_is_opened_notes_the_use_of_its_link(board, store, key, monkeypatch):  # noqa: F811
    noted: list[WallRight] = []
    monkeypatch.setattr(board.link_use, "note", noted.append)
    one = await open_wall(key)
    await shown_to(one, KEY)
    await one.leave()
    link = await sync_to_async(WallLink.objects.get)()
    assert noted == [WallRight(link.pk, "a")]


async def test_the_filter_of_a_wall_is_that_of_its_socket(store, key):
    for query, wanted in {
        "&kind=heartbeat": {NODE, DOWN},
        "&kind=heartbeat&q=node-1": {NODE},
        "&namespace=elsewhere": {DOWN},
        "&kind=heartbeat&phase=expired": {DOWN},
        "&kind=nonsense": set(),
    }.items():
        one = await open_wall(key, query)
        drawn, gone = await shown_to(one, KEY, NODE, DOWN)
        assert drawn == set(map(str, wanted)), query
        assert gone == set(map(str, {KEY, NODE, DOWN} - wanted)), query
        await one.leave()


async def test_the_page_gives_its_filter_to_its_socket(store, key):
    page = await sync_to_async(Client().get)(f"/c/a/wall/?key={key}&kind=heartbeat&q=node-1")
    text = page.content.decode()
    (url,) = re.findall(r'data-live-url="([^"]+)"', text)
    tiles = re.findall(r'data-tile="([^"]+)"', text)
    one = socket(url.replace("&amp;", "&"))
    await one.connect()
    drawn, _ = await shown_to(one, *(ObjectName(*tile.split("/")) for tile in tiles))
    assert drawn == set(tiles) == {str(NODE)}
    await one.leave()


async def test_every_tile_that_a_wall_draws_is_one_that_its_socket_draws(store, key):
    for query in ("", "&kind=heartbeat", "&kind=lock", "&phase=held", "&flapping=true", "&q=zz"):
        page = await sync_to_async(Client().get)(f"/c/a/wall/?key={key}{query}")
        tiles = re.findall(r'data-tile="([^"]+)"', page.content.decode())
        one = await open_wall(key, query)
        drawn, gone = await shown_to(one, *(ObjectName(*tile.split("/")) for tile in tiles))
        assert (drawn, gone) == (set(tiles), set()), query
        await one.leave()


async def test_a_lease_that_leaves_the_wall_is_not_followed_any_further(store, key, board):  # noqa: F811
    one = await open_wall(key)
    assert (await shown_to(one, DOWN))[0] == {str(DOWN)}
    hub = board.publisher.hubs["a"]

    def renew(version: str) -> None:
        now = datetime.now(UTC)
        hub.publish(store.follow((Applied(heartbeat(DOWN, version=version, renewed=now)),), now))

    renew("200")
    while not (frame := await one.hear()).get("gone"):
        assert "html" not in frame
    assert frame["gone"] == [str(DOWN)]
    renew("201")
    await one.say(json.dumps({"show": {"tile": [str(KEY)]}}))
    while "shown" not in (frame := await one.hear()):
        assert str(DOWN) not in json.dumps(frame)
    await one.leave()


async def test_a_wall_gets_the_lines_of_its_ticker_and_no_more(store, key, board):  # noqa: F811
    hub = board.publisher.hubs["a"]
    for number in range(TICKER + 4):
        lease = a_lease(version=str(200 + number), holder=f"cp-{number + 2}")
        hub.publish(store.follow((Applied(lease),), datetime.now(UTC)))
    one = await open_wall(key)
    await one.say(json.dumps({"feed": hub.first_seq, "feed_as": "row"}))
    while "feed" not in (frame := await one.hear()):
        pass
    assert len(frame["feed"]) == TICKER
    assert f"cp-{TICKER + 5}" in frame["feed"][-1]
    assert all("<li" in line for line in frame["feed"]), "lines, as the wall draws them"
    await one.leave()


async def test_a_wall_link_opens_no_feed(store, key):
    assert await refused(f"/c/a/live/changes/?key={key}") == (4403, consumers.NOT_FOR_WALLS)


async def test_of_two_keys_page_and_socket_take_the_same(store, key):
    page = await sync_to_async(Client().get)(f"/c/a/wall/?key=bad&key={key}")
    assert page.status_code == 200
    one = socket(f"/c/a/live/page/?key=bad&key={key}")
    await one.connect()
    await shown_to(one, KEY)
    await one.leave()
    assert await refused(f"/c/a/live/page/?key={key}&key=bad") == (4403, links.UNKNOWN)


async def test_walls_whose_server_takes_frames_get_them_until_the_right_ends(store, key, board):  # noqa: F811
    _, other_key = await sync_to_async(links.create)(
        name="hall", clusters=["a"], created_by="ada", now=timezone.now()
    )
    written: list[list[bytes]] = [[], []]

    def taking(frames: list[bytes]) -> dict[str, object]:
        return {FRAMES: {"write": lambda frame: frames.append(frame) or True}}

    walls = [
        await open_wall(one, extensions=taking(frames))
        for one, frames in zip((key, other_key), written, strict=True)
    ]
    for one in walls:
        await shown_to(one, KEY)
    hub = board.publisher.hubs["a"]

    async def hear_of(holder: str, version: str, *numbers: int) -> None:
        lease = a_lease(version=version, holder=holder)
        hub.publish(store.follow((Applied(lease),), datetime.now(UTC)))
        async with asyncio.timeout(20):
            while not all(holder.encode() in b"".join(written[one]) for one in numbers):
                await asyncio.sleep(0.01)

    await hear_of("cp-9", "200", 0, 1)
    assert written[0] == written[1]
    await WallLink.objects.filter(name="lobby").adelete()
    await board.rights.check()
    message = await walls[0].receive_output()
    assert (message["type"], message["code"]) == ("websocket.close", 4403)
    third = await open_wall(other_key, extensions=taking(written[1]))
    await shown_to(third, KEY)
    await hear_of("cp-10", "201", 1)
    assert b"cp-10" not in b"".join(written[0])
    for one in (*walls, third):
        await one.leave()


async def test_of_walls_that_are_drawn_once_each_ends_by_itself(store, key, board):  # noqa: F811
    _, other_key = await sync_to_async(links.create)(
        name="hall", clusters=["a"], created_by="ada", now=timezone.now()
    )
    walls = [await open_wall(key), await open_wall(other_key)]
    for one in walls:
        await shown_to(one, KEY)
    hub = board.publisher.hubs["a"]
    assert (len(hub.pages), hub.readers["page"]) == (1, 2)
    await WallLink.objects.filter(name="lobby").adelete()
    await board.rights.check()
    message = await walls[0].receive_output()
    while message["type"] == "websocket.send":
        message = await walls[0].receive_output()
    assert (message["code"], message["reason"]) == (4403, links.UNKNOWN)
    hub.publish(store.follow((Applied(a_lease(version="200", holder="cp-9")),), datetime.now(UTC)))
    while "html" not in (frame := await walls[1].hear()):
        pass
    assert "cp-9" in frame["html"]["tile"][str(KEY)]
    await walls[0].leave()
    await walls[1].leave()
    assert not hub.pages
