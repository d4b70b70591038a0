"""HTTP and WebSockets on one connection: uvicorn's protocols, with limits on size and time.

uvicorn has no settings for these limits with httptools, so this module overrides private parts:
`_start_asgi_task`, `_should_upgrade`, `_unset_keepalive_if_required`, `pipeline`, `cycle`, `flow`
and `parser`. pyproject.toml pins uvicorn's minor version, and tests/listener/test_uvicorn_parts.py
fails if these parts change.

Private parts of uvicorn: `frames`, `read_paused`, `writable`, `close_sent`, `scope`, `run_asgi` and
`keepalive_timeout`; see `leases.listener.protocol`.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, cast

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from leases.listener.limits import KIB, MIB, ClosingTransport, Stall
from leases.listener.server import ListeningState


def head_without_upgrade(
    method: bytes, target: bytes, headers: Iterable[tuple[bytes, bytes]]
) -> bytes:
    """Return the request's head without the offer, with the empty line after it."""
    lines = [
        b"%s: %s\r\n" % (name, _without_upgrade(value) if name == b"connection" else value)
        for name, value in headers
        if name != b"upgrade"
    ]
    return b"%s %s HTTP/1.1\r\n%s\r\n" % (method, target, b"".join(lines))


def _without_upgrade(connection: bytes) -> bytes:
    """Return a Connection header without the offer."""
    tokens = [token.strip() for token in connection.split(b",")]
    return b", ".join(token for token in tokens if token.lower() != b"upgrade")


READ_SECONDS = 1.0  # seconds for a refused client to read the answer
RAW_SHARE = 8  # allowed bytes of a chunked body per byte of content


class TooManyPipelinedError(Exception):
    """A client sends many requests without waiting for answers."""


