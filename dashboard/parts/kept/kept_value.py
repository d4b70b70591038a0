"""A value that costs: made again when it is too old, by one thread at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from dashboard.access.page_gate import page_gate

FRESH = 0.2  # seconds that a value is kept at least
COST = 10.0  # and so many times as long as it took: asking keeps a tenth of a core busy at most
T = TypeVar("T")


class KeptValue(Generic[T]):
    """Any thread may ask; those that come while it is made wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until = float("-inf")
        self._value: T | None = None

    def get(self, make: Callable[[], T]) -> T:
        if not self._lock.acquire(blocking=False):
            with page_gate.waiting():  # who makes it may wait for the gate
                self._lock.acquire()
        try:
            begun = time.monotonic()
            if self._value is None or begun >= self._until:
                self._value = make()
                ended = time.monotonic()
                self._until = ended + max(FRESH, COST * (ended - begun))
            return self._value
        finally:
            self._lock.release()
