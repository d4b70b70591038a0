"""Answers that cost: kept for a while, so that however many ask, asking stays cheap."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class KeptAnswers(Generic[T]):
    """Each is kept `least` seconds, and `share` times as long as it took to make. Any thread may
    ask; two that ask for the same at once may both make it.
    """

    def __init__(self, *, least: float, share: float, most: int) -> None:
        self._least, self._share, self._most = least, share, most
        self._kept: OrderedDict[Hashable, tuple[float, T]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The answer to `key`, made now unless one is kept."""
        began = time.monotonic()
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and began < kept[0]:
            return kept[1]
        answer = make()
        done = time.monotonic()
        until = done + max(self._least, self._share * (done - began))
        with self._lock:
            self._kept[key] = until, answer
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return answer
