"""One port for HTTP and HTTPS: the first byte of a connection tells which.

Programs of our own speak plain HTTP on loopback; kubectl and client-go send a token over TLS only.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import uvicorn

from leases.apiserver.failing import Failed
from leases.apiserver.http.certificate import make_certificate
from leases.apiserver.http.kubeconfig import write_private
from leases.apiserver.http.protocol import Protocol
from leases.listener.limits import Limits
from leases.listener.server import ListeningServer

logger = logging.getLogger(__name__)
CERTIFICATE, KEY = "lease_api.crt", "lease_api.key"
KEEP_ALIVE = 180
SHUTDOWN = 2
_TLS_HANDSHAKE = b"\x16"
_FIRST_BYTE_WITHIN = 60
_RENEW_BEFORE = timedelta(days=30)


def certificate_for(directory: Path, host: str, *, now: datetime) -> bytes:
    """The PEM of the server's certificate, made anew when there is none that fits."""
    certificate, key = directory / CERTIFICATE, directory / KEY
    hosts = list(dict.fromkeys(["localhost", "127.0.0.1", "::1", host]))
    hosts = [each for each in hosts if each not in ("0.0.0.0", "::")]  # noqa: S104 - not bound here
    there = certificate.is_file() and key.is_file()
    if there and not _is_pair(directory):
        logger.warning(
            "%s and %s cannot be used together: both are made anew, and copies of the kubeconfig "
            "must be made anew too.", certificate, key,
        )  # fmt: skip
    elif there and _fits(certificate, hosts, now):
        return certificate.read_bytes()
    made, secret = make_certificate(hosts, now=now)
    write_private(key, secret)
    write_private(certificate, made)
    return made


def _is_pair(directory: Path) -> bool:
    """Whether the certificate and the key can be read and belong together."""
    try:
        tls_context(directory)
    except (ssl.SSLError, ValueError):
        return False
    return True


def _fits(certificate: Path, hosts: list[str], now: datetime) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(certificate)
        (found,) = cast("list[dict[str, Any]]", context.get_ca_certs())
        until = datetime.fromtimestamp(ssl.cert_time_to_seconds(found["notAfter"]), UTC)
    except (OSError, ValueError, KeyError):
        return False
    names = {name for _, name in found.get("subjectAltName", ())}
    compact = {name.replace("0:0:0:0:0:0:0:1", "::1").lower() for name in names}
    return set(hosts) <= compact and now + _RENEW_BEFORE < until


def tls_context(directory: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(directory / CERTIFICATE, directory / KEY)
    context.set_alpn_protocols(["http/1.1"])
    return context


class Server(ListeningServer):
    """The port of the Lease API; signals are the business of whoever runs us."""

    def __init__(self, app: Any, limits: Limits, tls: ssl.SSLContext, failed: Failed) -> None:
        config = uvicorn.Config(
            app,
            http=Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=SHUTDOWN,
        )
        super().__init__(config, limits, name="The Lease API", failed=failed)
        self.ready = asyncio.Event()
        self._tls = tls
        self._welcoming: set[Newcomer] = set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        tasks = [newcomer.task for newcomer in self._welcoming]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await super().shutdown(sockets)

    async def welcome(self, connection: socket.socket) -> None:
        """Others are taken while this connection says whether it wants TLS."""
        newcomer = Newcomer(asyncio.create_task(self._hand_over(connection)))
        self._welcoming.add(newcomer)
        book = self.server_state.book
        book.begin(newcomer)

        def leave(_: asyncio.Task[None]) -> None:
            self._welcoming.discard(newcomer)
            book.end(newcomer)

        newcomer.task.add_done_callback(leave)

    async def _hand_over(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            async with asyncio.timeout(_FIRST_BYTE_WITHIN):
                first = await _first_byte(connection)
                tls = self._tls if first == _TLS_HANDSHAKE else None
                await loop.connect_accepted_socket(self.protocol, connection, ssl=tls)
        except (OSError, TimeoutError, asyncio.CancelledError) as error:
            connection.close()
            if isinstance(error, asyncio.CancelledError):
                raise

    def protocol(self) -> asyncio.Protocol:
        return Protocol(self.config, self.server_state, self.lifespan.state)


class Newcomer:
    """A connection that has not sent its first byte yet."""

    def __init__(self, task: asyncio.Task[None]) -> None:
        self.task = task

    def cut(self) -> None:
        self.task.cancel()


async def _first_byte(connection: socket.socket) -> bytes:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(connection, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(connection)
    return connection.recv(1, socket.MSG_PEEK)
