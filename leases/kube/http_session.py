"""The HTTP session of one cluster: requests with limits, fresh credentials, errors as ApiError.

A watch must tell bytes that have arrived from bytes that it has read, and it asks the kernel to
notice a dead connection. aiohttp does not document the protocol of a Connection, so pyproject.toml
pins aiohttp to the minor version that has it, and tests/kube/test_watch_body.py fails when a
version has another.

Configuration and sessions are those of `kubernetes.aio`, so client certificates, exec plugins and
token refresh work as its users expect. Bodies are read as bytes.
"""

import asyncio
import atexit
import contextlib
import hashlib
import os
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextvars import ContextVar
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httptools
import msgspec
from kubernetes.aio.client import ApiClient, Configuration, rest
from kubernetes.aio.config import ConfigException, kube_config

from leases.wire import status
from leases.worker_threads import NameLookups


def unreachable(
    host: str, error: BaseException, *, within: float | None = None
) -> status.Unreachable:
    """Make the error for a request without a whole answer; `within` is the limit in seconds."""
    return status.Unreachable(_sentence(host, error, within))


def advise(host: str, error: status.ApiError) -> str:
    """Return the sentence for a page whose cluster cannot be watched."""
    said = str(error).rstrip(".")
    if isinstance(error, status.Unauthorized):
        return (
            f"{host} does not accept our credentials ({said}). "
            "Renew the token or client certificate; Leaseboard reads it again by itself."
        )
    if isinstance(error, status.Forbidden):
        return f"{said}. Grant get, list and watch on leases.coordination.k8s.io in all namespaces."
    if isinstance(error, status.Gone):
        return f"{said}. Leaseboard lists all Leases again."
    if isinstance(error, status.TooManyRequests):
        return f"{host} is overloaded and asks us to wait ({said})."
    if error.status.code:
        return f"{host} answered {error.status.code}: {said}. Check the health of the API server."
    return str(error)


def _sentence(host: str, error: BaseException, within: float | None) -> str:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"Cannot find the machine of {host}. Check the address and the name service."
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        return (
            f"{host} and Leaseboard do not trust each other ({_cause(error)}). "
            "Check the certificate authority and the client certificate."
        )
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"Cannot reach {host}: {_cause(error)}. Check that the API server runs."
    if isinstance(error, TimeoutError):
        limit = f" within {within:g} s" if within else ""
        return f"{host} did not answer{limit}. Check the network and the API server's load."
    return f"The connection to {host} broke: {_cause(error)}. Leaseboard connects again by itself."


def _cause(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientPayloadError):
        return "it was cut in the middle of an answer"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "it was closed without an answer"
    number = error.errno if isinstance(error, OSError) else None
    # asyncio's text repeats the address; the system's text is enough.
    if number and number > 0 and not isinstance(error, ssl.SSLError):
        return os.strerror(number).lower()
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


READ_BUFFER = 256 * 1024  # bytes; one read of a body returns little more than twice this
_HEAD_ENDS = b"\r\n\r\n"


class _Buffer(threading.local):
    """Where one read of a socket goes, before it is copied: the same for all watches of a thread.

    Without it asyncio takes 256 KiB from the system for each read, however little has come.
    """

    def __init__(self) -> None:
        self.view = memoryview(bytearray(READ_BUFFER))


_buffer = _Buffer()


