"""Count the open connections of one port, and choose which one to close first."""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol

from leases.listener.limits import Limits


class Cuttable(Protocol):
    """An open connection."""

    def cut(self) -> None:
        """Close the connection at once."""


class Connections:
    """The connections of one port.

    A connection waits while it is idle or its request is incomplete. If there are too many, the one
    that has waited longest is closed. Answers in progress and WebSockets are never closed for this.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.answering: set[Cuttable] = set()
        self.sockets: set[Cuttable] = set()
        self._waiting: OrderedDict[Cuttable, None] = OrderedDict()
        self._large: OrderedDict[Cuttable, None] = OrderedDict()
        self.cut = 0  # connections closed to make room

    def __len__(self) -> int:
        return len(self._waiting) + len(self.answering) + len(self.sockets)

    def begin(self, one: Cuttable) -> None:
        """The connection is new, or waits for its next request."""
        self.answering.discard(one)
        self._waiting[one] = None
        self._waiting.move_to_end(one)
        if len(self._waiting) > self.limits.waiting:
            self.make_room()

    def answer(self, one: Cuttable) -> None:
        """The connection's request is complete."""
        self._waiting.pop(one, None)
        self._large.pop(one, None)
        self.answering.add(one)

    def grow_large(self, one: Cuttable) -> None:
        """The connection's incomplete request uses much memory."""
        if one not in self._large:
            self._large[one] = None
            if len(self._large) > self.limits.large:
                self._drop(next(iter(self._large)))

    def upgrade(self, one: Cuttable) -> None:
        """The connection is a WebSocket from now on."""
        self.sockets.add(one)

    def end(self, one: Cuttable) -> None:
        self._waiting.pop(one, None)
        self._large.pop(one, None)
        self.answering.discard(one)
        self.sockets.discard(one)

    def has_room(self) -> bool:
        """Whether one more may come; closes the one that has waited longest if necessary."""
        return len(self) < self.limits.connections or self.make_room()

    def has_room_for_socket(self) -> bool:
        return len(self.sockets) < self.limits.sockets

    def make_room(self) -> bool:
        """Close the connection that has waited longest; False if none waits."""
        if not self._waiting:
            return False
        self._drop(next(iter(self._waiting)))
        return True

    def _drop(self, one: Cuttable) -> None:
        self.end(one)
        self.cut += 1
        one.cut()
