"""One HTTP request and its answer over ASGI: headers, query parameters, the bounded body."""

from __future__ import annotations

import asyncio
import gzip
import os
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from leases.apiserver.auth.tokens import User
from leases.apiserver.errors import BODY_LIMIT, bad_request, status_body, timed_out, too_large
from leases.apiserver.http.negotiation import Output, encode, negotiate_error, wants_pretty
from leases.apiserver.http.protocol import LATE
from leases.wire.go_numbers import parse_int
from leases.wire.status import ApiError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

TEXT = "text/plain; charset=utf-8"
GZIP_FROM = 128 * 1024
_ALL_WARNINGS, _ONE_WARNING = 4096, 256
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_BAD_ESCAPE = re.compile(rb"%(?![0-9a-fA-F]{2})")
_BAD_PAIR = re.compile(r";|%(?![0-9a-fA-F]{2})")
_DRAIN_LIMIT = 64 * 1024 * 1024


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
            raise bad_request(str(error)) from None


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
                raise timed_out()
            if message["type"] == "http.disconnect":
                raise ConnectionResetError("the client went away while sending")
            size += len(message["body"])
            if size <= BODY_LIMIT:
                parts.append(message["body"])
            more = message.get("more_body", False)
        self._hang_up = more
        if size > BODY_LIMIT:
            raise too_large()
        return parts[0] if len(parts) == 1 else b"".join(parts)

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
        headers = self.headers(content_type) + (more or [])
        if len(body) >= GZIP_FROM and _takes_gzip(self.header(b"accept-encoding")):
            body = await asyncio.to_thread(gzip.compress, body, 1)
            headers += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
        headers.append((b"content-length", str(len(body)).encode()))
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})

    async def answer_value(self, status: int, value: Any, output: Output) -> None:
        pretty = wants_pretty(self.query.get("pretty"), self.header(b"user-agent"), output)
        await self.answer(status, encode(value, output, pretty=pretty), output.media_type)

    async def answer_text(self, status: int, text: str, more: Headers | None = None) -> None:
        nosniff = (b"x-content-type-options", b"nosniff")
        await self.answer(status, text.encode(), TEXT, [nosniff, *(more or [])])

    async def answer_error(self, error: ApiError) -> None:
        output = negotiate_error(self.header(b"accept"))
        pretty = wants_pretty(self.query.get("pretty"), self.header(b"user-agent"), output)
        body = encode(status_body(error), output, pretty=pretty)
        more = []
        if error.retry_after is not None:
            more.append((b"retry-after", str(int(error.retry_after)).encode()))
        await self.answer(error.status.code, body, output.media_type, more)


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


def _takes_gzip(header: str) -> bool:
    return any(part.strip() == "gzip" for part in header.split(","))


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
