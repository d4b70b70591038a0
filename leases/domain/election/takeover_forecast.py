"""If the holder died now: when could another acquire the Lease? Bounds, and what they rest on.

client-go (leaderelection.go): a contender looks every retryPeriod stretched by up to JitterFactor,
counts the duration from its own last look at a renewal, and tries at its next look after that. The
holder renews every retryPeriod exactly, so its learned cadence is the contenders' retry period.
kube-apiserver's controller of coordinated elections notices up to 5 s late that a Lease has run
out, and then waits up to 5 s for candidates to answer (leaderelection_controller.go).
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from leases.domain.bounded_time import after
from leases.domain.kind import Kind
from leases.domain.lease import Lease
from leases.domain.phase import ENOUGH_RENEWALS, counted_holder, runs_out_at

STRETCH = 2.2  # JitterFactor 1.2: a look comes after 1 to 2.2 retry periods
RETRY_SHARE = 2 / 15  # client-go's defaults: a retry period of 2 s, a duration of 15 s
REQUEUE = 5.0  # seconds, defaultRequeueInterval
ANSWER = 5.0  # seconds, electionDuration


class Outlook(StrEnum):
    """What becomes of a Lease whose holder dies."""

    CONTENDED = "contended"  # contenders look at it themselves
    COORDINATED = "coordinated"  # the API server gives it to the best candidate
    HEARTBEAT = "heartbeat"  # nobody else takes it
    IDENTITY = "identity"  # nobody else takes it
    LOCK = "lock"  # others may take it, and how often they look is not known
    STUCK = "stuck"  # it cannot run out


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """`earliest` is the first moment at which others may acquire it, `latest` when one should have;
    None where that cannot be told. Both may be past.

    `retry_seconds` is how often contenders look at the most often; `learned` from the holder.
    """

    outlook: Outlook
    earliest: datetime | None = None
    latest: datetime | None = None
    retry_seconds: float | None = None
    learned: bool = False


def forecast(
    lease: Lease,
    *,
    observed_at: datetime,
    cadence_seconds: float | None,
    renewals_seen: int,
    kind: Kind,
    vacant_since: datetime | None,
    named: bool = False,
) -> Forecast:
    """The bounds as of the last renewal seen; `vacant_since` is when a vacant Lease was let go."""
    outlook = _outlook(lease, kind)
    vacant = counted_holder(lease, kind, named=named) is None
    runs_out = vacant_since if vacant else runs_out_at(lease, observed_at)
    if runs_out is None:
        return Forecast(outlook=outlook if _nobody_else(outlook) else Outlook.STUCK)
    if outlook is Outlook.COORDINATED:
        wait = 0.0 if vacant else REQUEUE
        return Forecast(outlook=outlook, earliest=runs_out, latest=after(runs_out, wait + ANSWER))
    if outlook is not Outlook.CONTENDED:
        return Forecast(outlook=outlook, earliest=runs_out)
    learned = cadence_seconds is not None and renewals_seen >= ENOUGH_RENEWALS
    duration = lease.spec.lease_duration_seconds
    retry = cadence_seconds if learned else RETRY_SHARE * duration if duration else None
    looks = 1 if vacant else 2  # one to see the last renewal, one to see that it has run out
    latest = None if retry is None else after(runs_out, looks * STRETCH * retry)
    return Forecast(
        outlook=outlook, earliest=runs_out, latest=latest, retry_seconds=retry, learned=learned
    )


def _outlook(lease: Lease, kind: Kind) -> Outlook:
    if lease.spec.strategy:
        return Outlook.COORDINATED
    if kind is Kind.ELECTION:
        return Outlook.CONTENDED
    if kind is Kind.HEARTBEAT:
        return Outlook.HEARTBEAT
    return Outlook.IDENTITY if kind is Kind.IDENTITY else Outlook.LOCK


def _nobody_else(outlook: Outlook) -> bool:
    return outlook in (Outlook.HEARTBEAT, Outlook.IDENTITY)
