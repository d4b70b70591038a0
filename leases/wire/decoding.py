"""JSON from a cluster -> values. Raises nothing but Undecodable.

A server may tell a time that Python cannot hold, see `leases.wire.microtime`. Such a time becomes
the first or the last moment of the calendar; any other text that is no time is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from leases.wire.microtime import nearest_moment

_TIMES = frozenset(
    {
        "acquireTime", "renewTime", "pingTime", "creationTimestamp", "deletionTimestamp",
        "firstTimestamp", "lastTimestamp", "eventTime", "lastObservedTime",
    }
)  # fmt: skip
# All that msgspec raises: RecursionError for deep JSON, ValueError for bytes that are not UTF-8.
FAILURES = (msgspec.MsgspecError, ValueError, OverflowError, RecursionError)


class Undecodable(ValueError):
    """Bytes that are not what they should be; the text says where, and nothing of the content."""


def decoder(shape: Any) -> Callable[[bytes], Any]:
    """A function that reads bytes as `shape`, a type, or raises Undecodable."""
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


def _bound_times(document: Any) -> None:
    """Have every time within the calendar. A document may be as deep as the interpreter's stack."""
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
