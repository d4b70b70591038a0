"""Coordinated election: the candidates of a Lease, who should win, and when a term must end.

The rules are kube-apiserver's: which candidates count and who is best
(pkg/controlplane/controller/leaderelection/election.go and leaderelection_controller.go). A holder
stops renewing once preferredHolder is set (client-go leaderelection.go, tryCoordinatedRenew).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from leases.domain.bounded_time import LATEST, plus
from leases.domain.election.semver import Precedence, parse_version, precedence
from leases.domain.lease import AwareDatetime, Lease, ObjectMeta

OLDEST_EMULATION_VERSION = "OldestEmulationVersion"
VALID = timedelta(minutes=30)  # leaseCandidateValidDuration: an older candidate does not count
ANSWER = timedelta(seconds=5)  # electionDuration: time for a pinged candidate to answer


class CandidateSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """coordination.k8s.io/v1beta1 LeaseCandidateSpec; v1alpha2 has the same fields."""

    lease_name: str = ""
    ping_time: AwareDatetime | None = None
    renew_time: AwareDatetime | None = None
    binary_version: str = ""
    emulation_version: str = ""
    strategy: str = ""


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """One process that stands for a Lease; its name is the identity it would use as holder."""

    metadata: ObjectMeta
    spec: CandidateSpec = CandidateSpec()

    @property
    def name(self) -> str:
        return self.metadata.name


class CandidateState(StrEnum):
    """Whether a candidate counts in an election now."""

    READY = "ready"
    ASKED = "asked"  # pinged, and may still answer
    SILENT = "silent"  # pinged, and did not answer
    OUTDATED = "outdated"  # not renewed for VALID
    INVALID = "invalid"  # its versions cannot be compared


class ElectionOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome if an election were held now; `why` is one sentence."""

    winner: str | None
    strategy: str | None
    why: str


def standing(candidate: Candidate, now: datetime) -> CandidateState:
    """Return whether a candidate counts at `now`."""
    spec = candidate.spec
    if spec.strategy == OLDEST_EMULATION_VERSION and _order(candidate) is None:
        return CandidateState.INVALID
    if spec.renew_time is None or plus(spec.renew_time, VALID) < now:
        return CandidateState.OUTDATED
    if spec.ping_time is not None and spec.renew_time < spec.ping_time:
        return CandidateState.ASKED if plus(spec.ping_time, ANSWER) > now else CandidateState.SILENT
    return CandidateState.READY


def elect(candidates: Iterable[Candidate], now: datetime) -> ElectionOutcome:
    """Return who would win if an election were held at `now`."""
    counting = [
        c for c in candidates if standing(c, now) in (CandidateState.READY, CandidateState.ASKED)
    ]
    if not counting:
        return ElectionOutcome(winner=None, strategy=None, why="No candidate counts.")
    strategies = newest_strategies(counting)
    if len(strategies) > 1:
        named = " and ".join(sorted(strategies))
        why = f"The candidates of the newest binary version disagree on the strategy: {named}."
        return ElectionOutcome(winner=None, strategy=None, why=f"{why} Nobody is elected.")
    (strategy,) = strategies
    if strategy != OLDEST_EMULATION_VERSION:
        why = f"{strategy} is not a strategy that kube-apiserver knows; another controller elects."
        return ElectionOutcome(winner=None, strategy=strategy, why=why)
    best = ranked(counting)
    return ElectionOutcome(winner=best[0].name, strategy=strategy, why=_why(best))


def end_of_term(lease: Lease) -> str | None:
    """Return the next holder if the current term must end; None while it continues."""
    preferred = lease.spec.preferred_holder
    return preferred if preferred and lease.holder and preferred != lease.holder else None


def _order(candidate: Candidate) -> tuple[Precedence, Precedence] | None:
    """Return (emulation version, binary version); None if one is invalid."""
    emulation = parse_version(candidate.spec.emulation_version)
    binary = parse_version(candidate.spec.binary_version)
    if emulation is None or binary is None:
        return None
    return precedence(emulation), precedence(binary)


def _rank(candidate: Candidate) -> tuple[tuple[Precedence, Precedence] | None, datetime, str]:
    """Sort key, best first: oldest emulation, then oldest binary, then oldest candidate."""
    created = candidate.metadata.creation_timestamp or LATEST
    return _order(candidate), created, candidate.name


def newest_strategies(candidates: Iterable[Candidate]) -> set[str]:
    """Return the strategies that candidates with the newest binary version ask for."""
    newest: Precedence | None = None
    strategies: set[str] = set()
    for candidate in candidates:
        binary = precedence(parse_version(candidate.spec.binary_version) or (0, 0, 0, ()))
        if newest is None or binary > newest:
            newest, strategies = binary, set()
        if binary == newest:
            strategies.add(candidate.spec.strategy)
    return strategies


def ranked(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates with comparable versions, best first (OldestEmulationVersion)."""
    return sorted((c for c in candidates if _order(c) is not None), key=_rank)


def _why(counting: Sequence[Candidate]) -> str:
    best = counting[0]
    if len(counting) == 1:
        return "It is the only candidate that counts."
    second, best_order, second_order = counting[1], _order(best), _order(counting[1])
    if best_order is None or second_order is None:
        return ""
    if best_order[0] != second_order[0]:
        return f"It has the oldest emulation version, {best.spec.emulation_version}."
    same = f"Emulation version {best.spec.emulation_version} is also that of {second.name}"
    if best_order[1] != second_order[1]:
        return f"{same}; its binary version, {best.spec.binary_version}, is older."
    return f"{same}, and so is the binary version; it was created first."
