"""Chunks in, complete lines out. No sockets: a chunk may end anywhere, also inside a character."""

from __future__ import annotations

# Twice what etcd can store of one object by default, and then some for JSON's escapes.
MAX_LINE = 8 * 1024 * 1024


class LineLengthError(ValueError):
    """A line went on for longer than any Kubernetes object can be."""


class LineCutter:
    """Cuts a stream of bytes at its newlines. Empty lines are left out.

    What follows the last newline waits for its end; at the end of a stream it is an event that
    was cut off, and is dropped with the cutter.
    """

    def __init__(self, longest: int = MAX_LINE) -> None:
        self._longest = longest
        self._pending: list[bytes] = []
        self._pending_size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes. Raises LineLengthError."""
        *lines, rest = chunk.split(b"\n")
        if lines:
            if self._pending:
                lines[0] = b"".join((*self._pending, lines[0]))
            self._pending, self._pending_size = [], 0
        if rest:
            self._pending.append(rest)
            self._pending_size += len(rest)
        self._check_length(lines)
        return lines if all(lines) else [line for line in lines if line]

    def _check_length(self, lines: list[bytes]) -> None:
        longest = max(map(len, lines), default=0)
        if max(longest, self._pending_size) > self._longest:
            raise LineLengthError(f"A line of the stream is longer than {self._longest} bytes.")
