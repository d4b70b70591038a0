"""HTTP on one connection: uvicorn's, with limits on what a client may send and on how long it may
take, methods it does not know, and a way for a handler to cut the connection.

The limits are those of kube-apiserver: pkg/server/secure_serving.go, and its request timeout.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterable
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

HEAD_LIMIT = 1024 * 1024 + 4096
HEAD_WITHIN = 32.0
BODY_WITHIN = 60.0
LATE = "leaseboard.late"


class Joined:
    """A transport that writes the head of an answer and what follows at once as one packet.

    What is no writing is that of the transport.
    """

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._loop = asyncio.get_running_loop()
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(b"HTTP/1.1 ") and not data.startswith(b"HTTP/1.1 100"):
            self._head = data
            self._loop.call_soon(self.flush)
            return
        self._transport.write(data)

    def writelines(self, pieces: Iterable[bytes]) -> None:
        """Write a whole answer."""
        self.flush()
        self._transport.write(b"".join(pieces))

    def flush(self) -> None:
        """Write a head that nothing followed."""
        if self._head:
            self.write(b"")

    def close(self) -> None:
        self.flush()
        self._transport.close()


class Protocol(HttpToolsProtocol):
    """A request that does not come to its end in time is dropped, or answered 504 when it has got
    as far as its body: then LATE in the scope is true.
    """

    head_size = 0
    in_head = False
    in_body = False
    begun = 0
    offers_upgrade = False
    method = b""
    limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast("asyncio.Transport", Joined(transport)))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.in_head, self.head_size = True, 0
        self.scope["leaseboard.cut"] = self.cut  # type: ignore[typeddict-unknown-key]

    def on_headers_complete(self) -> None:
        if any(name == b"upgrade" for name, _ in self.headers):
            self.offers_upgrade = True
            self.method = self.parser.get_method()
            return
        self._expect_body()
        super().on_headers_complete()

    def _expect_body(self) -> None:
        self.in_head, self.in_body = False, True
        self.begun += 1
        self._stop_clock()

    def on_message_complete(self) -> None:
        if self.offers_upgrade:
            return
        self.in_body = False
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        super().connection_lost(exc)

    def cut(self) -> None:
        """Drop the connection at once, with all that the client has not read yet."""
        connection = self.transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self.head_size += len(data)
        begun = self.begun
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserInvalidMethodError:
            if self.begun != begun:
                self._refuse(400)
                return
            # All methods that no route allows are answered alike: one that the parser knows
            # will do.
            self.parser = httptools.HttpRequestParser(self)
            super().data_received(b"TRACE " + data.partition(b" ")[2])
        except httptools.HttpParserUpgrade as upgrade:
            if self.offers_upgrade:
                self._go_on_without_upgrade(data[upgrade.args[0] :])
                return
        except httptools.HttpParserError:
            self._refuse(400)
            return
        self._check_limits()

    def _go_on_without_upgrade(self, rest: bytes) -> None:
        """We speak no other protocol, so what a client offers is as if it had not been said.

        The parser would take the body for the other protocol: another one reads the request again.
        """
        kept = [
            (name, _without_upgrade(value) if name == b"connection" else value)
            for name, value in self.headers
            if name != b"upgrade"
        ]
        head = b"%s %s HTTP/1.1\r\n" % (self.method, self.url)
        lines = b"".join(b"%s: %s\r\n" % pair for pair in kept)
        self.offers_upgrade = False
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(head + lines + b"\r\n" + rest)

    def _check_limits(self) -> None:
        if self.in_head and self.head_size > HEAD_LIMIT:
            self._refuse(431)
        elif not self.in_head and not self.in_body:
            self._stop_clock()
        elif self.limit is None and not self.transport.is_closing():
            within = HEAD_WITHIN if self.in_head else BODY_WITHIN
            self.limit = self.loop.call_later(within, self._run_out)

    def _stop_clock(self) -> None:
        if self.limit is not None:
            self.limit.cancel()
            self.limit = None

    def _run_out(self) -> None:
        self.limit = None
        if self.in_head or self.cycle.response_complete:
            self.transport.close()
            return
        self.scope[LATE] = True  # type: ignore[literal-required]
        self.cycle.message_event.set()

    def _refuse(self, code: int) -> None:
        """Answer what is no request in the words of Go's net/http, and hang up."""
        self._stop_clock()
        reason = STATUS_LINE[code].split(b" ", 1)[1].strip()
        self.transport.write(
            STATUS_LINE[code]
            + b"content-type: text/plain; charset=utf-8\r\nconnection: close\r\n"
            + b"content-length: %d\r\n\r\n%s" % (len(reason), reason)
        )
        self.transport.close()


def _without_upgrade(connection: bytes) -> bytes:
    """The value of a Connection header that offers nothing."""
    tokens = [token.strip() for token in connection.split(b",")]
    return b", ".join(token for token in tokens if token.lower() != b"upgrade")
