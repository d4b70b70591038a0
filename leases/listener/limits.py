"""The limits of a port: sizes, counts and times."""

from __future__ import annotations

import resource
from dataclasses import dataclass, replace

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
    read_bytes: int = 256 * KIB  # per read
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