class WatchBody(asyncio.BufferedProtocol):
    """The body of a watch: what many reads of the socket brought is decoded at once.

    aiohttp would hand over each chunk by itself, at four times the cost. So it gets the head of the
    answer alone. Of any other answer than 200 it gets all. What arrived before the connection broke
    can be read.
    """

    def __init__(self, protocol: Any) -> None:
        """`protocol`: aiohttp's, before the answer has come."""
        self._protocol = protocol
        self._transport: asyncio.Transport = protocol.transport
        self.socket: socket.socket | None = self._transport.get_extra_info("socket")
        self._head = b""  # of the answer, as far as it has come
        self._parser = httptools.HttpResponseParser(self)
        # aiohttp forgives as much: proxies of all ages send it.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )  # fmt: skip
        self._waiting: list[bytes] = []
        # Bytes, with the framing: that came, were read, and what was in them was taken.
        self.arrived = self.drained = self.taken = 0  # any thread may read them
        self._pieces: list[bytes] = []
        # The server ended it; when it was read last, more may have waited than was counted: TLS
        # gives it in its next turn.
        self.over = self.held_back = False
        self.begun = False  # the answer is 200, and aiohttp has its head alone
        self._lost = self._paused = self._full = self._ends_with_connection = False
        self._came = asyncio.Event()
        self._transport.set_protocol(self)

    def read_nowait(self) -> bytes:
        """Return what has arrived; empty: nothing. Raises aiohttp.ClientPayloadError.

        The caller sets `taken` once it counts what it got as its own.
        """
        raw = b"".join(self._waiting)
        self._waiting.clear()
        self.drained += len(raw)
        self.held_back, self._full = self._paused or self._full, False
        if self._paused and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()
        if raw and not self.over:
            try:
                self._parser.feed_data(raw)
            except httptools.HttpParserError as error:
                self._transport.abort()
                if not self.over:
                    self.taken = self.drained
                    raise aiohttp.ClientPayloadError(str(error)) from error
        self.over = self.over or (self._lost and self._ends_with_connection)
        body = b"".join(self._pieces)
        self._pieces.clear()
        if not body:
            self.taken = self.drained
            if self._lost and not self.over:
                raise aiohttp.ClientPayloadError
        return body

    async def read(self) -> bytes:
        """Return what arrives next; empty at the end. Raises aiohttp.ClientPayloadError."""
        while not (body := self.read_nowait()) and not self.over:
            self._came.clear()
            await self._came.wait()
        return body

    def get_buffer(self, sizehint: int) -> memoryview:
        return _buffer.view

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(_buffer.view[:nbytes])
        if not self.begun and not (data := self._pass_head(data)):
            return
        self._waiting.append(data)
        self.arrived += len(data)
        self._full |= nbytes == READ_BUFFER
        self._came.set()
        if self.arrived - self.drained > 2 * READ_BUFFER and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def _pass_head(self, data: bytes) -> bytes:
        """Give aiohttp the head, and those of interim answers before it. Returns what follows."""
        while data:
            before = len(self._head)
            self._head += data
            ends = self._head.find(_HEAD_ENDS, max(0, before - len(_HEAD_ENDS) + 1))
            if ends < 0:
                self._protocol.data_received(data)
                return b""
            ends += len(_HEAD_ENDS)
            head, self._head = self._head[:ends], b""
            code = head[9:12]  # after HTTP/1.1
            if code == b"200":
                self._protocol.force_close()  # this connection answers no other request
            self._protocol.data_received(data[: ends - before])
            data = data[ends - before :]
            if code == b"200":
                self._begin(head)
                return data
            if not code.startswith(b"1"):
                self._transport.set_protocol(self._protocol)
                self._protocol.data_received(data)
                return b""
        return b""

    def _begin(self, head: bytes) -> None:
        names = head.lower()
        framed = b"\r\ntransfer-encoding:" in names or b"\r\ncontent-length:" in names
        self._ends_with_connection = not framed
        try:
            self._parser.feed_data(head)
            self.begun = True
        except httptools.HttpParserError:
            self._transport.abort()

    def on_body(self, piece: bytes) -> None:
        """httptools decoded it."""
        if not self.over:  # what follows the end is no part of it
            self._pieces.append(piece)

    def on_message_complete(self) -> None:
        """httptools saw the end."""
        self.over = True

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._came.set()
        self._protocol.connection_lost(exc)


USER_AGENT = "leaseboard/0.1"  # the part before the slash is also our field manager
MAX_BODY = 32 * 1024 * 1024  # bytes; a page of a list is 500 Leases
MAX_INTERIM = 20  # answers of 100 to 199 before the one that counts
MAX_ERROR_BODY = 1024 * 1024  # bytes; more of it tells nothing
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
# The settings of a session. If only the token changes, connections may stay open.
_TRANSPORT = ("host", "verify_ssl", "proxy", "tls_server_name")
_FILES = ("ssl_ca_cert", "cert_file", "key_file")

JSON = "application/json"
Configure = Callable[[], Awaitable[Configuration]]
Query = Sequence[tuple[str, str]]


