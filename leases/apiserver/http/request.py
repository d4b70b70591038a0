"""One HTTP request and its answer over ASGI, and what its path means.

Source: apiserver/pkg/endpoints/request/requestinfo.go and installer.go.
"""

import gzip
import os
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from leases.apiserver import errors
from leases.apiserver.auth import Access, User
from leases.apiserver.codec.decoding import BODIES, aside
from leases.apiserver.http.negotiation import Output, encode, negotiate_error, wants_pretty
from leases.apiserver.http.port import LATE
from leases.apiserver.resources import Resource
from leases.wire.selectors import SelectorError, exact_name, parse_fields, parse_int
from leases.wire.status import ApiError
from leases.worker_threads import WorkerThreads

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

TEXT = "text/plain; charset=utf-8"
GZIP_FROM = 128 * 1024
GZIPPED: Headers = [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
PIECE_BYTES = 64 * 1024  # one write to a connection
_ALL_WARNINGS, _ONE_WARNING = 4096, 256
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_BAD_ESCAPE = re.compile(rb"%(?![0-9a-fA-F]{2})")
_BAD_PAIR = re.compile(r";|%(?![0-9a-fA-F]{2})")
_DRAIN_LIMIT = 64 * 1024 * 1024
_gzip = WorkerThreads("lease-api-gzip", 2)


class Params:
    """Query parameters. The first of several counts; badly encoded ones are ignored."""

    def __init__(self, query: bytes) -> None:
        self._all: dict[str, list[str]] = {}
        if query:
            text = query.decode("utf-8", "replace")
            if "%" in text or ";" in text:
                text = "&".join(pair for pair in text.split("&") if not _BAD_PAIR.search(pair))
            for name, value in parse_qsl(text, keep_blank_values=True):
                self._all.setdefault(name, []).append(value)

    def __bool__(self) -> bool:
        return bool(self._all)

    def __contains__(self, name: str) -> bool:
        return name in self._all

    def get(self, name: str) -> str | None:
        found = self._all.get(name)
        return found[0] if found else None

    def text(self, name: str) -> str:
        found = self._all.get(name)
        return found[0] if found else ""

    def all(self, name: str) -> list[str]:
        return self._all.get(name, [])

    def flag(self, name: str) -> bool | None:
        """None when not given; every text but false and 0 is true."""
        found = self._all.get(name)
        return found[0].lower() not in ("false", "0") if found else None

    def integer(self, name: str) -> int | None:
        """An int64. Raises 400."""
        text = self.get(name)
        if text is None:
            return None
        try:
            return parse_int(text)
        except ValueError as error:
            raise errors.bad_request(str(error)) from None


class Request:
    """One request. `warnings` are sent as headers of any answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        trimmed = self.path.strip("/")
        # Empty parts in the middle count.
        self.parts = trimmed.split("/") if trimmed else []
        self.query = Params(scope["query_string"])
        self._headers: dict[bytes, str] = {
            name: value.decode("latin-1") for name, value in reversed(scope["headers"])
        }
        self.user = User("", "")
        self.warnings: dict[str, None] = {}
        self._body: bytes | None = None
        self._hang_up = False

    def header(self, name: bytes) -> str:
        return self._headers.get(name, "")

    @property
    def url(self) -> str:
        """Path and query as sent."""
        raw: bytes = self.scope["raw_path"]
        query: bytes = self.scope["query_string"]
        sent = raw + b"?" + query if query else raw
        return sent.decode("latin-1")

    @property
    def server_address(self) -> str:
        """Where the client reached this server, as host:port."""
        host, port = self.scope["server"]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def has_bad_path(self) -> bool:
        """Whether Go's net/http would refuse the path before any handler."""
        raw: bytes = self.scope["raw_path"]
        return raw[:1] != b"/" or (b"%" in raw and _BAD_ESCAPE.search(raw) is not None)

    def warn(self, text: str) -> None:
        self.warnings[text] = None

    async def body(self) -> bytes:
        """The body. Raises 504 when it is late; 413 over the limit, after reading most of it."""
        if self._body is None:
            self._body = await self._receive_body()
        return self._body

    async def _receive_body(self) -> bytes:
        parts: list[bytes] = []
        size, more = 0, True
        while more and size < _DRAIN_LIMIT:
            message = await self.receive()
            if LATE in self.scope:
                self._hang_up = True
                raise errors.timed_out()
            if message["type"] == "http.disconnect":
                raise ConnectionResetError("the client went away while sending")
            size += len(message["body"])
            if size <= errors.BODY_LIMIT:
                parts.append(message["body"])
            more = message.get("more_body", False)
        self._hang_up = more
        if size > errors.BODY_LIMIT:
            raise errors.too_large()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _takes_gzip(self) -> bool:
        return any(part.strip() == "gzip" for part in self.header(b"accept-encoding").split(","))

    def headers(self, content_type: str) -> Headers:
        """The headers that every answer has."""
        found = _usual_headers(self.header(b"audit-id").encode("latin-1"), content_type)
        if self._hang_up:
            found.append((b"connection", b"close"))
        if self.warnings:
            found += [(b"warning", value) for value in warning_headers(self.warnings)]
        return found

    async def answer(
        self, status: int, body: bytes, content_type: str, more: Headers | None = None
    ) -> None:
        if len(body) >= GZIP_FROM and self._takes_gzip():
            body = await _gzip.run(gzip.compress, body, 1)
            more = [*(more or []), *GZIPPED]
        headers = self.headers(content_type) + (more or [])
        headers.append((b"content-length", str(len(body)).encode()))
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        if len(body) > PIECE_BYTES:
            answer = LargeAnswer(self, body)
            del body
            await answer.send()
        else:
            await self.send({"type": "http.response.body", "body": body})

    async def answer_made(
        self,
        size: int,
        make: Callable[[], bytes],
        content_type: str,
        *,
        status: int = 200,
        quick: bool = False,
    ) -> None:
        """Answer what `make` makes of `size` bytes; `quick`: it may do so on the event loop.

        Nothing is made before a thread is free to send it on: what waits for one takes no memory.
        No frame keeps what is made, so that a client who is given up frees it at once.
        """
        if size >= GZIP_FROM // 2 and self._takes_gzip():
            threads = _gzip if quick else BODIES
            await self.answer(status, *await threads.run(_compressed, make, content_type))
        elif quick:
            await self.answer(status, make(), content_type)
        else:
            await self.answer(status, await aside(size, make), content_type)

    async def answer_value(self, status: int, value: Any, output: Output) -> None:
        pretty = wants_pretty(self.query.get("pretty"), self.header(b"user-agent"), output)
        await self.answer(status, encode(value, output, pretty=pretty), output.media_type)

    async def answer_text(self, status: int, text: str, more: Headers | None = None) -> None:
        nosniff = (b"x-content-type-options", b"nosniff")
        await self.answer(status, text.encode(), TEXT, [nosniff, *(more or [])])

    async def answer_error(self, error: ApiError) -> None:
        output = negotiate_error(self.header(b"accept"))
        pretty = wants_pretty(self.query.get("pretty"), self.header(b"user-agent"), output)
        body = encode(errors.status_body(error), output, pretty=pretty)
        more = []
        if error.retry_after is not None:
            more.append((b"retry-after", str(int(error.retry_after)).encode()))
        await self.answer(error.status.code, body, output.media_type, more)


class LargeAnswer:
    """A large answer on its way to a client. The transport would copy all of it."""

    def __init__(self, request: Request, body: bytes) -> None:
        self._connection = request.scope["leaseboard.connection"]
        self._send = request.send
        self._body = body

    async def send(self) -> None:
        """Send it as the client reads it."""
        size = len(self._body)
        for start in range(0, size, PIECE_BYTES):
            if self._connection.is_full:
                await self._connection.room(self, (self._body,))
            piece, more = self._body[start : start + PIECE_BYTES], start + PIECE_BYTES < size
            await self._send({"type": "http.response.body", "body": piece, "more_body": more})

    def cut(self) -> None:
        self._body = b""
        self._connection.cut()

    def give_up(self) -> bool:
        self.cut()
        return False


def _usual_headers(audit: bytes, content_type: str) -> Headers:
    """`audit` is the Audit-ID of the request, if any."""
    return [
        (b"audit-id", audit or _new_id().encode()),
        (b"cache-control", b"no-cache, private"),
        (b"content-type", content_type.encode("latin-1")),
    ]


def _new_id() -> str:
    """A random UUID (version 4); the uuid module is slower."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def _compressed(make: Callable[[], bytes], content_type: str) -> tuple[bytes, str, Headers]:
    body = make()
    if len(body) < GZIP_FROM:
        return body, content_type, []
    return gzip.compress(body, 1), content_type, GZIPPED


def warning_headers(texts: Iterable[str]) -> list[bytes]:
    """The values of the Warning headers; from 4096 characters in all, each is cut to 256.

    Source: apiserver/pkg/endpoints/filters/warning.go.
    """
    shown = [text for text in texts if text and not _CONTROL.search(text)]
    if sum(map(len, shown)) <= _ALL_WARNINGS:
        return [_warning(text) for text in shown]
    found: list[bytes] = []
    written = 0
    for text in shown:
        if written >= _ALL_WARNINGS:
            break
        found.append(_warning(text[:_ONE_WARNING]))
        written += min(len(text), _ONE_WARNING)
    return found


def _warning(text: str) -> bytes:
    """RFC 7234 warn-code 299 from an unnamed agent, as net.NewWarningHeader writes it."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'.encode()


_VERBS = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_OBJECT_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_NAMESPACE_SUBRESOURCES = {"status", "finalize"}


class BadPath(ApiError):
    """A path without a RequestInfo; the answer is a 500 in plain text."""


class RequestTarget(msgspec.Struct, frozen=True):
    """Where a request goes: a collection (no name) or an object, by a /watch/ path or not."""

    resource: Resource
    namespace: str
    name: str
    watch: bool
    subresource: str = ""


def access_of(request: Request) -> Access | None:
    """The access to authorize, or None for a path that is no resource. Raises BadPath."""
    parts = request.parts
    if len(parts) < 3 or parts[0] not in ("api", "apis"):
        return None
    group = ""
    rest = parts[1:]
    if parts[0] == "apis":
        if len(rest) < 3:
            return None
        group, rest = rest[0], rest[1:]
    rest = rest[1:]
    verb = _VERBS.get(request.method, "")
    by_path = rest[0] in ("watch", "proxy")
    if by_path:
        if len(rest) < 2:
            raise BadPath(errors.failure(500, "", _no_kind(request)).status)
        verb, rest = rest[0], rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 and not by_path else ""
    if not name and verb == "get":
        verb, name = _collection_verb(request)
    elif not name and verb == "delete":
        verb = "deletecollection"
    return Access(verb, group, rest[0], namespace, name, subresource)


def _no_kind(request: Request) -> str:
    reason = f"unable to determine kind and namespace from url, {request.url}"
    return f'Internal Server Error: "{request.url}": failed to create RequestInfo: {reason}'


def _collection_verb(request: Request) -> tuple[str, str]:
    """list or watch, and the name that a field selector asks for."""
    name = ""
    try:
        name = exact_name(parse_fields(request.query.text("fieldSelector"))) or ""
    except SelectorError:
        return "list", ""
    if name in (".", "..") or "/" in name or "%" in name:
        name = ""
    return ("watch" if request.query.flag("watch") else "list"), name


def place_of(request: Request, resource: Resource) -> RequestTarget | None:
    """The target of a path in the resource, or None for a path that the resource does not have."""
    parts = request.parts[3 if resource.group else 2 :]
    watch = bool(parts) and parts[0] == "watch"
    if watch:
        parts = parts[1:]
    if resource.is_review:
        where = ["namespaces", *parts[1:2]] if resource.namespaced else []
        known = not watch and parts == [*where, resource.plural] and "" not in parts
        return RequestTarget(resource, "".join(where[1:]), "", watch) if known else None
    subresource = ""
    length = 5 if resource.namespaced else 3
    if not watch and len(parts) == length and parts[-1] in resource.subresources:
        subresource = parts.pop()
    if not resource.namespaced:
        if parts[:1] != [resource.plural] or len(parts) > 2 or "" in parts:
            return None
        return RequestTarget(resource, "", "".join(parts[1:]), watch, subresource)
    if parts == [resource.plural]:
        return RequestTarget(resource, "", "", watch)
    if len(parts) not in (3, 4) or "" in parts:
        return None
    if parts[0] != "namespaces" or parts[2] != resource.plural:
        return None
    return RequestTarget(resource, parts[1], "".join(parts[3:]), watch, subresource)


def verbs_of_subresource(name: str) -> tuple[str, ...]:
    return ("update",) if name == "finalize" else ("get", "patch", "update")


def allows_method(place: RequestTarget, method: str) -> bool:
    if place.watch:
        verb = "watch" if method == "GET" else None
    elif place.subresource:
        verb = _OBJECT_VERBS.get(method)
        return verb in verbs_of_subresource(place.subresource)
    elif place.name:
        verb = _OBJECT_VERBS.get(method)
    elif place.resource.namespaced and not place.namespace:
        verb = "list" if method == "GET" else None
    else:
        verb = _COLLECTION_VERBS.get(method)
    return verb in place.resource.verbs
