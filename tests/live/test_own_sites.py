"""A socket opens for a known host and for our own or a trusted site; others get a reason."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import OperationalError

from dashboard.live.socket_guards import (
    NO_DATABASE,
    OTHER_SITE,
    UNKNOWN_HOST,
    closed_without_database,
    own_sites_only,
)

HOST = (b"host", b"board.example.com")


class Socket:
    """The server's end of one socket; notes the messages and what reached the app."""

    def __init__(self, *headers: tuple[bytes, bytes]) -> None:
        self.scope = {"type": "websocket", "headers": list(headers)}
        self.messages: list[Any] = []
        self.reached: list[tuple[Any, Any, Any]] = []

    async def receive(self) -> dict[str, str]:
        self.messages.append("received")
        return {"type": "websocket.connect"}

    async def send(self, message: dict[str, Any]) -> None:
        self.messages.append(message)

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        self.reached.append((scope, receive, send))


def closed(code: int, reason: str) -> list[Any]:
    """A browser shows the code of a socket only if it was accepted first."""
    accept = {"type": "websocket.accept"}
    return ["received", accept, {"type": "websocket.close", "code": code, "reason": reason}]


@pytest.mark.parametrize(
    ("headers", "messages"),
    [
        ([], closed(4403, UNKNOWN_HOST)),
        ([(b"host", b"evil.example")], closed(4403, UNKNOWN_HOST)),
        ([HOST, (b"origin", b"https://evil.example")], closed(4403, OTHER_SITE)),
        ([HOST, (b"origin", b"https://board.example.com")], []),
        ([HOST], []),
    ],
)
async def test_only_our_own_sites_reach_the_app(headers, messages, settings):
    settings.ALLOWED_HOSTS = ["board.example.com"]
    socket = Socket(*headers)
    await own_sites_only(socket.app)(socket.scope, socket.receive, socket.send)
    assert socket.messages == messages
    passed = [(socket.scope, socket.receive, socket.send)]
    assert socket.reached == ([] if messages else passed)


async def test_a_failing_database_is_logged_and_closes_the_socket(caplog):
    socket = Socket()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        socket.reached.append((scope, receive, send))
        raise OperationalError("disk full")

    await closed_without_database(app)(socket.scope, socket.receive, socket.send)
    assert socket.messages == closed(1011, NO_DATABASE)
    ((scope, receive, _),) = socket.reached
    assert (scope, receive) == (socket.scope, socket.receive)
    assert caplog.messages == ["A socket was not opened, the database refuses: disk full"]
