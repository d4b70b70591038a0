"""The changes that history remembers, and how two sights of one Lease become them.

The words and their conditions are those of README's "Changes".
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from leases.domain.kind import Kind


class ChangeType(StrEnum):
    """What happened. The value is the word in JSON, CSS, URLs and on the screen."""

    CREATED = "created"
    ACQUIRED = "acquired"
    RELEASED = "released"
    TAKEN_OVER = "taken_over"
    REPLACED = "replaced"
    EXPIRED = "expired"
    RECOVERED = "recovered"
    RESTARTED = "restarted"
    RECONFIGURED = "reconfigured"
    DELETED = "deleted"


class Change(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One thing worth remembering. Field names are the contract of the JSON and CSV exports."""

    cluster: str
    namespace: str
    name: str
    uid: str
    kind: Kind
    change: ChangeType
    at: datetime
    observed_at: datetime
    holder: str | None = None
    previous_holder: str | None = None
    resource_version: str = ""
    transitions: int | None = None
    missed: int = 0
    inferred: bool = False
    inferred_since: datetime | None = None
    gap_seconds: float | None = None
    fields: tuple[str, ...] = ()
