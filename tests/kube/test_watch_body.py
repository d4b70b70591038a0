"""The body of a watch: the many shapes of an answer, and aiohttp's undocumented parts below it."""

from __future__ import annotations

import asyncio
import ipaddress
import select
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from leases.kube import http_session
from leases.kube.http_session import READ_BUFFER, WatchBody
from leases.kube.lease_client import LeaseClient
from leases.wire.status import Forbidden, Unreachable
from tests.support.scripted_api import (
    Connection,
    Reply,
    ScriptedServer,
    answer,
    modified,
    status,
    stream,
)

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


def chunk(text: bytes) -> bytes:
    return f"{len(text):x}\r\n".encode() + text + b"\r\n"


def sending(*pieces: bytes, hang: bool = False) -> Reply:
    """Each piece is a segment of its own."""

    async def reply(connection: Connection) -> None:
        for piece in pieces:
            await connection.send(piece)
            await asyncio.sleep(0.001)
        if hang:
            await connection.hang()

    return reply


@asynccontextmanager
async def watched(client: LeaseClient) -> AsyncIterator[WatchBody]:
    async with client._session.watch("/apis/coordination.k8s.io/v1/leases", query=()) as body:
        yield body


async def all_of(body: WatchBody) -> bytes:
    text = b""
    while piece := await body.read():
        text += piece
    return text


def test_aiohttp_is_the_minor_version_that_is_pinned() -> None:
    assert aiohttp.__version__.startswith("3.14.")


WHOLE = CHUNKED + chunk(b"one\n") + chunk(b"two\n") + b"0\r\n\r\n"


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param((WHOLE,), id="in one piece"),
        pytest.param(tuple(WHOLE[at : at + 1] for at in range(len(WHOLE))), id="byte by byte"),
        pytest.param((EARLY + EARLY, EARLY + WHOLE), id="after interim answers"),
        pytest.param((EARLY[:-1], EARLY[-1:] + WHOLE[:30], WHOLE[30:]), id="cut in the heads"),
        pytest.param((CHUNKED + b"4  \r\none\n\r\n4\r\ntwo\n\r\n0\r\n\r\n",), id="padded"),
        pytest.param((WHOLE + b"junk",), id="before junk"),
        pytest.param((WHOLE + HEAD + b"Content-Length: 5\r\n\r\nother",), id="before another"),
        pytest.param((HEAD + b"X: a\n" + CHUNKED[len(HEAD) :] + WHOLE[len(CHUNKED) :],), id="LF"),
        pytest.param((HEAD + b"Content-Length: 8\r\n\r\none\ntw", b"o\n"), id="with a length"),
        pytest.param((HEAD + b"\r\none\n", b"two\n"), id="until the connection ends"),
    ],
)
async def test_every_form_of_an_answer_is_read_to_its_end(
    cluster: ScriptedServer, client: LeaseClient, pieces: tuple[bytes, ...]
) -> None:
    cluster.script("watch", sending(*pieces))
    async with watched(client) as body:
        assert await all_of(body) == b"one\ntwo\n"
        assert body.over
        assert body.arrived == body.drained > 0


