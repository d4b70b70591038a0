"""Cut chunks of bytes into lines, and skip the lines that only repeat a known Lease.

A renewal changes resourceVersion, renewTime, and a time in managedFields, which nothing reads; each
has a fixed place. All other bytes of the line stay the same, because the API server writes keys in
one order (that of the Go types in k8s.io/api). Their hash is the fingerprint.
"""

from collections.abc import Container
from datetime import datetime

import msgspec

from leases.domain.lease import MAX_VERSION_DIGITS
from leases.wire.watch_decoding import Applied, Renewed, WatchEvent, read_event

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


# Where a line has its resourceVersion (start, end), and where its two times start.
Layout = tuple[int, int, int, int]

MAX_LAYOUTS = 4096
_VERSION = b'"resourceVersion":"'
# JSON escapes quotes in texts, and labels hold no lists or objects: these can only be keys.
_FIELDS = b'"managedFields":['
_SPEC = b'"spec":{'
_TIME = b'"time":"'
_TIME_SIZE = len("2026-11-20T12:04:23Z")
_RENEWED = b'"renewTime":"'
_RENEWED_SIZE = len("2026-11-20T12:04:23.000001")  # the Z after it is part of the fingerprint
_SMALL = 2**60 - 1  # Python's larger numbers take more memory
_read_time = msgspec.json.Decoder(datetime).decode


class Reader:
    """Reads the lines of one watch; renewals with a fingerprint in `known` are not decoded.

    Lines of one length usually have one layout, so that is tried first. A wrong layout produces an
    unknown fingerprint.
    """

    def __init__(self, known: Container[int]) -> None:
        self._known = known
        self._layouts: dict[int, Layout] = {}  # length of a line -> layout

    def read(self, line: bytes) -> WatchEvent:
        """Read one line of a watch. Raises what read_event raises."""
        layout = self._layouts.get(len(line))
        if layout is not None and (fingerprint := _fingerprint(line, layout)) in self._known:
            return _renewed(line, layout, fingerprint)
        layout = _layout(line)
        if layout is None:
            return read_event(line)
        if len(self._layouts) >= MAX_LAYOUTS:
            self._layouts.clear()
        self._layouts[len(line)] = layout
        fingerprint = _fingerprint(line, layout)
        if fingerprint in self._known:
            return _renewed(line, layout, fingerprint)
        return _with_fingerprint(read_event(line), line, layout, fingerprint)


def _layout(line: bytes) -> Layout | None:
    """Find the places that change; None if one is missing."""
    starts = line.find(_VERSION) + len(_VERSION)
    ends = line.find(b'"', starts)
    fields = line.find(_FIELDS, ends)
    spec = line.rfind(_SPEC)
    written = line.find(_TIME, fields, spec) + len(_TIME)
    renewed = line.find(_RENEWED, spec) + len(_RENEWED)
    in_order = len(_VERSION) <= starts < ends < fields < written < spec < renewed
    if (
        in_order
        and ends - starts <= MAX_VERSION_DIGITS
        and line[renewed + _RENEWED_SIZE :][:1] == b"Z"
    ):
        return starts, ends, written, renewed
    return None


def _fingerprint(line: bytes, layout: Layout) -> int:
    starts, ends, written, renewed = layout
    parts = (
        line[:starts],
        line[ends:written],
        line[written + _TIME_SIZE : renewed],
        line[renewed + _RENEWED_SIZE :],
    )
    return hash(parts) & _SMALL


def _renewed(line: bytes, layout: Layout, fingerprint: int) -> WatchEvent:
    starts, ends, _, renewed = layout
    try:
        claimed = _read_time(line[renewed - 1 : renewed + _RENEWED_SIZE + 2])
        return Renewed(fingerprint, int(line[starts:ends]), claimed, line)
    except (ValueError, msgspec.DecodeError):
        return read_event(line)


def _with_fingerprint(
    event: WatchEvent, line: bytes, layout: Layout, fingerprint: int
) -> WatchEvent:
    """Add the fingerprint, if reading by layout gives what the decoder read."""
    if type(event) is not Applied:
        return event
    renewed = _renewed(line, layout, fingerprint)
    lease = event.lease
    if (
        type(renewed) is Renewed
        and renewed.renew_time == lease.spec.renew_time
        and renewed.resource_version == lease.resource_version
    ):
        return Applied(lease, fingerprint, line)
    return event
