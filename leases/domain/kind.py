"""What a Lease is for, and the reason why we think so."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What a Lease is for. The value is the word at every layer."""

    ELECTION = "election"
    HEARTBEAT = "heartbeat"
    IDENTITY = "identity"
    LOCK = "lock"
    UNKNOWN = "unknown"