class ConfigureError(Exception):
    """A cluster's configuration cannot be read now: one sentence."""


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait, in seconds."""

    connect: float = 5.0
    answer: float = 30.0  # a whole answer, or a watch's header
    page: float = 60.0  # one page of a list
    # After this long without data on a watch, ask whether the cluster is alive.
    quiet: float = 4.0
    idle: float = 30.0  # the same where nothing can expire meanwhile
    probe: float = 4.0  # the answer to that question
    slack: float = 30.0  # a watch must end within timeoutSeconds plus this
    # Real servers send a bookmark about every minute if anything was written.
    bookmark: float = 90.0
    renew: float = 10.0  # do not read credentials more often than this
    replay: float = 3.0  # a backlog comes at once: after this long without an event it is over
    short: float = 1.0  # do not reopen at once a watch that ends sooner


class Session:
    """Sends requests to one cluster; `host` is its address."""

    def __init__(self, configure: Configure, *, host: str, limits: Timeouts | None = None) -> None:
        self.host = host
        self.limits = limits or Timeouts()
        self._configure = configure
        self._api: ApiClient | None = None
        self._transport: tuple[Any, ...] = ()  # the settings that it was made with
        self._configuring = asyncio.Lock()
        self._configured_at = float("-inf")
        self._suspect = False  # the address is missing or may be wrong: read it before the next try

    async def fetch(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: Any = None,
        content_type: str = JSON,
        within: float | None = None,
        accept: str = JSON,
        as_user: str = "",
        warnings: list[str] | None = None,
        max_bytes: int = MAX_BODY,
        received: dict[str, str] | None = None,
    ) -> bytes:
        """Return the whole body of a successful answer. Raises ApiError.

        `as_user`: the user that the cluster is to take us for; empty: ourselves. The texts of the
        answer's Warning headers are appended to `warnings`, all headers are put into `received`.
        A body of more than `max_bytes` is an error.
        """
        limit = within or self.limits.answer
        headers = {"Accept": accept, "Content-Type": content_type}
        if as_user:
            headers["Impersonate-User"] = as_user
        with self._translated(limit):
            async with asyncio.timeout(limit):
                async with await self._open(method, path, query, body, headers) as response:
                    answer = await _read(response, max_bytes)
        if answer is None:
            raise status.Unreachable(f"{self.host} answered with more than {max_bytes >> 20} MiB.")
        if warnings is not None:
            warnings += status.warnings_in(response.headers.getall("Warning", []))
        if received is not None:
            received.update(response.headers)
        return answer

    @contextlib.asynccontextmanager
    async def watch(self, path: str, *, query: Query) -> AsyncIterator[WatchBody]:
        """Return the unread body of a successful answer. Raises ApiError. Leaving closes it."""
        limit = self.limits.answer
        headers = {"Accept": JSON, "Accept-Encoding": "identity"}
        query = (("watch", "true"), *query)
        asked = _watches.set(True)
        try:
            with self._translated(limit):
                async with asyncio.timeout(limit):
                    response = await self._open("GET", path, query, None, headers)
        finally:
            _watches.reset(asked)
        try:
            body = cast("_Response", response).watch_body
            plain = response.headers.get("Content-Encoding", "identity") == "identity"
            if body is None or not body.begun or not plain:
                raise status.Unreachable(f"{self.host} sent a watch in a form nobody asked for.")
            yield body
        finally:
            response.close()

    async def configure_again(self) -> None:
        """The configuration has changed: read it before the next request. Open bodies end."""
        self._configured_at = float("-inf")
        await self.close()

    async def close(self) -> None:
        api, self._api = self._api, None
        if api is not None:
            await api.close()  # type: ignore[no-untyped-call]

    async def _open(
        self, method: str, path: str, query: Query, body: Any, headers: dict[str, str]
    ) -> aiohttp.ClientResponse:
        api = self._api
        if api is None or (self._suspect and self._may_renew()):
            api = await self._renew()
        try:
            return await self._send(api, method, path, query, body, headers)
        except status.Unauthorized:
            # A token file may have been replaced, or an exec plugin's token may have expired.
            if not self._may_renew():
                raise
            return await self._send(await self._renew(), method, path, query, body, headers)

    async def _send(
        self,
        api: ApiClient,
        method: str,
        path: str,
        query: Query,
        body: Any,
        headers: dict[str, str],
    ) -> aiohttp.ClientResponse:
        _, url, headers, body, _ = await api.param_serialize(
            method, path, query_params=list(query), header_params=dict(headers), body=body,
            auth_settings=["BearerToken"],
        )  # fmt: skip
        answer = await api.call_api(
            method, url, header_params=headers, body=body, _preload_content=False,
            _request_timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.limits.connect),
        )  # fmt: skip
        response = cast("aiohttp.ClientResponse", answer.response)
        if response.status < 300:
            return response
        async with response:
            text = await _read(response, MAX_ERROR_BODY) or b""
        retry_after = response.headers.get("Retry-After", "")
        seconds = int(retry_after) if retry_after.isdecimal() else 0
        raise status.error_of(status.read_status(response.status, text, retry_after=seconds))

    def _may_renew(self) -> bool:
        return asyncio.get_running_loop().time() - self._configured_at >= self.limits.renew

    async def _renew(self) -> ApiClient:
        async with self._configuring:
            if self._api is not None and not self._may_renew():
                return self._api
            try:
                configuration = _with_proxy(await self._configure())
                # Nothing is awaited from here on: the files are this session's alone.
                api, transport = self._api, _transport(configuration)
                if api is None or transport != self._transport:
                    api = _client(configuration)
            except OSError as error:
                raise ConfigureError(
                    f"Cannot use the certificates for {self.host}: {str(error).rstrip('.')}. "
                    "Check the client certificate and its key."
                ) from error
            finally:
                _remove_files()
            self._configured_at = asyncio.get_running_loop().time()
            self._suspect = False
            if api is self._api:
                api.configuration.api_key = configuration.api_key
                api.configuration.refresh_api_key_hook = configuration.refresh_api_key_hook
                return api
            await self.close()
            self.host, self._transport, self._api = configuration.host, transport, api
            return api

    @contextlib.contextmanager
    def _translated(self, within: float) -> Iterator[None]:
        """Raise the libraries' errors as ApiError."""
        try:
            yield
        except (ConfigureError, ConfigException) as error:
            raise status.Unreachable(str(error)) from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            # A re-created cluster keeps its context name but has a new port and CA.
            self._suspect = isinstance(error, aiohttp.ClientConnectorError)
            raise unreachable(self.host, error, within=within) from error


