"""HTTP on one connection of the Lease API: limits of size and time, unknown methods, and a way for
a handler to drop the connection.

The limits are those of kube-apiserver: pkg/server/secure_serving.go, and its request timeout.
"""

from __future__ import annotations

import asyncio
import re
import socket
import struct

import httptools

from leases.listener.forced_close import ClosingTransport
from leases.listener.limits import KIB, MIB, Limits
from leases.listener.protocol import LimitedProtocol

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

    def wrap(self, transport: asyncio.BaseTransport) -> Joined:
        self.joined = Joined(transport)
        return self.joined

    def on_response_complete(self) -> None:
        self.joined.flush()  # an answer without a body
        super().on_response_complete()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["leaseboard.cut"] = self.cut  # type: ignore[typeddict-unknown-key]

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
