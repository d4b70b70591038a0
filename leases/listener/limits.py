"""How much a port takes from its clients, and how long it waits for them."""

from __future__ import annotations

from dataclasses import dataclass, replace

KIB, MIB = 1024, 1024 * 1024
RESERVED_FILES = 256  # for the database, static files and the watches


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Sizes are in bytes, times in seconds."""

    head_bytes: int
    head_seconds: float
    body_bytes: int | None  # None: the app reads the body, and refuses it in its own words
    body_seconds: float
    stall_seconds: float  # for which a client may leave an answer unread
    connections: int  # in all
    waiting: int  # of them without a request that is being answered; the oldest are cut first
    sockets: int  # WebSockets
    pipelined: int  # requests that one connection sends before it has the answer to the first
    read_bytes: int = 256 * KIB  # taken from a connection at once
    # An unfinished request of more than `large_bytes` is large. The oldest is cut when there are
    # more than `large`, so that many unfinished requests cannot fill the memory.
    large_bytes: int = 16 * KIB
    large: int = 16

    def within(self, files: int) -> Limits:
        """The same for a process that may have so many open files."""
        connections = max(16, min(self.connections, files - RESERVED_FILES))
        return replace(
            self,
            connections=connections,
            waiting=min(self.waiting, max(8, connections // 2)),
            sockets=min(self.sockets, max(8, connections * 3 // 4)),
        )
