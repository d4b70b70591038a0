"""Real sockets of a running server whose other end does what no browser does."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection

from tests.apiserver.watch.crowd import is_cut
from tests.live.few_places import PLACES
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, ended
from tests.support.programs import people
from tests.support.programs.open_sockets import PAGE, House

LEASE = "default/story"
AT_ONCE = 40
PATIENT = ("-m", "tests.live.serve_patiently")
PEOPLE = {"olga": people.READER, "lobby": people.wall("embedded"), "slow": people.READER}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder: Path = tmp_path_factory.mktemp("hostile-sockets")
    with ended(Server(folder / "data", "--no-demo", program=PATIENT)) as server:
        server.wait_synced()
        LeaseApi(server.kubeconfig).create("story", holder="one")
        yield House(server, people.make(server.data, PEOPLE))
    assert "Traceback" not in server.text


async def until_closed(one: ClientConnection) -> None:
    async with asyncio.timeout(60):
        await one.wait_closed()


@pytest.mark.parametrize("who", ["olga", "lobby"])
async def test_nonsense_sent_again_and_again_takes_no_place_for_ever(house, who):
    """A message that cannot be read closes the socket; those behind it are already on their way."""
    for _ in range(-(-(PLACES + 20) // AT_ONCE)):
        sockets = await asyncio.gather(
            *(house.open((PAGE, {}), house.people[who]) for _ in range(AT_ONCE))
        )
        for one in sockets:
            for text in ("1", "1", "1"):
                await one.send(text)
        await asyncio.gather(*map(until_closed, sockets))
        assert {one.close_code for one in sockets} == {4400}
    again = await house.open((PAGE, {"show": {"tile": [LEASE]}}), house.people[who])
    assert again.state.name == "OPEN"
    await again.close()


def frame(text: str) -> bytes:
    """A masked text frame, as a browser sends it; the mask of zeros changes nothing."""
    body = text.encode()
    return b"\x81\xff" + len(body).to_bytes(8, "big") + b"\0\0\0\0" + body


def open_and_never_read(house: House, cookie: str) -> socket.socket:
    """A page's socket whose answers wait unread, up to all that the server keeps for it."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.connect(("127.0.0.1", house.server.port))
    one.sendall(
        b"GET /c/embedded/live/page/ HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
        b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nCookie: %s\r\n\r\n" % cookie.encode()
    )
    assert one.recv(12) == b"HTTP/1.1 101"
    one.settimeout(3)
    show = {"row": [f"nowhere/{number}-{'x' * 400}" for number in range(500)]}
    with suppress(TimeoutError):  # the server reads nothing while nothing is read from it
        while True:
            one.sendall(frame(json.dumps({"show": show})))
    return one


async def test_who_does_not_read_is_hung_up_on_when_the_right_ends(house):
    """Nothing that waits for the socket may be read after the right has ended."""
    olga = house.people["slow"]
    with await asyncio.to_thread(open_and_never_read, house, olga["cookie"]) as one:
        assert not is_cut(one)
        house.end("DELETE FROM django_session WHERE session_key = :session", olga)
        end = time.monotonic() + 60
        while not is_cut(one) and time.monotonic() < end:
            await asyncio.sleep(0.1)
        assert is_cut(one)
