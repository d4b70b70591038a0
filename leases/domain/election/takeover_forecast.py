"""Estimate when another could acquire a Lease if its holder died now.

client-go (leaderelection.go): a contender checks every retryPeriod, stretched by up to
JitterFactor. It counts the duration from when it first saw the last renewal, and tries at its next
check after that. The holder renews every retryPeriod, so its learned cadence is also the
contenders' retry period. kube-apiserver's coordinated election notices an expiry up to 5 s late,
then waits up to 5 s for candidates to answer (leaderelection_controller.go).
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from leases.domain.bounded_time import after
from leases.domain.kind import Kind
from leases.domain.lease import Lease
from leases.domain.phase import ENOUGH_RENEWALS, counted_holder, runs_out_at

STRETCH = 2.2  # JitterFactor 1.2: a check comes after 1 to 2.2 retry periods
RETRY_SHARE = 2 / 15  # client-go's defaults: a retry period of 2 s, a duration of 15 s
REQUEUE = 5.0  # seconds, defaultRequeueInterval
ANSWER = 5.0  # seconds, electionDuration


class Outlook(StrEnum):
    """What happens to a Lease whose holder dies."""

    CONTENDED = "contended"  # contenders check it themselves
    COORDINATED = "coordinated"  # the API server gives it to the best candidate
    HEARTBEAT = "heartbeat"  # nobody else takes it
    IDENTITY = "identity"  # nobody else takes it
    LOCK = "lock"  # others may take it; how often they check is unknown
    STUCK = "stuck"  # it cannot expire


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """`earliest`: when others may acquire it; `latest`: when one should have.

    None if unknown; both may be past. `retry_seconds`: the longest time between checks of a
    contender; `learned`: from the holder's renewals.
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
    """Return the forecast as of the last renewal; `vacant_since`: when a vacant Lease was
    released.
    """
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
    looks = 1 if vacant else 2  # one check to see the last renewal, one to see the expiry
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
