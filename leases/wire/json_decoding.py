"""Decode JSON from a cluster. Raises only Undecodable.

A time that Python cannot hold becomes the first or last possible time (see
`leases.wire.microtime`); any other invalid time is an error.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from leases.wire.microtime import nearest_moment

_TIMES = frozenset(
    {
        "acquireTime", "renewTime", "pingTime", "creationTimestamp", "deletionTimestamp",
        "firstTimestamp", "lastTimestamp", "eventTime", "lastObservedTime",
        "lastTransitionTime", "startedAt", "finishedAt",
    }
)  # fmt: skip
# Everything that msgspec raises: RecursionError for deep JSON, ValueError for bad UTF-8.
FAILURES = (msgspec.MsgspecError, ValueError, OverflowError, RecursionError)


MAX_DEPTH = 100  # levels of an object that is read whole; a Lease has 10


class Undecodable(ValueError):
    """Invalid bytes. The text says where, and quotes no content."""


def decoder(shape: Any) -> Callable[[bytes], Any]:
    """Return a function that decodes bytes as `shape`, or raises Undecodable."""
    strictly = msgspec.json.Decoder(shape).decode

    def decode(body: bytes) -> Any:
        try:
            return strictly(body)
        except FAILURES:
            try:
                document = msgspec.json.decode(body)
                _bound_times(document)
                return msgspec.convert(document, shape)
            except FAILURES as error:
                raise Undecodable(str(error)) from error

    return decode


def read_document(body: bytes) -> dict[str, Any]:
    """Decode a whole object. Raises Undecodable, also if it is too deep to process safely."""
    document: dict[str, Any] = _read_object(body)
    waiting: list[tuple[Any, int]] = [(document, 1)]
    while waiting:
        one, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise Undecodable(f"it is nested deeper than {MAX_DEPTH} levels")
        if isinstance(one, dict | list):
            inner = one.values() if isinstance(one, dict) else one
            waiting += [(part, depth + 1) for part in inner]
    return document


def _bound_times(document: Any) -> None:
    """Bring every time into the range of datetime. The document may be very deep."""
    waiting = [document]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            for name, value in one.items():
                if name in _TIMES and isinstance(value, str):
                    one[name] = nearest_moment(value) or value
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


_read_object = decoder(dict[str, Any])
