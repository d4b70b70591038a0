"""The few requests of electors and kubelets, with plain objects, over HTTP/1.1.

A general client spends half a millisecond on a request, which was a sixth of what an idle demo
took. This one writes a head and parses the answer.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from copy import copy
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import urlsplit

import httptools
import msgspec

from leases.domain.lease import ObjectName

LeaseObject = dict[str, Any]
VERSION = "v1.36.0"
_GROUP = "/apis/coordination.k8s.io"
_MERGE_PATCH = "application/merge-patch+json"
_SECONDS = 5.0  # an API that does not answer within this time counts as down
_CONNECTIONS = 16


class ApiDownError(Exception):
    """No answer, or a server error. Try again."""


class _Connection(asyncio.Protocol):
    """One kept connection, for one request at a time."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._body = b""

    def ask(self, request: bytes) -> asyncio.Future[tuple[int, bytes]]:
        """Return the coming status and body, or the OSError of a connection that breaks."""
        self._body = b""
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self._answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.transport.abort()

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        if not self._parser.should_keep_alive():
            self.transport.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((self._parser.get_status_code(), self._body))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("closed without an answer"))


class _Connections:
    """To the address in `url`; a request waits while all are at work."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.host = parts.netloc
        self._address = parts.hostname or "", parts.port or 80
        self._idle: list[_Connection] = []
        self._free = asyncio.Semaphore(_CONNECTIONS)

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Return status and body. Raises OSError and TimeoutError."""
        async with asyncio.timeout(_SECONDS), self._free:
            self._idle = [one for one in self._idle if not one.transport.is_closing()]
            one = self._idle.pop() if self._idle else await self._connect()
            try:
                answer = await one.ask(request)
            except BaseException:
                one.transport.abort()
                raise
            self._idle.append(one)
            return answer

    async def _connect(self) -> _Connection:
        _, made = await asyncio.get_running_loop().create_connection(_Connection, *self._address)
        return made

    def close(self) -> None:
        for one in self._idle:
            one.transport.close()


class DemoApi:
    """A client of the Lease API; the API takes `program` for the field manager of its writes."""

    def __init__(self, *, url: str, token: str) -> None:
        self.program = "demo"
        self._connections = _Connections(url)
        self._token = token

    def acting_as(self, program: str) -> DemoApi:
        """Return a client that shares the connections and writes as another program."""
        other = copy(self)
        other.program = program
        return other

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connections.close()

    async def ensure_namespace(self, name: str) -> None:
        """Create the namespace if it is missing. An API without namespaces needs none."""
        await self._ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    async def serves_candidates(self) -> bool:
        """Whether the API serves LeaseCandidates, so that it elects."""
        return await self._ask("GET", f"{_GROUP}/v1beta1") is not None

    async def get(self, key: ObjectName, *, candidate: bool = False) -> LeaseObject | None:
        """Return the Lease (or LeaseCandidate), if any."""
        return await self._ask("GET", _path(key.namespace, key.name, candidate=candidate))

    async def create(self, lease: LeaseObject, *, candidate: bool = False) -> LeaseObject | None:
        """Return the new object; None if another client was faster."""
        path = _path(lease["metadata"]["namespace"], candidate=candidate)
        return await self._ask("POST", path, lease)

    async def update(self, lease: LeaseObject, *, candidate: bool = False) -> LeaseObject | None:
        """Return the written object; None if it changed since it was read."""
        meta = lease["metadata"]
        path = _path(meta["namespace"], meta["name"], candidate=candidate)
        return await self._ask("PUT", path, lease)

    async def delete(self, key: ObjectName, *, candidate: bool = False) -> None:
        """Delete the object if it exists."""
        await self._ask("DELETE", _path(key.namespace, key.name, candidate=candidate))

    async def write(self, method: str, path: str, body: Any = None) -> LeaseObject | None:
        """Send a request for an object beside the Leases. None where the API refuses it."""
        with suppress(ApiDownError):
            return await self._ask(method, path, body)
        return None

    async def _ask(self, method: str, path: str, body: Any = None) -> LeaseObject | None:
        data = b"" if body is None else msgspec.json.encode(body)
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self._connections.host}\r\n"
            f"Authorization: Bearer {self._token}\r\nUser-Agent: {self.program}/{VERSION}\r\n"
            f"Content-Type: {_MERGE_PATCH if method == 'PATCH' else 'application/json'}\r\n"
            f"Content-Length: {len(data)}\r\n\r\n"
        )
        try:
            status, text = await self._connections.ask(head.encode() + data)
        except (OSError, TimeoutError) as error:
            raise ApiDownError(str(error)) from error
        if status >= 500 or status in (401, 403, 429):
            raise ApiDownError(f"{method} {path} returned {status}")
        if status >= 400:
            return None
        try:
            answer: LeaseObject = msgspec.json.decode(text, type=LeaseObject)
        except msgspec.DecodeError as error:
            raise ApiDownError(f"{method} {path} returned invalid JSON") from error
        # managedFields are half of the object, and nobody here needs them.
        answer.get("metadata", {}).pop("managedFields", None)
        return answer


def _path(namespace: str, name: str = "", *, candidate: bool = False) -> str:
    version, plural = ("v1beta1", "leasecandidates") if candidate else ("v1", "leases")
    return f"{_GROUP}/{version}/namespaces/{namespace}/{plural}/{name}".rstrip("/")
