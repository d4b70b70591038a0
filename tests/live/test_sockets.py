"""The sockets: who is let in, what programs hear, and how a stranger is turned away."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from asgiref.sync import sync_to_async
from channels.routing import URLRouter
from django.contrib.auth.models import AnonymousUser
from django.utils import timezone

from dashboard.access import links
from dashboard.live import publisher
from dashboard.live.consumers import urlpatterns
from dashboard.live.socket_guards import own_sites_only
from leases.domain.lease import ObjectName
from leases.domain.steady_clock import Jump
from leases.wire.watch_decoding import Applied
from tests.support.board import KEY, a_lease, board, fill, member  # noqa: F401
from tests.support.communicator import Socket
from tests.support.values.changes import T0, a_change
from tests.support.values.incident_rows import incident_with

pytestmark = pytest.mark.django_db(transaction=True)

ROUTER = own_sites_only(URLRouter(urlpatterns))


def socket(path, user, *, origin: str | None = None, host: str = "testserver"):
    headers = [(b"host", host.encode())]
    if origin:
        headers.append((b"origin", origin.encode()))
    return Socket(ROUTER, path, user, headers)


@pytest.fixture
async def operator(transactional_db):
    return await sync_to_async(member)("olga", "operator")


@pytest.fixture
def filled(board):  # noqa: F811
    fill(board.clusters["a"].store, a_lease())
    return board


@sync_to_async
def wall_key(*clusters: str) -> str:
    made = links.create(name="lobby", clusters=clusters, created_by="ada", now=timezone.now())
    return made[1]


async def closed_with(one) -> int:
    await one.connect()
    message = await one.receive_output()
    assert message["type"] == "websocket.close"
    return message["code"]


async def test_a_program_hears_each_change_numbered(filled, operator):
    one = socket("/c/a/live/changes/", operator)
    await one.connect()
    hello = await one.hear()
    assert (hello["changes"], hello["counts"]["held"]) == ([], 1)

    store = filled.clusters["a"].store
    lease = a_lease(version="200", holder="cp-2")
    filled.publisher.publish(store.follow((Applied(lease),), datetime.now(UTC)))
    reported = await one.hear()
    assert reported["seq"] == hello["seq"] + 1
    (change,) = reported["changes"]
    assert (change["change"], change["previous_holder"], change["holder"]) == (
        "replaced", "cp-1", "cp-2",
    )  # fmt: skip
    await one.leave()
    assert not filled.publisher.hubs["a"].feeds


async def test_a_program_hears_of_incidents_in_frames_of_their_own(filled, operator):
    one, hub = socket("/c/a/live/changes/", operator), filled.publisher.hubs["a"]
    await one.connect()
    hello = await one.hear()
    assert "incidents" not in hello
    told = incident_with(a_change(1))
    gone = msgspec.structs.replace(told, id="gone", members=(), part_of="one")
    hub.publish_incidents([told, gone], T0)
    frame = await one.hear()
    assert (frame["seq"], frame["changes"]) == (hello["seq"] + 1, [])
    found = [(item["id"], item["changes"], item["part_of"]) for item in frame["incidents"]]
    assert found == [("one", 1, None), ("gone", 0, "one")]
    many = tuple(ObjectName("n", str(number)) for number in range(publisher.MAX_LEASES_SENT + 1))
    hub.publish_incidents([msgspec.structs.replace(told, leases=many)], T0)
    beyond = await one.hear()
    assert beyond["seq"] == frame["seq"] + 2, "a gap makes readers fetch"
    assert "incidents" not in beyond
    await one.leave()


async def test_a_page_is_kept_in_step(filled, operator):
    one = socket("/c/a/live/page/", operator, origin="http://testserver")
    await one.connect()
    await one.say(json.dumps({"show": {"row": [str(KEY)]}}))
    while "html" not in (frame := await one.hear()):
        pass
    assert "cp-1" in frame["html"]["row"][str(KEY)]
    await one.leave()
    assert not filled.publisher.hubs["a"].pages


@pytest.mark.parametrize("path", ["/c/a/live/page/", "/c/a/live/changes/"])
async def test_strangers_guests_and_other_sites_are_refused(filled, path, operator):
    guest = await sync_to_async(member)("gil", None)
    assert await closed_with(socket(path, AnonymousUser())) == 4403
    assert await closed_with(socket(path, guest)) == 4403
    assert await closed_with(socket(path, operator, origin="http://evil.example")) == 4403
    assert await closed_with(socket(path + "?key=1:forged", AnonymousUser())) == 4403


async def test_a_message_that_cannot_be_handled_leaves_no_socket_behind(
    filled, operator, monkeypatch
):
    def failing(*_given: object) -> None:
        raise ValueError("no page")

    monkeypatch.setattr("dashboard.live.page_reader.PageReader.show", failing)
    monkeypatch.setattr("dashboard.live.publisher.MAX_SOCKETS", 1)
    for _ in range(3):
        one = socket("/c/a/live/page/", operator)
        await one.connect()
        await one.say("{}")
        with pytest.raises(ValueError, match="no page"):
            await one.wait()
    assert not filled.publisher.hubs["a"].pages
    assert not filled.rights.rights


async def test_a_socket_that_cannot_be_registered_leaves_nothing_behind(
    filled, operator, monkeypatch
):
    def failing(*_given: object) -> None:
        raise ValueError("no reader")

    monkeypatch.setattr("dashboard.live.publisher.MAX_SOCKETS", 1)
    with monkeypatch.context() as patch:
        patch.setattr(filled.rights, "add", failing)
        for _ in range(2):
            one = socket("/c/a/live/changes/", operator)
            await one.connect()
            with pytest.raises(ValueError, match="no reader"):
                await one.wait()
    assert not filled.publisher.hubs["a"].feeds
    one = socket("/c/a/live/changes/", operator)
    await one.connect()
    await one.hear()
    await one.leave()


async def test_a_wall_link_hears_changes_and_tiles_but_no_rows(filled):
    key = await wall_key("a")
    one = socket(f"/c/a/live/page/?key={key}", AnonymousUser())
    await one.connect()
    await one.say(json.dumps({"show": {"row": [str(KEY)], "tile": [str(KEY)]}}))
    while "html" not in (frame := await one.hear()):
        pass
    assert set(frame["html"]) == {"tile"}
    assert len(filled.link_use._used) == 1
    await one.leave()


async def test_a_page_hears_of_all_clusters_and_a_wall_of_none(filled, operator):
    filled.publisher.hubs["a"].menu.look(datetime.now(UTC))
    wall = f"/c/a/live/page/?key={await wall_key('a')}"
    heard = []
    for path, user in (("/c/a/live/page/", operator), (wall, AnonymousUser())):
        one = socket(path, user)
        await one.connect()
        await one.say(json.dumps({"clusters": True}))
        while "shown" not in (frame := await one.hear()):
            assert "clusters" not in frame
        heard.append(frame.get("clusters", {}).keys())
        await one.leave()
    assert heard == [{"a", "b"}, set()]


async def test_a_wall_drawn_before_a_clock_jump_is_moved(filled):
    now = datetime.now(UTC)
    filled.publisher.hubs["a"].clock_jumped(Jump(now, now + timedelta(hours=1)))
    one = socket(f"/c/a/live/page/?key={await wall_key('a')}", AnonymousUser())
    await one.connect()
    await one.say(json.dumps({"jumps": 0}))
    assert (await one.hear())["moved"] == 3600
    await one.leave()


@pytest.mark.parametrize("path", ["page", "changes"])
async def test_a_cluster_that_is_left_closes_its_sockets_with_a_reason(filled, operator, path):
    hub = filled.publisher.hubs["a"]
    one = socket(f"/c/a/live/{path}/", operator)
    await one.connect()
    async with asyncio.timeout(30):
        while not (hub.pages or hub.feeds):
            await asyncio.sleep(0.01)
    hub.close()
    assert (hub.pages, hub.feeds) == (set(), set())  # nothing more is made for it
    message = await one.receive_output()
    while message["type"] == "websocket.send":
        message = await one.receive_output()
    assert message["type"] == "websocket.close"
    assert message["reason"].startswith("a is watched no longer.")
    await one.leave()
    assert not hub.ends


async def test_an_unknown_cluster_or_path_says_so(filled, operator):
    assert await closed_with(socket("/c/zz/live/page/", operator)) == 4404
    assert await closed_with(socket("/nowhere/", operator)) == 4404


async def test_nonsense_from_a_page_closes_its_socket_with_a_reason(filled, operator):
    one = socket("/c/a/live/page/", operator)
    await one.connect()
    await one.say("nonsense")
    while (message := await one.receive_output())["type"] != "websocket.close":
        pass
    assert message["code"] == 4400
    assert "A page says what it shows" in message["reason"]


async def test_a_program_that_does_not_read_loses_the_oldest_and_can_see_it(filled, operator):
    from dashboard.live.publisher import FEED_QUEUE, FeedReader

    hub = filled.publisher.hubs["a"]
    slow = FeedReader()
    hub.feeds.add(slow)
    for number in range(FEED_QUEUE + 10):
        lease = a_lease(version=str(200 + number), holder=f"cp-{number + 2}")
        hub.publish(hub.store.follow((Applied(lease),), datetime.now(UTC)))
    assert len(slow.frames) == FEED_QUEUE
    first = json.loads(slow.frames[0])["seq"]
    assert json.loads(slow.frames[-1])["seq"] == first + FEED_QUEUE - 1 == hub.seq


async def test_one_account_has_so_many_sockets_and_others_have_theirs(
    filled, operator, monkeypatch
):
    monkeypatch.setattr("dashboard.live.publisher.MAX_SOCKETS", 2)
    open_ones = [socket(path, operator) for path in ("/c/a/live/changes/", "/c/b/live/page/")]
    for one in open_ones:
        await one.connect()
    assert await closed_with(socket("/c/a/live/changes/", operator)) == 1013
    wall = socket(f"/c/a/live/page/?key={await wall_key('a')}", AnonymousUser())
    await wall.connect()
    await wall.say("{}")
    await wall.hear()
    await open_ones[0].leave()
    again = socket("/c/a/live/changes/", operator)
    await again.connect()
    await again.hear()
    for one in (wall, again, open_ones[1]):
        await one.leave()


async def test_a_socket_that_cannot_be_served_is_closed_and_reported(filled, operator, monkeypatch):
    failures: list[tuple[str, str]] = []
    hub = filled.publisher.hubs["a"]
    monkeypatch.setattr(hub, "failed", lambda part, error: failures.append((part, str(error))))

    def failing(*_given: object) -> None:
        raise ValueError("no row")

    monkeypatch.setattr("dashboard.live.page_reader.PageReader.frame", failing)
    one = socket("/c/a/live/page/", operator)
    await one.connect()
    await one.say(json.dumps({"show": {"row": [str(KEY)]}}))
    assert (await one.receive_output())["code"] == 1011
    assert failures == [("socket", "no row")]
    await one.leave()


async def test_a_feed_message_has_its_fields_and_no_others(filled, operator):
    one = socket("/c/a/live/changes/", operator)
    await one.connect()
    hello = await one.hear()
    assert set(hello) == {"seq", "now", "changes", "counts"}
    assert datetime.fromisoformat(hello["now"]).tzinfo is not None
    await one.leave()
