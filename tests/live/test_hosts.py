"""Sockets answer to the hosts that pages answer to, and to sites of ours alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import OperationalError
from websockets.asyncio.client import connect

from dashboard.live.socket_guards import (
    NO_DATABASE,
    OTHER_SITE,
    UNKNOWN_HOST,
    allowed_host,
    closed_without_database,
    is_origin_allowed,
)
from tests.support.communicator import Socket
from tests.support.processes import serving
from tests.support.programs import people
from tests.support.programs.open_sockets import FEED, PAGE, House, closing_of

ALLOWED = ["board.example.com", ".inside.example", "[::1]"]


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("board.example.com", True),
        ("BOARD.example.com:8443", True),
        ("a.inside.example", True),
        ("[::1]:8000", True),
        ("evil.example", False),
        ("board.example.com.evil.example", False),
        ("board.example.com@evil.example", False),
        ("board.example.com, evil.example", False),
        ("", False),
        ("[::1", False),
    ],
)
def test_a_host_is_judged_as_for_a_page(host, allowed, settings):
    settings.ALLOWED_HOSTS = ALLOWED
    assert allowed_host([(b"host", host.encode())]) == (host if allowed else None)


def test_none_and_two_hosts_are_refused(settings):
    settings.ALLOWED_HOSTS = ALLOWED
    good = (b"host", b"board.example.com")
    assert allowed_host([good]) == "board.example.com"
    assert allowed_host([]) is None
    assert allowed_host([good, good]) is None


@pytest.mark.parametrize(
    ("origin", "opens"),
    [
        ("", True),
        ("http://board.example.com", True),
        ("https://trusted.example", True),
        ("https://board.example.com", True),  # behind a proxy that ends TLS
        ("http://board.example.com:8001", False),
        ("http://trusted.example", False),
        ("http://evil.example", False),
        ("http://board.example.com.evil.example", False),
        ("http://board.example.com:port", False),
        ("http://[", False),
        ("null", False),
    ],
)
def test_an_origin_is_ours_or_trusted(origin, opens, settings):
    settings.CSRF_TRUSTED_ORIGINS = ["https://trusted.example"]
    headers = [(b"host", b"board.example.com"), (b"origin", origin.encode())]
    assert is_origin_allowed(headers, "board.example.com") is opens


@pytest.mark.parametrize("accepts_first", [True, False])
async def test_a_socket_that_the_database_cannot_check_has_to_try_again(accepts_first):
    async def refusing(_scope, receive, send):
        if accepts_first:
            await receive()
            await send({"type": "websocket.accept"})
        raise OperationalError("no route to 10.9.9.9")

    one = Socket(closed_without_database(refusing), "/c/a/live/page/", None, [])
    await one.connect()
    assert await one.receive_output() == {
        "type": "websocket.close", "code": 1011, "reason": NO_DATABASE,
    }  # fmt: skip


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with serving(tmp_path_factory.mktemp("hosts") / "data", "--no-demo") as server:
        yield House(server, people.make(server.data, {"olga": people.READER}))


@pytest.mark.parametrize("path", [PAGE, FEED])
@pytest.mark.parametrize(
    ("host", "origin", "reason"),
    [
        ("evil.example", "http://evil.example", UNKNOWN_HOST),
        ("rebound.example:8000", None, UNKNOWN_HOST),
        ("localhost", "http://evil.example", OTHER_SITE),
    ],
)
async def test_a_socket_under_another_name_is_refused(house, path, host, origin, reason):
    """As a page of another site asks whose name leads to our address."""
    port, cookie = house.server.port, house.people["olga"]["cookie"]
    async with connect(
        f"ws://{host}/c/embedded/live/{path}/",
        host="127.0.0.1",
        port=port,
        origin=origin,
        additional_headers={"Cookie": cookie},
        compression=None,
    ) as socket:
        assert await closing_of(socket) == (4403, reason)
    async with await house.open((path, {}), house.people["olga"]):
        pass
