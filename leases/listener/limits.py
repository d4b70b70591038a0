"""The limits of a port, its open connections, and how to close one for sure."""

from __future__ import annotations

import asyncio
import resource
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

KIB, MIB = 1024, 1024 * 1024
FALLBACK_FILES = 65_536
RESERVED_FILES = 256  # kept for the database, static files and the watches


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Sizes are in bytes, times in seconds."""

    head_bytes: int
    head_seconds: float
    body_bytes: int | None  # None: the app limits the body itself
    body_seconds: float
    stall_seconds: float  # how long a client may leave an answer unread
    connections: int  # in total
    waiting: int  # connections without a request in progress; the oldest are closed first
    sockets: int  # WebSockets
    pipelined: int  # requests on one connection before the first answer
    read_bytes: int = 64 * KIB  # per read: room for more comes from the system each time
    # An incomplete request of more than `large_bytes` is large. If there are more than `large`, the
    # oldest is closed, so that incomplete requests cannot fill the memory.
    large_bytes: int = 16 * KIB
    large: int = 16

    def within(self, files: int) -> Limits:
        """Return these limits for a process with this many open files."""
        connections = max(16, min(self.connections, files - RESERVED_FILES))
        return replace(
            self,
            connections=connections,
            waiting=min(self.waiting, max(8, connections // 2)),
            sockets=min(self.sockets, max(8, connections * 3 // 4)),
        )


def allow_open_files() -> int:
    """Raise the soft limit to the hard one, as Go programs do. Returns the resulting limit.

    The usual soft limit is 1024, for old programs that use select().
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FALLBACK_FILES if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return max(FALLBACK_FILES, soft)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ValueError, OSError):  # the kernel's own limit is lower than the hard limit
        return soft
    return wanted


FLUSH_SECONDS = 5.0


class ClosingTransport:
    """A transport whose `close` waits for the client only for a while.

    It passes everything else to the wrapped transport.
    """

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._loop = asyncio.get_running_loop()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def close(self) -> None:
        if self._transport.get_write_buffer_size():
            self._loop.call_later(FLUSH_SECONDS, self._transport.abort)
        self._transport.close()

    def read_at_most(self, size: int) -> None:
        """Limit one read: a piece is parsed while everybody else waits."""
        # asyncio's own transport of a plain socket; TLS has none
        if hasattr(self._transport, "max_size"):
            self._transport.max_size = size


class Stall:
    """Calls `cut` if `end` is not called within `seconds` after `begin`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, cut: Callable[[], None]) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._seconds, cut)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Cuttable(Protocol):
    """An open connection."""

    def cut(self) -> None:
        """Close the connection at once."""


class Connections:
    """The connections of one port.

    A connection waits while it is idle or its request is incomplete. If there are too many, the one
    that has waited longest is closed. Answers in progress and WebSockets are never closed for this.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.answering: set[Cuttable] = set()
        self.sockets: set[Cuttable] = set()
        self._waiting: OrderedDict[Cuttable, None] = OrderedDict()
        self._large: OrderedDict[Cuttable, None] = OrderedDict()
        self.cut = 0  # connections closed to make room

    def __len__(self) -> int:
        return len(self._waiting) + len(self.answering) + len(self.sockets)

    def begin(self, one: Cuttable) -> None:
        """The connection is new, or waits for its next request."""
        self.answering.discard(one)
        self._waiting[one] = None
        self._waiting.move_to_end(one)
        if len(self._waiting) > self.limits.waiting:
            self.make_room()

    def answer(self, one: Cuttable) -> None:
        """The connection's request is complete."""
        self._waiting.pop(one, None)
        self._large.pop(one, None)
        self.answering.add(one)

    def grow_large(self, one: Cuttable) -> None:
        """The connection's incomplete request uses much memory."""
        if one not in self._large:
            self._large[one] = None
            if len(self._large) > self.limits.large:
                self._drop(next(iter(self._large)))

    def upgrade(self, one: Cuttable) -> None:
        """The connection is a WebSocket from now on."""
        self.sockets.add(one)

    def end(self, one: Cuttable) -> None:
        self._waiting.pop(one, None)
        self._large.pop(one, None)
        self.answering.discard(one)
        self.sockets.discard(one)

    def has_room(self) -> bool:
        """Whether one more may come; closes the one that has waited longest if necessary."""
        return len(self) < self.limits.connections or self.make_room()

    def has_room_for_socket(self) -> bool:
        return len(self.sockets) < self.limits.sockets

    def make_room(self) -> bool:
        """Close the connection that has waited longest; False if none waits."""
        if not self._waiting:
            return False
        self._drop(next(iter(self._waiting)))
        return True

    def _drop(self, one: Cuttable) -> None:
        self.end(one)
        self.cut += 1
        one.cut()


