"""A renewal known by its bytes, so that what only says again what was said need not be decoded.

Beside the time in its managedFields, which nothing reads, a renewal changes a Lease's
resourceVersion and renewTime, each in its place. All else of the line of an event stays to the
byte, since the API server writes keys in one order (the Go types' of k8s.io/api): its mark.
"""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime

import msgspec

from leases.domain.lease import MAX_VERSION_DIGITS
from leases.wire.watch_decoding import read_event
from leases.wire.watch_events import Applied, Renewed, WatchEvent

# Where in a line a resourceVersion starts and ends, and the two times start.
Layout = tuple[int, int, int, int]

MAX_LAYOUTS = 4096
_VERSION = b'"resourceVersion":"'
# Text in JSON escapes its quotes, and labels hold no lists or objects: these can be but keys.
_FIELDS = b'"managedFields":['
_SPEC = b'"spec":{'
_TIME = b'"time":"'
_TIME_SIZE = len("2026-11-20T12:04:23Z")
_RENEWED = b'"renewTime":"'
_RENEWED_SIZE = len("2026-11-20T12:04:23.000001")  # the Z behind it is a part of the mark
_read_time = msgspec.json.Decoder(datetime).decode


class Reader:
    """Reads the lines of one watch; `known` are the marks of which a renewal need not be decoded.

    Lines of one length mostly have one layout: it is tried first. A wrong one leaves a part of
    what a mark holds out of place, and so finds nothing.
    """

    def __init__(self, known: Container[int]) -> None:
        self._known = known
        self._layouts: dict[int, Layout] = {}  # by the length of a line

    def read(self, line: bytes) -> WatchEvent:
        """What one line of a watch says. Raises what read_event raises."""
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
    """Where what changes stands; None where something of it is missing."""
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
    return hash(
        (
            line[:starts],
            line[ends:written],
            line[written + _TIME_SIZE : renewed],
            line[renewed + _RENEWED_SIZE :],
        )
    )


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
    """The same with its mark, if what that leaves out is what the decoder read."""
    if type(event) is not Applied:
        return event
    renewed = _renewed(line, layout, fingerprint)
    lease = event.lease
    if (
        type(renewed) is Renewed
        and renewed.renew_time == lease.spec.renew_time
        and renewed.resource_version == lease.resource_version
    ):
        return Applied(lease, fingerprint)
    return event
