"""What is known of a Lease when a change is judged."""

from __future__ import annotations

from datetime import datetime

import msgspec

from leases.domain.kind import Kind
from leases.domain.lease import Lease
from leases.domain.phase import Phase, counted_holder
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
    phase_since: datetime = NOON
    cadence_seconds: float | None = None
    renewals_seen: int = 0
    named: bool = True

    @property
    def renewed_at(self) -> datetime:
        return self.observed_at

    @property
    def holder(self) -> str | None:
        return counted_holder(self.lease, self.kind, named=self.named)

    @property
    def lasts_seconds(self) -> int | None:
        spec = self.lease.spec
        return None if spec.renew_time is None else spec.lease_duration_seconds
