"""Elections: candidates, versions, and what happens if the holder dies.

The rules are kube-apiserver's: which candidates count and who is best
(pkg/controlplane/controller/leaderelection/election.go and leaderelection_controller.go). A holder
stops renewing once preferredHolder is set (client-go leaderelection.go, tryCoordinatedRenew).

client-go (leaderelection.go): a contender checks every retryPeriod, stretched by up to
JitterFactor. It counts the duration from when it first saw the last renewal, and tries at its next
check after that. The holder renews every retryPeriod, so its learned cadence is also the
contenders' retry period. kube-apiserver's coordinated election notices an expiry up to 5 s late,
then waits up to 5 s for candidates to answer (leaderelection_controller.go).
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from leases.domain.kind import Kind
from leases.domain.lease import AwareDatetime, Lease, ObjectMeta
from leases.domain.phase import KnownLease, Phase, runs_out_at, trusted_cadence
from leases.domain.steady_clock import LATEST, after, plus

_NUMBER = r"(?:0|[1-9]\d*)"
_SHAPE = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?", re.ASCII
)
Version = tuple[int, int, int, tuple[str, ...]]
Precedence = tuple[tuple[int, int, int], bool, tuple[tuple[int, int, str], ...]]


def parse_version(text: str) -> Version | None:
    """A strict semantic version, without its build metadata; None when it is none."""
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        return None
    pre = tuple(shape[4].split(".")) if shape[4] else ()
    for part in pre:
        if not part or (part.isdecimal() and len(part) > 1 and part[0] == "0"):
            return None
    if shape[5] and "" in shape[5].split("."):
        return None
    return int(shape[1]), int(shape[2]), int(shape[3]), pre


def precedence(version: Version) -> Precedence:
    """For sorting: a pre-release comes before its release, numbers before words."""
    pre = version[3]
    parts = tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in pre)
    return version[:3], not pre, parts


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


STRETCH = 2.2  # JitterFactor 1.2: a check comes after 1 to 2.2 retry periods
RETRY_SHARE = 2 / 15  # client-go's defaults: a retry period of 2 s, a duration of 15 s
RELEASED = 1  # second: client-go sets this duration where it releases a Lease
REQUEUE = 5.0  # seconds, defaultRequeueInterval
ANSWER_SECONDS = 5.0  # seconds, electionDuration


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
        return Forecast(
            outlook=outlook, earliest=runs_out, latest=after(runs_out, wait + ANSWER_SECONDS)
        )
    if outlook is not Outlook.CONTENDED:
        return Forecast(outlook=outlook, earliest=runs_out)
    cadence, duration = trusted_cadence(known), lease.spec.lease_duration_seconds
    if vacant and duration == RELEASED:
        duration = None  # it tells nothing of those who wait
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