_names = NameLookups("cluster-names")


class _Resolver(aiohttp.abc.AbstractResolver):
    """Looks names up in threads of our own: aiohttp would use those that the process shares."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[aiohttp.abc.ResolveResult]:
        found = await _names.find(host, port, family)
        return [
            aiohttp.abc.ResolveResult(
                hostname=host,
                host=address[0],
                port=address[1],
                family=family,
                proto=proto,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for family, _, proto, _, address in found
        ]

    async def close(self) -> None:
        pass


_watches: ContextVar[bool] = ContextVar("watches", default=False)  # this request does


class _Response(aiohttp.ClientResponse):
    """Ends a connection that floods answers of 100 to 199: aiohttp reads them without a limit."""

    watch_body: WatchBody | None = None

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        protocol, left = connection.protocol, MAX_INTERIM
        if _watches.get():
            self.watch_body = WatchBody(protocol)
        read = protocol.read

        async def counted() -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                protocol.transport.abort()
                raise aiohttp.ClientPayloadError
            return await read()

        protocol.read = counted
        try:
            return await super().start(connection)
        finally:
            del protocol.read


class _Rest(rest.RESTClientObject):
    def _create_connector(self) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(limit=self.maxsize, ssl=self.ssl_context, resolver=_Resolver())


def _with_proxy(configuration: Configuration) -> Configuration:
    """Add the proxy that the environment names, as aiohttp's `trust_env` does, which reads it in
    the threads that the process shares. Like Go, never use one for this machine.
    """
    parts = urlsplit(configuration.host)
    host = parts.hostname or ""
    if configuration.proxy or host in _LOOPBACK or proxy_bypass(host):
        return configuration
    configuration.proxy = getproxies().get(parts.scheme)
    return configuration


def _transport(configuration: Configuration) -> tuple[Any, ...]:
    """Return the settings of a session: of a file what is in it, whatever its name."""
    files = (getattr(configuration, name) for name in _FILES)
    contents = (one and hashlib.sha256(Path(one).read_bytes()).digest() for one in files)
    return (*(getattr(configuration, name) for name in _TRANSPORT), *contents)


def _remove_files() -> None:
    """Remove the certificates and keys that the library wrote out of a kubeconfig.

    It needs them as files for as long as it takes to read them, and would keep them in the
    temporary directory until the process ends by itself.
    """
    remove = kube_config._cleanup_temp_files  # noqa: SLF001 the library has no other way
    remove()  # type: ignore[no-untyped-call]
    atexit.unregister(remove)  # it registers itself each time


@cache
def _plain_client() -> ApiClient:
    """The client that all are copies of: the system's certificate authorities, which the library
    reads for HTTP too, cost 25 ms and 0.8 MiB.
    """
    api = ApiClient(Configuration())
    api.rest_client = _Rest(api.configuration)
    api.user_agent = USER_AGENT
    return api


def _client(configuration: Configuration) -> ApiClient:
    configuration.client_session_kwargs = {
        "trust_env": False,
        "read_bufsize": READ_BUFFER,
        "response_class": _Response,
    }
    api = copy(_plain_client())
    api.configuration = configuration
    if urlsplit(configuration.host).scheme == "http":
        api.rest_client = copy(api.rest_client)
        api.rest_client.configuration = configuration
        api.rest_client.proxy = configuration.proxy
    else:
        api.rest_client = _Rest(configuration)
    return api


async def _read(response: aiohttp.ClientResponse, max_bytes: int) -> bytes | None:
    """Return the body. None as soon as it is longer than `max_bytes`: that is never copied."""
    chunks, size = [], 0
    async for chunk in response.content.iter_any():
        chunks.append(chunk)
        size += len(chunk)
        if size > max_bytes:
            return None
    return b"".join(chunks)