class LimitedProtocol(HttpToolsProtocol):
    """Refuses requests that exceed `limits`.

    If they limit the body, the app gets a request only once its body is complete: an incomplete one
    uses neither a task nor a file.
    """

    def __init__(self, config: Config, server_state: ListeningState, **more: Any) -> None:
        super().__init__(config, server_state, **more)
        self.book = server_state.book
        self.limits = server_state.book.limits
        self.received = self.body_size = 0  # of the current request
        self.in_head = self.in_body = self.offers_upgrade = False
        self.begun = 0
        self.method = b""
        self.refusal: tuple[int, str] | None = None
        self.held: tuple[RequestResponseCycle, Any] | None = None
        self.limit: asyncio.TimerHandle | None = None
        self.stall = Stall(self.limits.stall_seconds)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        wrapped = self.wrap(transport)
        wrapped.read_at_most(self.limits.read_bytes)
        super().connection_made(cast("asyncio.Transport", wrapped))
        self.book.begin(self)
        self.limit = self.loop.call_later(self.limits.head_seconds, self._run_out)

    def wrap(self, transport: asyncio.BaseTransport) -> ClosingTransport:
        return ClosingTransport(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        self.stall.end()
        self.book.end(self)
        super().connection_lost(exc)
        # Break the reference cycle, or the objects stay until the next garbage collection.
        self.held = None
        if self.cycle is not None and self.cycle.more_body:
            self.cycle.body = bytearray()

    def cut(self) -> None:
        self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.stall.begin(self.cut)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.stall.end()

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= self.limits.pipelined:
            raise TooManyPipelinedError
        super().on_message_begin()
        self.in_head, self.received, self.body_size = True, 0, 0

    def on_headers_complete(self) -> None:
        if self.refusal is not None:
            return
        if self.parser.should_upgrade() and any(name == b"upgrade" for name, _ in self.headers):
            if self._should_upgrade():
                self.in_head = False
                super().on_headers_complete()
            else:
                self.offers_upgrade = True
                self.method = self.parser.get_method()
            return
        self._expect_body()
        if self._is_head_too_large() or self._is_body_too_large():
            return
        super().on_headers_complete()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.in_head:  # ignore trailers after a body
            super().on_header(name, value)

    def _expect_body(self) -> None:
        self.in_head, self.in_body = False, True
        self.begun += 1
        self._stop_clock()

    def _is_head_too_large(self) -> bool:
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self.limits.head_bytes:
            self.refusal = self.head_refusal()
        return self.refusal is not None

    def _is_body_too_large(self) -> bool:
        """Whether the body is too large, by its head or by what was received."""
        most = self.limits.body_bytes
        if most is None:
            return False
        if self.body_size == 0:
            lengths = [value for name, value in self.headers if name == b"content-length"]
            size = int(lengths[0]) if lengths and lengths[0].isdigit() else 0
        else:
            size = self.body_size
        if size > most:
            self.refusal = (413, f"A request's body may have {most // KIB} KiB at most.")
        return size > most

    def on_body(self, body: bytes) -> None:
        if self.refusal is not None:
            return
        if self.limits.body_bytes is None:
            super().on_body(body)
        else:
            self.body_size += len(body)
            if not self._is_body_too_large():
                self.cycle.body += body

    def on_message_complete(self) -> None:
        if self.offers_upgrade or self.refusal is not None:
            return
        self.in_body = False
        super().on_message_complete()
        self.book.answer(self)
        if self.held is not None and self.held[0] is self.cycle:
            (cycle, app), self.held = self.held, None
            super()._start_asgi_task(cycle, app)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if self.limits.body_bytes is None or not cycle.more_body:
            super()._start_asgi_task(cycle, app)
            return
        self.held = (cycle, app)
        if cycle.waiting_for_100_continue:
            cycle.waiting_for_100_continue = False
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.pipeline:
            self.book.begin(self)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        in_head, begun, in_body = self.in_head, self.begun, self.in_body
        self.received += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserInvalidMethodError:
            self.meet_unknown_method(data, again=self.begun != begun)
            return
        except httptools.HttpParserUpgrade as upgrade:
            if self.offers_upgrade:
                self._go_on_without_upgrade(data[upgrade.args[0] :])
                return
            if self._should_upgrade():
                self._stop_clock()
                self.handle_websocket_upgrade()
                return
        except httptools.HttpParserError:
            self.refuse(400)
            return
        if self.in_head and not in_head and not in_body and self.begun == begun:
            self.received = len(data)  # all of it belongs to this head
        if self.refusal is not None:
            self.refuse(*self.refusal)
        else:
            self._check_limits()

    def meet_unknown_method(self, data: bytes, *, again: bool) -> None:
        """`again`: this is not the first request in `data`."""
        del data, again
        self.refuse(400)

    def handle_websocket_upgrade(self) -> None:
        if not self.book.has_room_for_socket():
            self.refuse(503, "Too many live connections are open. Try again in a minute.")
            return
        self.book.end(self)
        self.stall.end()
        super().handle_websocket_upgrade()
        self.parser = cast("Any", None)  # it holds this protocol

    def _go_on_without_upgrade(self, rest: bytes) -> None:
        """Ignore an offer of a protocol that we do not speak.

        The parser would take the body for that protocol, so a new one parses the request again.
        """
        head = head_without_upgrade(self.method, self.url, self.headers)
        self.offers_upgrade = False
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(head + rest)

    def _check_limits(self) -> None:
        if not self.in_head and not self.in_body:
            self._stop_clock()
            return
        if self.transport.is_closing():
            return
        limits = self.limits
        if self.in_head and self.received > limits.head_bytes:
            self.refuse(*self.head_refusal())
        elif limits.body_bytes is not None and self.received > RAW_SHARE * limits.body_bytes:
            self.refuse(413, "A request's body has too many small pieces.")
        else:
            if self.limit is None:
                within = limits.head_seconds if self.in_head else limits.body_seconds
                self.limit = self.loop.call_later(within, self._run_out)
            if max(self.received, self.body_size) > limits.large_bytes:
                self.book.grow_large(self)

    def _stop_clock(self) -> None:
        if self.limit is not None:
            self.limit.cancel()
            self.limit = None

    def _run_out(self) -> None:
        self.limit = None
        if self.in_body:
            self.meet_slow_body()
        elif self.in_head:
            self.refuse(408, "The request's head did not come in time.")
        else:
            self.transport.close()

    def meet_slow_body(self) -> None:
        self.refuse(408, "The request's body did not come in time.")

    def head_refusal(self) -> tuple[int, str]:
        most = self.limits.head_bytes
        size = f"{most // MIB} MiB" if most >= MIB else f"{most // KIB} KiB"
        return 431, f"A request's head may have {size} at most."

    def refuse(self, code: int, text: str = "") -> None:
        """Answer an invalid or too large request, and close."""
        self._stop_clock()
        if self.is_answering():
            self.cut()  # another answer is in progress
            return
        self.held = None
        line = STATUS_LINE[code]
        body = (text + "\n").encode() if text else line.split(b" ", 1)[1].strip()
        self.transport.write(
            line + b"content-type: text/plain; charset=utf-8\r\nconnection: close\r\n"
            b"content-length: %d\r\n\r\n%s" % (len(body), body)
        )
        self.hang_up()

    def is_answering(self) -> bool:
        """Whether the app is answering a request of this connection."""
        cycle = self.cycle
        held = self.held is not None and self.held[0] is cycle
        return cycle is not None and not cycle.response_complete and not held

    def hang_up(self) -> None:
        """Let the client read the answer: closing over unread data would reset the connection."""
        self.flow.pause_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(READ_SECONDS, self.transport.abort)


MAX_FRAMES = 64  # per message: a browser sends one
READ_BYTES = 4 * KIB  # per read: hundreds of small frames would block the others
MAX_PINGS, PING_SECONDS = 20, 10.0


# An extension of ASGI: `write` takes a whole frame, which is encoded once for many sockets.
FRAMES = "leaseboard.frames"


class LimitedWebSocket(WebSocketsSansIOProtocol):
    """Buffers unread output for `stall_seconds`, and reads nothing meanwhile."""

    def __init__(self, config: Config, server_state: ListeningState, **more: Any) -> None:
        super().__init__(config, server_state, **more)
        self.book = server_state.book
        self.pings, self.pings_since = 0, self.loop.time()
        self.stall = Stall(self.book.limits.stall_seconds)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        cast("ClosingTransport", transport).read_at_most(READ_BYTES)
        self.book.upgrade(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.stall.end()
        self.book.end(self)
        super().connection_lost(exc)

    def cut(self) -> None:
        self.transport.abort()

    async def run_asgi(self) -> None:
        extensions = self.scope["extensions"]
        self.scope["extensions"] = {**extensions, FRAMES: {"write": self.write}}
        try:
            await super().run_asgi()
        finally:
            self.scope["extensions"] = extensions  # without what holds this protocol

    def write(self, frame: bytes) -> bool:
        """Write it at once. Returns False, and writes nothing, where it would wait or be late."""
        if not self.writable.is_set() or self.close_sent or self.transport.is_closing():
            return False
        self.transport.write(frame)
        return True

    def pause_writing(self) -> None:
        super().pause_writing()
        self.transport.pause_reading()
        self.stall.begin(self.cut)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.stall.end()
        if not self.read_paused:
            self.transport.resume_reading()

    async def receive(self) -> Any:
        message = await super().receive()
        if not self.writable.is_set() and not self.disconnected:
            self.transport.pause_reading()
        return message

    def handle_ping(self) -> None:
        """Browsers send no pings; programs send one in many seconds."""
        now = self.loop.time()
        if now - self.pings_since > PING_SECONDS:
            self.pings_since, self.pings = now, 0
        self.pings += 1
        if self.pings > MAX_PINGS:
            self.cut()
        else:
            super().handle_ping()

    def handle_cont(self, event: Frame) -> None:
        super().handle_cont(event)
        if len(self.frames) > MAX_FRAMES:
            self.cut()
