"""uvicorn's private parts that our protocols build on: a version that has others fails here."""

from __future__ import annotations

import inspect
from dataclasses import replace

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import Server, ServerState

from tests.listener.port import LIMITS, port_with, until


def attributes(kind: type) -> set[str]:
    """The attributes that `__init__` sets."""
    text = inspect.getsource(kind.__init__)  # type: ignore[misc]
    return {word.split(":")[0].split()[0] for word in text.split("self.")[1:]}


def test_uvicorn_is_the_minor_version_that_is_pinned():
    assert uvicorn.__version__.startswith("0.54.")


def test_http_connections_have_the_parts_that_we_use():
    for name in (
        "_start_asgi_task",
        "_should_upgrade",
        "_unset_keepalive_if_required",
        "handle_websocket_upgrade",
        "on_response_complete",
    ):
        assert inspect.isfunction(getattr(HttpToolsProtocol, name)), name
    assert list(inspect.signature(HttpToolsProtocol._start_asgi_task).parameters) == [
        "self", "cycle", "app",
    ]  # fmt: skip
    assert {"pipeline", "cycle", "flow", "parser", "headers", "scope"} <= attributes(
        HttpToolsProtocol
    )
    assert {"body", "more_body", "response_complete", "waiting_for_100_continue"} <= attributes(
        RequestResponseCycle
    )


def test_sockets_have_the_parts_that_we_use():
    assert {"frames", "read_paused", "writable", "disconnected", "close_sent"} <= attributes(
        WebSocketsSansIOProtocol
    )
    assert inspect.isfunction(WebSocketsSansIOProtocol.handle_cont)
    assert "self.app(self.scope, " in inspect.getsource(WebSocketsSansIOProtocol.run_asgi)


def test_a_server_starts_with_no_socket_of_its_own_and_keeps_its_state_in_one_place():
    assert "for sock in sockets" in inspect.getsource(Server.startup)
    assert {"connections", "tasks", "total_requests", "default_headers"} <= attributes(ServerState)


async def test_asyncio_reads_as_much_at_once_as_the_limit_allows():
    async with port_with(replace(LIMITS, read_bytes=1000)) as port, port.client() as client:
        await client.send(b"GET / HTTP/1.1\r\n")
        await until(lambda: any(one.in_head for one in port.book._waiting), "a head to begin")
        (one,) = port.book._waiting
        assert one.transport.max_size == 1000
