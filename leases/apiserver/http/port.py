"""One port for HTTP and HTTPS: connections and their limits, the certificate, the kubeconfig.

The limits are those of kube-apiserver: pkg/server/secure_serving.go, and its request timeout.

Programs of our own speak plain HTTP on loopback; kubectl and client-go send a token over TLS only.
"""

import asyncio
import base64
import contextlib
import ipaddress
import re
import socket
import sqlite3
import ssl
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import httptools
import msgspec
import uvicorn
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from leases.apiserver.codec.yaml_output import to_yaml
from leases.apiserver.errors import Failed
from leases.apiserver.storage.journal import FILE_NAME
from leases.listener.limits import KIB, MIB, ClosingTransport, Limits, SlowReader
from leases.listener.protocol import LimitedProtocol
from leases.listener.server import ListeningServer, ListeningState
from leases.private_files import write_private

LIMITS = Limits(
    head_bytes=MIB + 4 * KIB,
    head_seconds=32.0,
    body_bytes=None,  # the app refuses a body with a Status
    body_seconds=60.0,
    stall_seconds=60.0,
    connections=60_000,  # every kubelet keeps one open
    waiting=60_000,
    sockets=0,
    pipelined=1000,
    large_bytes=64 * KIB,
    large=256,
)
WATCH_BUFFER = 16 * KIB  # bytes that the transport of an open watch keeps unread
LATE = "leaseboard.late"
# Source: Go's net/http, validMethod.
_TOKEN = re.compile(rb"[-!#$%&'*+.^_`|~0-9A-Za-z]+")


class Joined(ClosingTransport):
    """A transport that writes the head of an answer together with the first bytes of its body."""

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        super().__init__(transport)
        self._head = b""

    def write(self, data: bytes) -> None:
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(b"HTTP/1.1 ") and not data.startswith(b"HTTP/1.1 100"):
            self._head = data
            return
        self._transport.write(data)

    def flush(self) -> None:
        """Write a head that nothing followed."""
        if self._head:
            self.write(b"")

    def close(self) -> None:
        self.flush()
        super().close()


class Protocol(LimitedProtocol):
    """Drops a request whose head is late. A late body sets LATE in the scope: the answer is 504."""

    _unknown_method = ""

    def __init__(self, config: uvicorn.Config, server_state: ListeningState, **more: Any) -> None:
        super().__init__(config, server_state, **more)
        self.unread = server_state.unread

    def wrap(self, transport: asyncio.BaseTransport) -> Joined:
        self.joined = Joined(transport)
        return self.joined

    def on_response_complete(self) -> None:
        self.joined.flush()  # an answer without a body
        super().on_response_complete()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["leaseboard.connection"] = self  # type: ignore[typeddict-unknown-key]

    def keep_little(self) -> None:
        """Let the transport keep little: from here on, answers are written in pieces."""
        self.transport.set_write_buffer_limits(high=WATCH_BUFFER)

    @property
    def is_full(self) -> bool:
        """Whether the client must take what was written before it gets more."""
        return self.flow.write_paused

    async def room(self, reader: SlowReader, pieces: Iterable[bytes], *, more: int = 0) -> None:
        """Wait until it has. Meanwhile these pieces wait for it; `more` bytes are kept beside."""
        self.unread.begin(reader, pieces, more=more)
        del pieces  # who is given up frees them at once, not when this goes on
        try:
            await self.flow.drain()
        finally:
            self.unread.end(reader)

    def cut(self) -> None:
        """Drop the connection at once, and everything that the client has not read."""
        connection = self.transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        super().cut()

    def meet_unknown_method(self, data: bytes, *, again: bool) -> None:
        """Parse the request with a method that the parser knows; the app sees its own one."""
        method, _, rest = data.partition(b" ")
        if again or not _TOKEN.fullmatch(method):
            self.refuse(400)
            return
        self._unknown_method = method.decode("ascii")
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(b"TRACE " + rest)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        if self._unknown_method:
            self.scope["method"], self._unknown_method = self._unknown_method, ""

    def _run_out(self) -> None:
        if not self.in_body or self.cycle.response_complete:
            self.limit = None
            self.transport.close()
        else:
            super()._run_out()

    def meet_slow_body(self) -> None:
        self.scope[LATE] = True  # type: ignore[literal-required]
        self.cycle.message_event.set()

    def head_refusal(self) -> tuple[int, str]:
        return 431, ""  # in the words of Go's net/http

    def is_answering(self) -> bool:
        return super().is_answering() and getattr(self.cycle, "response_started", False)

    def hang_up(self) -> None:
        self.transport.close()


