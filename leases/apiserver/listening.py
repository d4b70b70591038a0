"""One port for HTTP and HTTPS: the first byte of a connection tells which.

Programs of our own speak plain HTTP on loopback; kubectl and client-go send a token over TLS only.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import uvicorn

from leases.apiserver.certificate import make_certificate
from leases.apiserver.kubeconfig import write_private
from leases.apiserver.renewal_protocol import RenewalProtocol
from leases.apiserver.renewing import Renewals

logger = logging.getLogger(__name__)
CERTIFICATE, KEY = "lease_api.crt", "lease_api.key"
KEEP_ALIVE = 180
OPEN_FILES = 65_536
SHUTDOWN = 2
_TLS_HANDSHAKE = b"\x16"
_FIRST_BYTE_WITHIN = 60
_RENEW_BEFORE = timedelta(days=30)


def listen(host: str, port: int) -> socket.socket:
    """A bound, listening socket; port 0 takes a free one. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(1024)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def allow_open_files() -> None:
    """Let the process have a file for each connection: the usual soft limit is 1024, and Go's
    programs raise theirs likewise.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def certificate_for(directory: Path, host: str, *, now: datetime) -> bytes:
    """The PEM of the server's certificate, made anew when there is none that fits."""
    certificate, key = directory / CERTIFICATE, directory / KEY
    hosts = list(dict.fromkeys(["localhost", "127.0.0.1", "::1", host]))
    hosts = [each for each in hosts if each not in ("0.0.0.0", "::")]  # noqa: S104 - not bound here
    if certificate.is_file() and key.is_file() and _fits(certificate, hosts, now):
        return certificate.read_bytes()
    made, secret = make_certificate(hosts, now=now)
    write_private(key, secret)
    write_private(certificate, made)
    return made


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


class Server(uvicorn.Server):
    """uvicorn's server over a listener of ours; signals are the business of whoever runs us."""

    def __init__(
        self, app: Any, renewals: Renewals, listener: socket.socket, tls: ssl.SSLContext
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=RenewalProtocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE,
                timeout_graceful_shutdown=SHUTDOWN,
            )
        )
        self.ready = asyncio.Event()
        self._renewals = renewals
        self._listener = listener
        self._tls = tls
        self._accepting: asyncio.Task[None] | None = None
        self._welcoming: set[asyncio.Task[None]] = set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        del sockets  # ours is the one given at the beginning
        self.servers = []
        self._accepting = asyncio.create_task(self._accept(), name="lease-api accepts")
        self.started = True
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        del sockets
        waiting = [self._accepting, *self._welcoming]
        for task in waiting:
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in waiting if task), return_exceptions=True)
        self._listener.close()
        await super().shutdown()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                logger.warning("The Lease API cannot take a connection: %s", error)
                await asyncio.sleep(1)
                continue
            task = asyncio.create_task(self._welcome(connection))
            self._welcoming.add(task)
            task.add_done_callback(self._welcoming.discard)

    async def _welcome(self, connection: socket.socket) -> None:
        """Hand a connection over to a protocol, with TLS when that is what it begins with."""
        loop = asyncio.get_running_loop()
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            async with asyncio.timeout(_FIRST_BYTE_WITHIN):
                first = await _first_byte(connection)
                tls = self._tls if first == _TLS_HANDSHAKE else None
                await loop.connect_accepted_socket(self._protocol(), connection, ssl=tls)
        except (OSError, TimeoutError, asyncio.CancelledError) as error:
            connection.close()
            if isinstance(error, asyncio.CancelledError):
                raise

    def _protocol(self) -> Callable[[], asyncio.Protocol]:
        if not self.config.loaded:
            self.config.load()
        return lambda: RenewalProtocol(
            self._renewals, self.config, self.server_state, self.lifespan.state
        )


async def _first_byte(connection: socket.socket) -> bytes:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(connection, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(connection)
    return connection.recv(1, socket.MSG_PEEK)