async def test_no_other_request_uses_the_connection_of_a_watch(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    cluster.script("watch", sending(HEAD + b"Content-Length: 0\r\n\r\n", hang=True))
    async with watched(client) as body:
        assert await all_of(body) == b""
    assert await client.newest_version() == "200"


async def test_nothing_waits_after_the_end_or_a_piece_of_framing(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    go = asyncio.Event()

    async def reply(connection: Connection) -> None:
        event = modified("a", version=101)
        await connection.send(CHUNKED + chunk(event)[:-2])
        await go.wait()
        await connection.send(b"\r\n")
        await asyncio.sleep(0.01)
        go.clear()
        await go.wait()
        await connection.send(b"0\r\n\r\n")

    cluster.script("watch", reply)
    async with client.open_watch("100", timeout_seconds=60) as watch:
        readings = watch.readings()
        await anext(readings)
        last = asyncio.ensure_future(anext(readings, None))
        for _ in range(2):
            before = watch._body.arrived
            go.set()
            while watch._body.arrived == before:
                await asyncio.sleep(0)
            await asyncio.sleep(0.06)
            assert watch._body.taken == watch._body.arrived
            assert watch.unprocessed_seconds() == 0.0
        assert await last is None


async def test_framing_alone_is_no_sign_that_the_cluster_lives(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    async def reply(connection: Connection) -> None:
        await connection.send(CHUNKED)
        while not cluster.seen("probe"):
            await connection.send(b"0")  # of the size of a chunk that never comes
            await asyncio.sleep(0.01)
        await connection.hang()

    cluster.script("watch", reply)
    async with client.open_watch("100", timeout_seconds=60) as watch:
        reading = asyncio.ensure_future(anext(watch.lines()))
        async with asyncio.timeout(60):
            while not cluster.seen("probe"):
                await asyncio.sleep(0.01)
        reading.cancel()


async def test_what_arrived_before_the_connection_broke_is_read_before_the_error(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    cluster.script("watch", sending(CHUNKED + chunk(b"one\n") + chunk(b"two\n")[:5]))
    async with watched(client) as body:
        while not body._lost:
            await asyncio.sleep(0)
        assert await body.read() == b"one\ntw"
        with pytest.raises(aiohttp.ClientPayloadError):
            await body.read()


async def test_what_the_end_of_the_connection_ends_is_read_after_it(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    cluster.script("watch", sending(HEAD + b"\r\none\n", b"two\n"))
    async with watched(client) as body:
        while not body._lost:
            await asyncio.sleep(0)
        assert await all_of(body) == b"one\ntwo\n"


async def test_a_refusal_is_read_whole(cluster: ScriptedServer, client: LeaseClient) -> None:
    cluster.script("watch", answer(403, status(403, "Forbidden", "not you")))
    with pytest.raises(Forbidden, match="not you"):
        async with watched(client):
            pass


@pytest.mark.parametrize("reply", [
    sending(HEAD + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n", hang=True),
    sending(b"HTTP/1.1 204 No Content\r\n\r\n", hang=True),
])  # fmt: skip
async def test_what_is_no_watch_is_refused_in_a_sentence(
    cluster: ScriptedServer, client: LeaseClient, reply: Reply
) -> None:
    cluster.script("watch", reply)
    with pytest.raises(Unreachable, match="sent a watch in a form nobody asked for"):
        async with watched(client):
            pass
    assert cluster.seen("watch")[0].headers["accept-encoding"] == "identity"


async def test_broken_framing_breaks_the_watch(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    cluster.script("watch", sending(CHUNKED + chunk(b"one\n") + b"no number\r\n", hang=True))
    lines = client.watch_lines("/apis/coordination.k8s.io/v1/leases", query=(), lasts=60)
    async with aclosing(lines):
        with pytest.raises(Unreachable, match="cut in the middle of an answer"):
            await anext(lines)


async def test_a_watch_whose_session_is_closed_is_unreachable(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    cluster.script("watch", stream(b"one\n", end="hang"))
    async with watched(client) as body:
        assert await body.read() == b"one\n"
        await client.configure_again()
        with pytest.raises(aiohttp.ClientPayloadError):
            await body.read()


async def test_a_server_that_sends_faster_than_we_read_waits_and_loses_nothing(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    sent, pieces = 0, 400

    async def reply(connection: Connection) -> None:
        nonlocal sent
        await connection.send(CHUNKED)
        for _ in range(pieces):
            await connection.send(chunk(b"x" * 65536))
            sent += 1
        await connection.send(b"0\r\n\r\n")

    cluster.script("watch", reply)
    async with watched(client) as body:
        while not body._paused:
            await asyncio.sleep(0)
        before = -1
        while before < sent:  # until the buffers on the way are full
            before = sent
            await asyncio.sleep(0.05)
        assert sent < pieces
        first = await body.read()
        assert body.held_back
        assert body.arrived - body.drained < 4 * READ_BUFFER
        assert len(first) + len(await all_of(body)) == pieces * 65536
        assert not body.held_back
        assert sent == pieces


async def test_what_waits_behind_a_pause_is_not_taken_for_read(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    event = modified("a", version=101)
    many = 3 * READ_BUFFER // len(event)
    cluster.script("watch", stream(event * many, event, end="hang"))
    async with client.open_watch("100", timeout_seconds=60) as watch:
        while not watch._body._paused:
            await asyncio.sleep(0)
        watch._arriving = select.poll()  # TLS keeps it where no poll sees it
        before, lines = watch._delivered_until, watch.lines()
        await anext(lines)
        await anext(lines)
        assert watch._delivered_until == before
        await lines.aclose()


def receive(body: WatchBody, text: bytes, size: int) -> None:
    """Let one read of the socket bring this text, with empty lines up to `size` bytes."""
    chunk = text.ljust(size - len(b"12345\r\n\r\n"), b"\n")
    raw = b"%05x\r\n%b\r\n" % (len(chunk), chunk)
    body.get_buffer(-1)[: len(raw)] = raw
    body.buffer_updated(len(raw))


async def test_what_tls_holds_back_after_a_full_read_is_known_to_wait(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    """asyncio gives the rest in its next turn, without another byte from the socket."""
    cluster.script("watch", stream(end="hang"))
    async with client.open_watch("100", timeout_seconds=60) as watch:
        body, lines = watch._body, watch.lines()
        receive(body, modified("a", version=101), READ_BUFFER)
        more = modified("a", version=102)
        asyncio.get_running_loop().call_soon(receive, body, more, len(more) + 9)
        assert len(await anext(lines)) == 1
        assert body.held_back
        assert body.arrived > body.taken
        assert len(await anext(lines)) == 1
        assert not body.held_back
        await lines.aclose()


def certificate(folder: Path) -> tuple[Path, Path]:
    """Of 127.0.0.1, signed by itself; and its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=True,
        )
        .sign(key, hashes.SHA256())
    )
    encoded = serialization.Encoding.PEM
    (folder / "crt").write_bytes(made.public_bytes(encoded))
    (folder / "key").write_bytes(
        key.private_bytes(encoded, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "crt", folder / "key"


async def test_a_watch_over_tls_is_read_in_any_pieces(tmp_path: Path) -> None:
    crt, key = certificate(tmp_path)
    trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trusted.load_cert_chain(crt, key)
    serving = ScriptedServer()
    serving.script("watch", sending(*(WHOLE[at : at + 7] for at in range(0, len(WHOLE), 7))))
    server = await asyncio.start_server(serving._accept, "127.0.0.1", 0, ssl=trusted)
    host = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    configuration = http_session.Configuration(host=host)
    configuration.ssl_ca_cert = str(crt)

    async def configure() -> http_session.Configuration:
        return configuration

    session = http_session.Session(configure, host=host)
    async with server, asyncio.timeout(60), session.watch("/leases", query=()) as body:
        assert await all_of(body) == b"one\ntwo\n"
    await session.close()
    await asyncio.gather(*serving._serving)