KEEP_ALIVE = 180
SHUTDOWN = 2
_TLS_HANDSHAKE = b"\x16"
_FIRST_BYTE_WITHIN = 60


class Server(ListeningServer):
    """The port of the Lease API. It leaves signals to the process that runs it."""

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
        """Wait for the first byte in a task, so that other connections are accepted meanwhile."""
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
        return Protocol(self.config, self.server_state, app_state=self.lifespan.state)


class Newcomer:
    """A connection before its first byte."""

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


class CannotStart(Exception):
    """A file of the data directory is unusable; the text says what to do."""


@contextmanager
def explained(data: Path) -> Iterator[None]:
    """Turn errors of files in the data directory into CannotStart."""
    try:
        yield
    except (sqlite3.Error, msgspec.MsgspecError) as error:
        raise CannotStart(
            f"{data / FILE_NAME} cannot be used ({error}): put a good copy in its place, or move "
            "it away to begin with no Leases and no tokens."
        ) from error
    except OSError as error:
        if error.filename is None:  # the port is taken, not a file
            raise
        reason = (error.strerror or str(error)).lower()
        raise CannotStart(
            f"{error.filename} cannot be used ({reason}): make it writable, move it away, or "
            "choose another LEASEBOARD_DATA."
        ) from error


CERTIFICATE, KEY = "lease_api.crt", "lease_api.key"
VALID_FOR = timedelta(days=3650)
_RENEW_BEFORE = timedelta(days=30)
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def check_certificate(directory: Path) -> None:
    """Raise CannotStart for files that cannot be used; no files are fine."""
    if (directory / KEY).exists():
        _kept_key(directory)
    if (directory / CERTIFICATE).exists():
        tls_context(directory)


def certificate_for(directory: Path, host: str, *, now: datetime) -> bytes:
    """The PEM of the server's certificate; make one where none is or the kept one does not fit.

    Raises CannotStart. A new certificate keeps the key, so that a stop between the two files
    leaves a pair that belongs together.
    """
    check_certificate(directory)
    certificate = directory / CERTIFICATE
    hosts = list(dict.fromkeys(["localhost", "127.0.0.1", "::1", host]))
    hosts = [each for each in hosts if each not in ("0.0.0.0", "::")]  # noqa: S104 - not bound here
    if certificate.exists() and _fits(certificate, hosts, now):
        return certificate.read_bytes()
    if not (directory / KEY).exists():
        write_private(directory / KEY, _new_key())
    made = _make_certificate(_kept_key(directory), hosts, now)
    write_private(certificate, made)
    return made


def tls_context(directory: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    certificate, key = directory / CERTIFICATE, directory / KEY
    if not key.exists():
        raise _refusal(certificate, f"cannot be used without its key {key}")
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        raise _refusal(certificate, f"is no certificate for its key {key}") from error
    context.set_alpn_protocols(["http/1.1"])
    return context


def _kept_key(directory: Path) -> Key:
    path = directory / KEY
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except (ValueError, TypeError) as error:  # TypeError: it wants a password
        raise _refusal(path, "is no private key in PEM without a password") from error
    if not isinstance(key, Key):
        raise _refusal(path, "is no RSA or elliptic-curve key")
    return key


def _refusal(path: Path, why: str) -> CannotStart:
    return CannotStart(
        f"{path} {why}: put good copies of {CERTIFICATE} and {KEY} in their place, or remove both; "
        "then new ones are made, and copies of the kubeconfig must be made anew."
    )


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


def _new_key() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _make_certificate(key: Key, hosts: list[str], now: datetime) -> bytes:
    """Certificate in PEM for these names and addresses."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "leaseboard lease api")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + VALID_FOR)
        .add_extension(x509.SubjectAlternativeName([_name(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM)


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


CONTEXT = "leaseboard"


def write_kubeconfig(path: Path, *, server: str, certificate: bytes, token: str) -> None:
    """`certificate` is the server's certificate in PEM."""
    cluster = {
        "server": server,
        "certificate-authority-data": base64.b64encode(certificate).decode(),
    }
    context = {"cluster": CONTEXT, "user": CONTEXT, "namespace": "default"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": CONTEXT, "user": {"token": token}}],
        "contexts": [{"name": CONTEXT, "context": context}],
        "current-context": CONTEXT,
    }
    write_private(path, to_yaml(config))


def token_in(path: Path) -> str | None:
    """The token that an earlier run wrote; None if the file is unreadable."""
    try:
        config: Any = yaml.safe_load(path.read_bytes())
        token = config["users"][0]["user"]["token"]
    except (OSError, yaml.YAMLError, KeyError, IndexError, TypeError):
        return None
    return token if isinstance(token, str) and token else None
