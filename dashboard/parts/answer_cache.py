"""Cache answers that are expensive to make, for any number of threads that ask."""

import time
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

from dashboard.access.drawing_gate import drawing_gate

FRESH = 0.2  # seconds that an answer is kept at least
COST = 10.0  # and so many times as long as it took: asking keeps a tenth of a core busy at most
MAX_ANSWERS = 32
T = TypeVar("T")


class AnswerCache(Generic[T]):
    """Keep the `most` answers that were asked for last, each `fresh` seconds and at least `cost`
    times as long as it took to make, and no longer once another is asked for: they may be large.
    One thread makes an answer; others that want it wait.
    """

    def __init__(
        self, *, fresh: float = FRESH, cost: float = COST, most: int = MAX_ANSWERS
    ) -> None:
        self._fresh, self._cost, self._most = fresh, cost, most
        self._answers: dict[Hashable, _Answer[T]] = {}
        self._choosing = Lock()  # never held while anything else is waited for

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        with self._choosing:
            now = time.monotonic()
            self._answers = {one: kept for one, kept in self._answers.items() if now < kept.until}
            answer = self._answers.pop(key) if key in self._answers else _Answer()
            self._answers[key] = answer
            if len(self._answers) > self._most:
                del self._answers[next(iter(self._answers))]
        if not answer.lock.acquire(blocking=False):
            with drawing_gate.waiting():  # the thread that makes it may wait for the gate
                answer.lock.acquire()
        try:
            if answer.made is None:
                begun = time.monotonic()
                answer.made = (make(),)
                ended = time.monotonic()
                answer.until = ended + max(self._fresh, self._cost * (ended - begun))
            return answer.made[0]
        finally:
            answer.lock.release()


class _Answer(Generic[T]):
    """`lock` is held by the thread that makes the answer or reads it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.until = float("inf")  # while it is made
        self.made: tuple[T] | None = None
