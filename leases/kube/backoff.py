"""How long to wait before the next try.

Source: k8s.io/client-go/tools/cache/reflector.go: 800 ms, doubled up to 30 s, jitter of up to once
the delay again.
"""

from __future__ import annotations

from collections.abc import Callable
from random import random

REFUSED_SECONDS = 15.0  # credentials and rights change by hand, not by waiting


class Backoff:
    """Delays in seconds that double up to a limit, each lengthened by a random part of itself."""

    def __init__(
        self,
        *,
        first: float = 0.8,
        limit: float = 30.0,
        refused: float = REFUSED_SECONDS,
        jitter: Callable[[], float] = random,
    ) -> None:
        self._first = first
        self._limit = limit
        self._refused = refused
        self._jitter = jitter
        self._next = first

    def delay(self, *, at_least: float = 0.0, refused: bool = False) -> float:
        """The next delay: no shorter than the server asked for, patient when we were refused."""
        base, self._next = self._next, min(self._next * 2, self._limit)
        delay = min(base * (1 + self._jitter()), self._limit)
        return max(delay, at_least, self._refused if refused else 0.0)

    def reset(self) -> None:
        """Things work: begin with the short delay again."""
        self._next = self._first
