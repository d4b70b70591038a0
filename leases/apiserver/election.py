"""Coordinated leader election: choose the holder of a Lease among its LeaseCandidates.

Source: pkg/controlplane/controller/leaderelection/leaderelection_controller.go, electionNeeded and
reconcileElectionStep. One difference: a Lease whose holderIdentity is null counts as vacant here,
and ends the whole kube-apiserver there.

Source: pkg/controlplane/controller/leaderelection/leaderelection_controller.go and
leasecandidategc_controller.go. kube-apiserver elects one controller of several servers; here one
process serves the data, so its controller is the only one.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from leases.apiserver.codec.schema import CANDIDATE_SPEC, LEASE_SPEC
from leases.apiserver.errors import Failed
from leases.apiserver.http.options import DeleteOptions, WriteOptions
from leases.apiserver.http.request import RequestTarget
from leases.apiserver.registry.create_update import Object, Writer
from leases.apiserver.registry.delete import check_uid, delete
from leases.apiserver.registry.namespaces import Namespaces
from leases.apiserver.resources import CANDIDATES, LEASES, Resource
from leases.apiserver.storage.journal import Event, Version
from leases.apiserver.storage.store import ObjectStore
from leases.domain import election
from leases.domain.lease import Lease
from leases.domain.steady_clock import plus
from leases.wire.json_decoding import decoder
from leases.wire.microtime import format_microtime
from leases.wire.status import ApiError

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

    ping: tuple[election.Candidate, ...] = ()
    term: ElectedTerm | None = None
    again: bool = True


def is_outdated(
    candidate: election.Candidate, now: datetime, period: timedelta = election.VALID
) -> bool:
    """Whether a candidate was last renewed before `period`; after VALID it counts no more."""
    return candidate.spec.renew_time is None or plus(candidate.spec.renew_time, period) < now


def awaits_answer(candidate: election.Candidate) -> bool:
    """Whether a candidate has not answered its last ping."""
    ping, renewed = candidate.spec.ping_time, candidate.spec.renew_time
    return ping is not None and renewed is not None and renewed < ping


def next_step(
    lease: Lease | None, candidates: Sequence[election.Candidate], now: datetime
) -> ElectionStep:
    """Return the next step of the election of a Lease (None: it does not exist)."""
    candidates = [one for one in candidates if not is_outdated(one, now)]
    if not candidates:
        return ElectionStep(again=False)
    if not _needs_election(lease, candidates, now):
        return ElectionStep()
    silent = [one for one in candidates if is_outdated(one, now, election.ANSWER)]
    if ping := tuple(one for one in silent if _may_be_pinged(one, now)):
        return ElectionStep(ping=ping)
    if any(awaits_answer(one) and not _is_ping_over(one, now) for one in candidates):
        return ElectionStep()
    term = _term([one for one in candidates if one not in silent])
    return ElectionStep(term=term, again=term is not None)


def _needs_election(
    lease: Lease | None, candidates: Sequence[election.Candidate], now: datetime
) -> bool:
    if lease is None or not lease.holder or is_expired(lease, now):
        return True
    # Every 15 minutes an election asks all candidates, before they become outdated.
    if any(is_outdated(one, now, election.VALID / 2) for one in candidates):
        return True
    term = _term(candidates)
    return term is not None and term.holder not in (None, lease.holder)


def is_expired(lease: Lease, now: datetime) -> bool:
    """Whether a Lease has expired on our own clock (isLeaseExpired)."""
    renewed, seconds = lease.spec.renew_time, lease.spec.lease_duration_seconds
    return renewed is None or seconds is None or plus(renewed, timedelta(seconds=seconds)) < now


def _may_be_pinged(candidate: election.Candidate, now: datetime) -> bool:
    """Ping a candidate again only if it answered the last ping."""
    return _is_ping_over(candidate, now) and not awaits_answer(candidate)


def _is_ping_over(candidate: election.Candidate, now: datetime) -> bool:
    ping = candidate.spec.ping_time
    return ping is None or plus(ping, election.ANSWER) < now


def _term(candidates: Sequence[election.Candidate]) -> ElectedTerm | None:
    """Return the term for which these candidates stand; None if they do not agree."""
    strategies = election.newest_strategies(candidates)
    if len(strategies) != 1:
        return None
    (strategy,) = strategies
    if strategy != election.OLDEST_EMULATION_VERSION:
        return ElectedTerm(strategy, None)
    best = election.ranked(candidates)
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


logger = logging.getLogger(__name__)
MANAGER = "kube-apiserver"
REQUEUE_SECONDS = 5.0  # defaultRequeueInterval
SWEEP_SECONDS = election.VALID.total_seconds()  # LeaseCandidateGCPeriod

_FIELDS = {LEASES.plural: LEASE_SPEC.fields, CANDIDATES.plural: CANDIDATE_SPEC.fields}
LeaseKey = tuple[str, str]  # namespace, name
_candidate_of: Callable[[bytes], election.Candidate] = decoder(election.Candidate)
_lease_of: Callable[[bytes], Lease] = decoder(Lease)


def _utc_now() -> datetime:
    return datetime.now(UTC)


class ElectionController:
    """Elects the holders of the Leases that candidates stand for, in one store.

    Its state is what the store says: a restart loses only waiting times. `now` judges the times in
    objects, `monotonic` (seconds) the waiting.
    """

    def __init__(
        self,
        store: ObjectStore,
        writer: Writer,
        namespaces: Namespaces,
        failed: Failed,
        *,
        now: Callable[[], datetime] = _utc_now,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._writer = writer
        self._namespaces = namespaces
        self._failed = failed
        self._now = now
        self._monotonic = monotonic
        self._candidates: dict[LeaseKey, dict[str, election.Candidate]] = {}
        self._due: dict[LeaseKey, float] = {}
        self._sweep_at = monotonic()
        self._woken = asyncio.Event()
        self.closing = False
        self._load()

    def _load(self) -> None:
        for version in self._store.versions(CANDIDATES.plural):
            self._notice_candidate(version)

    def close(self) -> None:
        """End `run` after the step that it is taking."""
        self.closing = True
        self._woken.set()

    async def run(self) -> None:
        """Elect until `close`."""
        while not self.closing:
            self._woken.clear()
            try:
                await self.advance()
                due = min([self._sweep_at, *self._due.values()])
            except Exception as error:  # a server without a supervisor starts no task again
                self._failed("elections", error)
                due = self._monotonic() + REQUEUE_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(due - self._monotonic()):
                    await self._woken.wait()

    def notice(self, events: list[Event]) -> None:
        """Queue the Leases whose election these events may concern."""
        for event in events:
            subject = event.current or event.previous
            if subject is None:
                continue
            if event.resource == LEASES.plural:
                key = subject.namespace, subject.name
                if key in self._candidates:
                    self._queue(key)
            elif event.resource == CANDIDATES.plural:
                try:
                    self._notice_candidate(subject, deleted=event.current is None)
                except ValueError as error:
                    self._failed("elections", error)

    def _notice_candidate(self, version: Version, *, deleted: bool = False) -> None:
        candidate = _candidate_of(version.body)
        key = version.namespace, candidate.spec.lease_name
        standing = self._candidates.setdefault(key, {})
        if deleted:
            standing.pop(version.name, None)
        else:
            standing[version.name] = candidate
        if not standing:
            del self._candidates[key]
        if not awaits_answer(candidate):
            self._queue(key)

    def _queue(self, key: LeaseKey, after: float = 0.0) -> None:
        due = self._monotonic() + after
        self._due[key] = min(due, self._due.get(key, due))
        self._woken.set()

    async def advance(self) -> None:
        """Take the steps that are due now."""
        if self._monotonic() >= self._sweep_at:
            self._sweep_at = self._monotonic() + SWEEP_SECONDS
            await self._sweep()
        for key in [key for key, due in self._due.items() if due <= self._monotonic()]:
            if self.closing:
                return
            del self._due[key]
            again = True
            try:
                again = await self._reconcile(key)
            except ApiError as error:
                logger.warning("The election of Lease %s/%s waits: %s", *key, error)
                again = error.status.code in (409, 500)
            except Exception as error:
                self._failed("elections", error)
            if again:
                self._queue(key, REQUEUE_SECONDS)

    async def _reconcile(self, key: LeaseKey) -> bool:
        """Take the next step of an election; return whether to look again. Raises ApiError."""
        version = self._store.get(LEASES.plural, *key)
        lease = None if version is None else _lease_of(version.body)
        now = self._now()
        step = next_step(lease, list(self._candidates.get(key, {}).values()), now)
        for candidate in step.ping:
            await self._ping(key[0], candidate, now)
        if step.term is not None:
            await self._write(key, lease, {} if version is None else version.read(), step.term)
        return step.again

    async def _ping(self, namespace: str, candidate: election.Candidate, now: datetime) -> None:
        version = self._store.get(CANDIDATES.plural, namespace, candidate.name)
        if version is not None:
            found = version.read()
            spec = found["spec"] | {"pingTime": format_microtime(now)}
            await self._update(CANDIDATES, found, spec)

    async def _write(
        self, key: LeaseKey, lease: Lease | None, found: Object, term: ElectedTerm
    ) -> None:
        spec = elected_spec(lease, found.get("spec", {}), term, self._now())
        if lease is not None:
            await self._update(LEASES, found, spec)
            return
        namespace, name = key
        obj: Object = {"metadata": {"name": name}, "spec": _in_order(LEASES, spec)}
        await self._writer.create(LEASES, namespace, obj, MANAGER, dry_run=False, size=0)

    async def _update(self, resource: Resource, found: Object, spec: dict[str, Any]) -> None:
        """Replace the spec of an object that did not change since it was read. Raises 409."""
        if spec == found["spec"]:
            return
        meta = found["metadata"]
        place = RequestTarget(resource, meta["namespace"], meta["name"], watch=False)

        def wanted(old: Object | None) -> Object:
            check_uid(place, found, old)
            return found | {"metadata": dict(meta), "spec": _in_order(resource, spec)}

        await self._writer.update(place, wanted, WriteOptions(manager=MANAGER), size=0)

    async def _sweep(self) -> None:
        """Delete candidates that count no more and were not renewed meanwhile."""
        for version in self._store.versions(CANDIDATES.plural):
            try:
                if is_outdated(_candidate_of(version.body), self._now()):
                    options = DeleteOptions(version=str(version.revision))
                    place = version.namespace, version.name
                    await delete(self._store, CANDIDATES, *place, options)
                    await self._namespaces.finish(version.namespace)
            except ApiError as error:
                logger.info("Candidate %s is not deleted: %s", version.key, error)
            except Exception as error:
                self._failed("elections", error)


def _in_order(resource: Resource, spec: dict[str, Any]) -> dict[str, Any]:
    """The spec with its fields as Go writes them."""
    return {name: spec[name] for name in _FIELDS[resource.plural] if name in spec}
