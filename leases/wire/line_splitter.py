"""Split chunks of bytes into lines. A chunk may end anywhere, even inside a character."""

from __future__ import annotations

# More than twice the largest object that etcd stores by default, for JSON escapes.
MAX_LINE = 8 * 1024 * 1024


class LineLengthError(ValueError):
    """A line is longer than any Kubernetes object can be."""


class LineCutter:
    """Splits a stream at its newlines, and skips empty lines.

    It keeps the rest after the last newline. At the end of the stream the rest is a truncated
    event, and is dropped.
    """

    def __init__(self, longest: int = MAX_LINE) -> None:
        self._longest = longest
        self._pending: list[bytes] = []
        self._pending_size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that this chunk completes. Raises LineLengthError."""
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
