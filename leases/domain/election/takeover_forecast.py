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
from leases.domain.phase import KnownLease, Phase, runs_out_at, trusted_cadence

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


def forecast(known: KnownLease) -> Forecast:
    """Return the forecast as of the last renewal, or as of the release of a vacant Lease."""
    lease, outlook, vacant = known.lease, _outlook(known), known.holder is None
    runs_out = runs_out_at(lease, known.observed_at)
    if vacant:
        runs_out = known.phase_since if known.phase is Phase.VACANT else None
    if runs_out is None:
        nobody_else = outlook in (Outlook.HEARTBEAT, Outlook.IDENTITY)
        return Forecast(outlook=outlook if nobody_else else Outlook.STUCK)
    if outlook is Outlook.COORDINATED:
        wait = 0.0 if vacant else REQUEUE
        return Forecast(outlook=outlook, earliest=runs_out, latest=after(runs_out, wait + ANSWER))
    if outlook is not Outlook.CONTENDED:
        return Forecast(outlook=outlook, earliest=runs_out)
    cadence, duration = trusted_cadence(known), lease.spec.lease_duration_seconds
    retry = cadence if cadence is not None else RETRY_SHARE * duration if duration else None
    looks = 1 if vacant else 2  # one check to see the last renewal, one to see the expiry
    return Forecast(
        outlook=outlook,
        earliest=runs_out,
        latest=None if retry is None else after(runs_out, looks * STRETCH * retry),
        retry_seconds=retry,
        learned=cadence is not None,
    )


def _outlook(known: KnownLease) -> Outlook:
    if known.lease.spec.strategy:
        return Outlook.COORDINATED
    return {
        Kind.ELECTION: Outlook.CONTENDED,
        Kind.HEARTBEAT: Outlook.HEARTBEAT,
        Kind.IDENTITY: Outlook.IDENTITY,
    }.get(known.kind, Outlook.LOCK)
