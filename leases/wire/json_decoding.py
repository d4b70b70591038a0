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


MAX_DEPTH = 100  # of an object that is read whole; a Lease has 10


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


def read_document(body: bytes) -> dict[str, Any]:
    """An object as JSON has it, with every field. Raises Undecodable, also for one so deep that
    code which descends into it would fail.
    """
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


_read_object = decoder(dict[str, Any])
