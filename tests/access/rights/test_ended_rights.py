"""Every right that ends closes every open socket within seconds, and the socket says why.

Each right is ended by another process, as a replica or a command would: this one learns of it by
asking. The sockets are real ones of a running server.
"""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from dashboard.access import api_tokens, ended_rights, links, rights
from dashboard.live import consumers
from tests.support.api_client import LeaseApi
from tests.support.processes import serving
from tests.support.programs import people
from tests.support.programs.ended_rights import TOKENS, USERS, WALLS
from tests.support.programs.open_sockets import FEED, PAGE, House, Kind, closing_of, said_by

LEASE = "default/story"
# Every kind of open socket: the feed, and the page's by each of its parts.
OF_USERS: dict[str, Kind] = {
    "feed": (FEED, {}),
    "page with rows": (PAGE, {"show": {"row": [LEASE]}}),
    "page of one Lease": (PAGE, {"show": {"lease": [LEASE]}}),
    "page with tiles": (PAGE, {"show": {"tile": [LEASE]}}),
    "page with changes as lines": (PAGE, {"feed": 1, "feed_as": "line"}),
    "page with changes as rows": (PAGE, {"feed": 1, "feed_as": "row"}),
    "page with the number of changes": (PAGE, {"feed": 1, "feed_as": "number"}),
    "page with shared regions": (PAGE, {"groups": ["overview"]}),
    "page with problems elsewhere": (PAGE, {"query": "?kind=election"}),
    "page with all heartbeats": (PAGE, {"field": "none"}),
    "page that shows nothing": (PAGE, {}),
}
OF_WALLS: dict[str, Kind] = {
    "wall with tiles": (PAGE, {"show": {"tile": [LEASE]}}),
    "wall with changes": (PAGE, {"feed": 1}),
    "wall with all heartbeats": (PAGE, {"field": "none"}),
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder: Path = tmp_path_factory.mktemp("ended-rights")
    wanted = {f"user {name}": how for name, (how, _, _) in USERS.items()}
    wanted |= {f"wall {name}": people.wall("embedded") for name in WALLS}
    wanted |= {f"token {name}": people.TOKEN for name in TOKENS}
    wanted |= {"still there": people.READER, "still there on a wall": people.wall("embedded")}
    with serving(folder / "data", "--no-demo") as server:
        server.wait_synced()
        LeaseApi(server.kubeconfig).create("story", holder="one")
        yield House(server, people.make(server.data, wanted))


Ended = dict[str, dict[str, tuple[int, str]]]  # by ended right and kind of socket


async def close_all(house: House, kinds: dict[str, Kind], ends: dict[str, str], sort: str) -> Ended:
    """Open a socket of every kind for each right, end them all, and hear how each is closed.
    Those of others stay."""
    others = [
        (FEED, house.people["still there"]),
        (PAGE, house.people["still there"]),
        (PAGE, house.people["still there on a wall"]),
    ]
    who = {ended: house.people[f"{sort} {ended}"] for ended in ends}
    async with AsyncExitStack() as stack:
        sockets = {
            (ended, name): await house.open(kind, who[ended])
            for ended in who
            for name, kind in kinds.items()
        }
        kept = [await house.open((path, {}), other) for path, other in others]
        for socket in (*sockets.values(), *kept):
            await stack.enter_async_context(socket)
        for ended, sql in ends.items():
            house.end(sql, who[ended])
        closed = await asyncio.gather(*map(closing_of, sockets.values()))
        assert [socket.state.name for socket in kept] == ["OPEN"] * len(kept)
        again = [await refusal(house, kinds[name], who[ended]) for ended, name in sockets]
        assert {code for code, _ in again} == {4403}, "nor is any opened again"
    found: Ended = {ended: {} for ended in who}
    for (ended, name), said in zip(sockets, closed, strict=True):
        found[ended][name] = said
    return found


async def refusal(house: House, kind: Kind, who: dict[str, Any]) -> tuple[int, str]:
    try:
        socket = await house.open(kind, who)
    except ConnectionClosed as error:
        return said_by(error)
    await socket.close()
    return 0, "opened"


async def test_the_right_of_a_user_ends_on_every_socket(house):
    closed = await close_all(
        house, OF_USERS, {name: sql for name, (_, sql, _) in USERS.items()}, "user"
    )
    for ended, (_, _, reason) in USERS.items():
        assert closed[ended] == dict.fromkeys(OF_USERS, (4403, reason)), ended


async def test_the_right_of_a_wall_link_ends_on_every_socket(house):
    closed = await close_all(
        house, OF_WALLS, {name: sql for name, (sql, _) in WALLS.items()}, "wall"
    )
    for ended, (_, reason) in WALLS.items():
        assert closed[ended] == dict.fromkeys(OF_WALLS, (4403, reason)), ended


async def test_the_right_of_a_token_ends_on_every_socket(house):
    who = {ended: house.people[f"token {ended}"] for ended in TOKENS}
    sockets = {
        ended: [await house.open((path, {}), one) for path in (FEED, PAGE)]
        for ended, one in who.items()
    }
    for ended, (sql, _) in TOKENS.items():
        house.end(sql, who[ended])
    for ended, (_, reason) in TOKENS.items():
        assert await asyncio.gather(*map(closing_of, sockets[ended])) == [(4403, reason)] * 2
        with pytest.raises(InvalidStatus) as refused:
            await house.open((FEED, {}), who[ended])
        answer = refused.value.response
        found = answer.status_code, answer.headers["Content-Type"]
        assert found == (401, api_tokens.CONTENT_TYPE), ended
        assert json.loads(answer.body)["detail"] == reason


async def test_a_wall_link_opens_no_feed(house):
    who = house.people["still there on a wall"]
    assert await refusal(house, (FEED, {}), who) == (4403, consumers.NOT_FOR_WALLS)


async def test_a_wall_link_opens_no_socket_of_another_cluster(house):
    who = house.people["still there on a wall"]
    url = f"{house.server.url}/c/%s/live/page/?key={who['key']}".replace("http", "ws", 1)
    for cluster in ("nowhere", "other"):
        async with connect(url % cluster, compression=None) as socket:
            assert await closing_of(socket) == (4403, links.OTHER_CLUSTER)


async def test_a_stranger_learns_of_no_cluster_by_a_socket(house):
    for cluster in ("embedded", "nowhere"):
        url = f"{house.server.url}/c/{cluster}/live/changes/".replace("http", "ws", 1)
        async with connect(url, compression=None) as socket:
            assert await closing_of(socket) == (4403, rights.NOT_SIGNED_IN)


async def test_nothing_of_it_is_an_error_in_the_log(house):
    assert "Traceback" not in house.server.text


def test_rights_are_looked_at_often_enough():
    assert ended_rights.CHECK_SECONDS + ended_rights.MIN_SPACING < 3, "5 s are promised"


def test_every_reason_fits_into_a_close_frame():
    said = [value for name, value in vars(rights).items() if name.isupper()]
    said += [consumers.NOT_FOR_WALLS, links.UNKNOWN, links.OTHER_CLUSTER, links.OUTDATED]
    said += [reason for _, reason in (*WALLS.values(), *TOKENS.values())]
    said += [api_tokens.UNKNOWN, api_tokens.INACTIVE]
    assert max(len(one.encode()) for one in said if isinstance(one, str)) <= 123


def test_an_ended_wall_answers_with_the_same_words(house):
    who = house.people["wall revoked"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{house.server.url}/c/embedded/wall/?key={who['key']}", timeout=60)
    assert refused.value.code == 403
    refused.value.close()
