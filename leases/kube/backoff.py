"""The delay before the next try.

Source: k8s.io/client-go/tools/cache/reflector.go: 800 ms, doubled, plus up to 100 % jitter.
"""

from collections.abc import Callable
from random import random

LIMIT = 10.0  # client-go waits up to 30 s, but nobody watches it during an incident
REFUSED_SECONDS = 15.0  # only a person can fix credentials and rights


class Backoff:
    """Delays in seconds that double up to a limit, each with random jitter."""

    def __init__(
        self,
        *,
        first: float = 0.8,
        limit: float = LIMIT,
        refused: float = REFUSED_SECONDS,
        jitter: Callable[[], float] = random,
    ) -> None:
        self._first = first
        self._limit = limit
        self._refused = refused
        self._jitter = jitter
        self._next = first
        self._shortened = False

    def delay(self, *, at_least: float = 0.0, refused: bool = False, gone: bool = False) -> float:
        """Return the next delay: `at_least` if the server asked for it, longer if it refused us.

        A 410 Gone says that the server is back. It shortens the delay once, until the next success:
        meanwhile changes can only be inferred from the list that follows.
        """
        if self._next == self._first:
            self._shortened = False
        if gone and not self._shortened:
            self._next, self._shortened = self._first, True
        base, self._next = self._next, min(self._next * 2, self._limit)
        delay = min(base * (1 + self._jitter()), self._limit)
        return max(delay, at_least, self._refused if refused else 0.0)

    def reset(self) -> None:
        """Success: start again with the short delay."""
        self._next = self._first
