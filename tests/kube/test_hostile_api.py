"""An API server that floods or hides behind a name that is not found: each request ends."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from leases.kube import http_session
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.kube.http_session import Timeouts
from leases.wire.status import Unreachable
from tests.kube.conftest import FAST
from tests.support.following import list_whole
from tests.support.hostile import MEBIBYTE, hostile


async def test_a_list_that_does_not_end_is_refused_by_its_size(monkeypatch):
    small = {**http_session.Session.fetch.__kwdefaults__, "max_bytes": MEBIBYTE}
    monkeypatch.setattr(http_session.Session.fetch, "__kwdefaults__", small)
    async with hostile("floods a body") as api:
        client = await connect(parse_source(f"url:http://127.0.0.1:{api.port}"), kubeconfig=None)
        with pytest.raises(Unreachable, match="answered with more than 1 MiB"):
            await list_whole(client)
        await client.close()
        async with asyncio.timeout(30):
            await api.left.wait()
        assert api.sent < 32 * MEBIBYTE


async def test_a_flood_of_interim_answers_ends_the_request():
    async with hostile("floods 102") as api:
        client = await connect(parse_source(f"url:http://127.0.0.1:{api.port}"), kubeconfig=None)
        with pytest.raises(Unreachable, match="cut in the middle of an answer"):
            await list_whole(client)
        await client.close()
        async with asyncio.timeout(30):
            await api.left.wait()
        assert api.sent < 32 * MEBIBYTE


async def test_a_name_that_is_never_found_ends_the_request(monkeypatch):
    never, asked = threading.Event(), []

    def look_up(host, *rest):
        asked.append(host)
        never.wait(60)
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    source = parse_source("url:http://hangs.example.com")
    client = await connect(source, kubeconfig=None, limits=Timeouts(answer=0.2, page=0.2))
    try:
        for _ in range(5):
            with pytest.raises(Unreachable):
                await list_whole(client)
        assert asked == ["hangs.example.com"]
    finally:
        never.set()
        await client.close()


async def test_a_proxy_of_the_environment_is_asked_with_its_credentials(monkeypatch):
    heard = asyncio.Queue()

    async def proxy(reader, writer):
        await heard.put(await reader.readuntil(b"\r\n\r\n"))
        writer.close()

    server = await asyncio.start_server(proxy, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("http_proxy", f"http://us%20er:pass@127.0.0.1:{port}")
    client = await connect(parse_source("url:http://far.example.com"), kubeconfig=None, limits=FAST)
    async with server:
        with pytest.raises(Unreachable):
            await list_whole(client)
        head = (await heard.get()).decode()
    await client.close()
    assert head.startswith("GET http://far.example.com/apis/coordination.k8s.io/")
    assert "Proxy-Authorization: Basic dXMgZXI6cGFzcw==" in head
