"""A dict for very many Leases that never blocks the event loop when it grows."""

from collections.abc import Iterator
from typing import Generic, TypeVar

from leases.domain.lease import ObjectName

PARTS = 64  # a power of two

Value = TypeVar("Value")


class SplitDict(Generic[Value]):
    """A dict in many small parts.

    A growing dict copies itself: at 90,000 names that blocks the event loop for 5 ms or more.
    """

    def __init__(self) -> None:
        self._parts: list[dict[ObjectName, Value]] = [{} for _ in range(PARTS)]
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Value]:
        """Iterate over the values, in no order."""
        for part in self._parts:
            yield from part.values()

    def __setitem__(self, key: ObjectName, value: Value) -> None:
        part = self._parts[hash(key) % PARTS]
        before = len(part)
        part[key] = value
        self._length += len(part) - before

    def get(self, key: ObjectName) -> Value | None:
        return self._parts[hash(key) % PARTS].get(key)

    def pop(self, key: ObjectName) -> Value:
        value = self._parts[hash(key) % PARTS].pop(key)
        self._length -= 1
        return value