UNREAD_BYTES = 64 * MIB
SLOW_SECONDS = 1.0
CONNECTION_BYTES = 96 * KIB  # that a client who does not read takes beside the pieces it waits for


class SlowReader(Cuttable, Protocol):
    """Who must take what was written before more is written to him."""

    def give_up(self) -> bool:
        """End it, or cut it at once. Returns whether it still has to take the news of its end."""


@dataclass(frozen=True)
class Waits:
    """What waits for one client since when; `own` bytes are beside the pieces."""

    own: int
    pieces: list[bytes]
    since: float


class Unread:
    """The bytes that wait for all clients of a port who do not read: one budget for all.

    Beyond it ends who has taken nothing for the longest time; where nobody was slow for a moment
    yet, the one who would wait next. Bytes that wait for several clients count once.
    """

    def __init__(self, limit: int = UNREAD_BYTES) -> None:
        self.limit = limit
        self.bytes = 0
        self.given_up = 0
        self._waiting: dict[SlowReader, Waits] = {}  # who waits longest first
        self._leaving: dict[SlowReader, None] = {}
        self._readers: dict[int, int] = {}  # how many wait for the piece of this id

    def begin(self, reader: SlowReader, pieces: Iterable[bytes], *, more: int = 0) -> None:
        """The client must take what it has before it gets these, for which `more` bytes are kept
        beside.
        """
        waits = Waits(CONNECTION_BYTES + more, list(pieces), time.monotonic())
        self._waiting[reader] = waits
        self.bytes += waits.own
        for piece in waits.pieces:
            self._keep(piece)
        self._relieve(reader)

    def add(self, reader: SlowReader, piece: bytes) -> None:
        """One more waits for a client."""
        if reader in self._waiting:
            self._waiting[reader].pieces.append(piece)
            self._keep(piece)
            self._relieve(reader)

    def end(self, reader: SlowReader) -> None:
        """The client took something, or went."""
        self._leaving.pop(reader, None)
        if reader in self._waiting:
            waits = self._waiting.pop(reader)
            self.bytes -= waits.own
            for piece in waits.pieces:
                self._drop(piece)

    def _keep(self, piece: bytes) -> None:
        known = self._readers.get(id(piece), 0)
        self._readers[id(piece)] = known + 1
        if not known:
            self.bytes += len(piece)

    def _drop(self, piece: bytes) -> None:
        left = self._readers[id(piece)] - 1
        if left:
            self._readers[id(piece)] = left
        else:
            del self._readers[id(piece)]
            self.bytes -= len(piece)

    def _relieve(self, latest: SlowReader) -> None:
        while self.bytes > self.limit and self._waiting:
            slowest, waits = next(iter(self._waiting.items()))
            if time.monotonic() - waits.since < SLOW_SECONDS and latest in self._waiting:
                slowest = latest
            self.end(slowest)
            self.given_up += 1
            if slowest.give_up():
                self._leaving[slowest] = None
        while len(self._leaving) * CONNECTION_BYTES > self.limit:
            oldest = next(iter(self._leaving))
            del self._leaving[oldest]
            oldest.cut()
