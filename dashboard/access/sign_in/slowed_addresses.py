"""Addresses whose sign-ins are refused for a while, known without asking the database."""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime, timedelta
from threading import Lock

MAX_ADDRESSES = 10_000


class SlowedAddresses:
    """Written by the threads that check passwords, read by the event loop."""

    def __init__(self) -> None:
        self._until: OrderedDict[str, datetime] = OrderedDict()
        self._lock = Lock()

    def slow(self, address: str, until: datetime) -> bool:
        """Refuse this address until then; whether that is news."""
        with self._lock:
            news = self._until.pop(address, None) != until
            self._until[address] = until
            if len(self._until) > MAX_ADDRESSES:
                self._until.popitem(last=False)
        return news

    def remaining(self, address: str | None, now: datetime) -> timedelta | None:
        """How long the address is still refused; None when it is not."""
        until = self._until.get(address) if address is not None else None
        return until - now if until is not None and until > now else None


SLOWED = SlowedAddresses()
