"""Remember when nobody wrote any Lease though the watch was open: one comparison for each read."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta

from leases.domain.cause.clue import Silence
from leases.domain.steady_clock import Jump, moved

SHORTEST = timedelta(seconds=1)
KEPT = 64
LATELY = timedelta(minutes=3)


class Silences:
    def __init__(self) -> None:
        self._recent: deque[Silence] = deque(maxlen=KEPT)
        self._since: datetime | None = None  # when the watch began to count
        self._reads = 0  # since then: a backlog comes in few reads
        self.heard: datetime | None = None  # when the newest events came

    def connected(self, now: datetime) -> None:
        """The watch is live: count anew."""
        self._since, self._reads, self.heard = now, 0, now

    def stood_still(self, since: datetime, now: datetime) -> None:
        """Our process did not run: that silence was ours."""
        for one in [one for one in self._recent if one.until > since]:
            self._recent.remove(one)
        if self.heard is not None:
            self.heard = now

    def lost(self) -> None:
        """The watch broke: no silence from now on is the cluster's."""
        self.heard = None

    def clock_jumped(self, jump: Jump) -> None:
        self._since, self.heard = moved(self._since, jump.by), moved(self.heard, jump.by)
        self._recent.clear()

    def wrote(self, now: datetime) -> None:
        """Events came with one read."""
        if self.heard is None:
            return
        if now - self.heard > SHORTEST:
            self._recent.append(self._silence(self.heard, now))
        self._reads += 1
        self.heard = now

    def lately(self, now: datetime) -> tuple[Silence, ...]:
        """Return the last ones, oldest first, and the one that goes on."""
        while self._recent and now - self._recent[0].until > LATELY:
            self._recent.popleft()
        silences = tuple(self._recent)
        if self.heard is not None and now - self.heard > SHORTEST:
            silences += (self._silence(self.heard, now),)
        return silences

    def _silence(self, since: datetime, until: datetime) -> Silence:
        watched = (since - (self._since or since)).total_seconds()
        rate = self._reads / watched if watched > 0 else 0.0
        return Silence(since, until, rate * (until - since).total_seconds())
