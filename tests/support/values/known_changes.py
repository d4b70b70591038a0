"""What is known of a Lease when a change is judged."""

from __future__ import annotations

from datetime import datetime

import msgspec

from leases.domain.kind import Kind
from leases.domain.lease import Lease
from leases.domain.phase import Phase
from tests.support.values.leases import NOON


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A Lease last seen at noon."""

    lease: Lease
    kind: Kind = Kind.ELECTION
    phase: Phase = Phase.HELD
    observed_at: datetime = NOON
    gap_since: datetime | None = None
    settled: bool = True
    rewritten: str = ""
    skew_seconds: float | None = None

    @property
    def holder(self) -> str | None:
        return self.lease.holder
