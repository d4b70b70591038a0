"""The next step of a coordinated election, from the Lease and its candidates. Pure.

Source: pkg/controlplane/controller/leaderelection/leaderelection_controller.go, electionNeeded and
reconcileElectionStep. One difference: a Lease whose holderIdentity is null counts as vacant here,
and ends the whole kube-apiserver there.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from leases.domain.bounded_time import plus
from leases.domain.election.candidates import (
    ANSWER,
    OLDEST_EMULATION_VERSION,
    VALID,
    Candidate,
    newest_strategies,
    ranked,
)
from leases.domain.lease import Lease
from leases.wire.microtime import format_microtime

# defaultLeaseDurationSeconds: the elected candidate writes its own duration when it renews.
LEASE_SECONDS = 5


class ElectedTerm(msgspec.Struct, frozen=True):
    """What an election decides; `holder` is None if another controller elects by the strategy."""

    strategy: str
    holder: str | None


class ElectionStep(msgspec.Struct, frozen=True):
    """What to do now: ping these candidates, or write this term, or nothing.

    `again`: look again after the requeue interval.
    """

    ping: tuple[Candidate, ...] = ()
    term: ElectedTerm | None = None
    again: bool = True


def is_outdated(candidate: Candidate, now: datetime, period: timedelta = VALID) -> bool:
    """Whether a candidate was last renewed before `period`; after VALID it counts no more."""
    return candidate.spec.renew_time is None or plus(candidate.spec.renew_time, period) < now


def awaits_answer(candidate: Candidate) -> bool:
    """Whether a candidate has not answered its last ping."""
    ping, renewed = candidate.spec.ping_time, candidate.spec.renew_time
    return ping is not None and renewed is not None and renewed < ping


def next_step(lease: Lease | None, candidates: Sequence[Candidate], now: datetime) -> ElectionStep:
    """Return the next step of the election of a Lease (None: it does not exist)."""
    candidates = [one for one in candidates if not is_outdated(one, now)]
    if not candidates:
        return ElectionStep(again=False)
    if not _needs_election(lease, candidates, now):
        return ElectionStep()
    silent = [one for one in candidates if is_outdated(one, now, ANSWER)]
    if ping := tuple(one for one in silent if _may_be_pinged(one, now)):
        return ElectionStep(ping=ping)
    if any(awaits_answer(one) and not _is_ping_over(one, now) for one in candidates):
        return ElectionStep()
    term = _term([one for one in candidates if one not in silent])
    return ElectionStep(term=term, again=term is not None)


def _needs_election(lease: Lease | None, candidates: Sequence[Candidate], now: datetime) -> bool:
    if lease is None or not lease.holder or is_expired(lease, now):
        return True
    # Every 15 minutes an election asks all candidates, before they become outdated.
    if any(is_outdated(one, now, VALID / 2) for one in candidates):
        return True
    term = _term(candidates)
    return term is not None and term.holder not in (None, lease.holder)


def is_expired(lease: Lease, now: datetime) -> bool:
    """Whether a Lease has expired on our own clock (isLeaseExpired)."""
    renewed, seconds = lease.spec.renew_time, lease.spec.lease_duration_seconds
    return renewed is None or seconds is None or plus(renewed, timedelta(seconds=seconds)) < now


def _may_be_pinged(candidate: Candidate, now: datetime) -> bool:
    """Ping a candidate again only if it answered the last ping."""
    return _is_ping_over(candidate, now) and not awaits_answer(candidate)


def _is_ping_over(candidate: Candidate, now: datetime) -> bool:
    ping = candidate.spec.ping_time
    return ping is None or plus(ping, ANSWER) < now


def _term(candidates: Sequence[Candidate]) -> ElectedTerm | None:
    """Return the term for which these candidates stand; None if they do not agree."""
    strategies = newest_strategies(candidates)
    if len(strategies) != 1:
        return None
    (strategy,) = strategies
    if strategy != OLDEST_EMULATION_VERSION:
        return ElectedTerm(strategy, None)
    best = ranked(candidates)
    return ElectedTerm(strategy, best[0].name) if best else None


def elected_spec(lease: Lease | None, spec: dict[str, Any], term: ElectedTerm, now: datetime) -> (
    dict[str, Any]
):  # fmt: skip
    """Return the spec with which a term begins or is prepared; `spec` is the present one.

    A vacant or expired Lease goes to the elected candidate. One that another holds only gets
    preferredHolder: its holder then stops renewing. leaseTransitions never changes.
    """
    new = spec | {"strategy": term.strategy}
    begun = {"leaseDurationSeconds": LEASE_SECONDS, "renewTime": format_microtime(now)}
    if lease is None:
        return new | begun | ({} if term.holder is None else {"holderIdentity": term.holder})
    if term.holder is None or term.holder == lease.holder:
        return new
    if lease.holder and not is_expired(lease, now):
        return new | {"preferredHolder": term.holder}
    for ended in ("acquireTime", "preferredHolder"):
        new.pop(ended, None)
    return new | begun | {"holderIdentity": term.holder}
