"""Contenders of an election, by client-go's rules.

Source: k8s.io/client-go/tools/leaderelection/leaderelection.go: tryAcquireOrRenew, isLeaseValid,
release, and its defaults of 15, 10 and 2 s.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from enum import StrEnum
from random import Random
from typing import Any

import msgspec

from leases.demo.cluster_objects import record_election
from leases.demo.demo_client import ApiDownError, DemoApi, LeaseObject
from leases.demo.demo_pod import DemoPod, PodName
from leases.demo.names import ElectionName, letters
from leases.domain.holder_identity import split_holder
from leases.domain.lease import ObjectName
from leases.wire.microtime import format_microtime

JITTER = 1.2  # client-go's: a waiting contender asks every 2 to 4.4 s


class Pace(msgspec.Struct, frozen=True):
    """The speed of the demo; `tempo` 1 is real time. All values are seconds."""

    tempo: float = 1.0

    @property
    def duration(self) -> int:
        return self.lasting(15)

    @property
    def renew_deadline(self) -> float:
        return 10.0 / self.tempo

    @property
    def retry_period(self) -> float:
        return 2.0 / self.tempo

    def lasting(self, seconds: int) -> int:
        """Return a leaseDurationSeconds, a whole number of at least 1."""
        return max(1, round(seconds / self.tempo))


class ProcessFate(StrEnum):
    """What happens to a process."""

    STOPPED = "stopped"  # its Pod is deleted; it releases the Lease, and another Pod comes
    FAILED = "failed"  # it crashes, and returns in the same Pod
    OOM_KILLED = "OOM killed"  # it takes too much memory, and returns in the same Pod
    FROZEN = "frozen"  # it sleeps, and wakes as the same process
    LOST = "lost"  # its machine stops, and starts it again in the same Pod


_EXITS = {ProcessFate.FAILED: ("Error", 2), ProcessFate.OOM_KILLED: ("OOMKilled", 137)}


class Order(msgspec.Struct, frozen=True):
    """Its fate, and for how many seconds it is away. `template`: of the Pod that comes, if new."""

    away: float
    fate: ProcessFate
    template: str = ""


class Elector:
    """One process that wants the Lease. `leading` is its own belief."""

    def __init__(
        self, election: ElectionName, index: int, *, api: DemoApi, pace: Pace, random: Random
    ) -> None:
        self._election = election
        self._index = index
        self._api = api.acting_as(election.program)
        self._pace = pace
        self._random = random
        self._orders: asyncio.Queue[Order] = asyncio.Queue()
        self._lease: LeaseObject | None = None
        self._observed_at = 0.0
        self._renewed_at = 0.0
        self._newborn = True
        self._pod: DemoPod | None = None
        self._template = letters(seeded(election.name), 10)
        self._suffix = letters(random, 5)
        self.identity = self._new_identity()
        self.node = election.node_of(index)
        self.leading = False

    def order(self, order: Order) -> None:
        """Let this happen to the process at once."""
        self._orders.put_nowait(order)

    async def run(self) -> None:
        """Contend until cancelled."""
        # Later contenders start later, so that the first holder is always the same.
        await asyncio.sleep(self._pace.retry_period * (self._index + self._random.random()) / 2)
        while True:
            await self._attempt()
            if self._pod is None:
                self._pod = self._new_pod()
                await self._pod.start()
            try:
                async with asyncio.timeout(self._pause()):
                    order = await self._orders.get()
            except TimeoutError:
                continue
            await self._obey(order)

    def _pause(self) -> float:
        period = self._pace.retry_period
        return period if self.leading else period * (1 + JITTER * self._random.random())

    def _new_identity(self) -> str:
        pod = f"{self._template}-{self._suffix}"
        return self._election.new_identity(self._index, pod, self._random)

    def _new_pod(self) -> DemoPod:
        election = self._election
        name = split_holder(self.identity).host or self.identity
        owner, kind = election.program, election.controller
        if kind == "Node":  # a static Pod
            name, owner = f"{election.name}-{self.node}", self.node
        elif kind == "ReplicaSet":
            owner += f"-{self._template}"
        place = PodName(election.namespace, name, self.node, kind, owner, self._template)
        return DemoPod(place, api=self._api)

    async def _attempt(self) -> None:
        led = self.leading
        try:
            self.leading = await self._try_acquire_or_renew()
        except ApiDownError:
            silent = time.monotonic() - self._renewed_at
            self.leading = self.leading and silent < self._pace.renew_deadline
        else:
            self._renewed_at = time.monotonic()
        if self.leading and not led:
            await self._record("became leader")

    async def _record(self, what: str) -> None:
        uid = self._lease["metadata"].get("uid", "") if self._lease else ""
        await record_election(self._api, self._key, uid, self.identity, what)

    async def _try_acquire_or_renew(self) -> bool:
        if self.leading and self._lease and await self._write(self._lease):
            return True  # nobody wrote since: no need to read
        found = await self._api.get(self._key)
        if found is None:
            return await self._create()
        self._observe(found)
        holder = found["spec"].get("holderIdentity")
        if holder and holder != self.identity and self._is_valid(found):
            return False
        return await self._write(found)

    def _observe(self, found: LeaseObject) -> None:
        """Note when we saw a change: the holder's clock may be wrong."""
        if self._lease is None or self._lease["spec"] != found["spec"]:
            self._observed_at = time.monotonic()
        self._lease = found

    def _is_valid(self, found: LeaseObject) -> bool:
        seconds = found["spec"].get("leaseDurationSeconds") or 0
        return self._observed_at + float(seconds) > time.monotonic()

    async def _create(self) -> bool:
        now = stamp()
        spec = self._spec(acquired=now, renewed=now, transitions=0)
        meta = {"namespace": self._key.namespace, "name": self._key.name}
        return self._keep(await self._api.create({"metadata": meta, "spec": spec}))

    async def _write(self, found: LeaseObject) -> bool:
        """Renew or acquire. Acquiring starts a term and increments leaseTransitions."""
        old, now = found["spec"], stamp()
        transitions = old.get("leaseTransitions") or 0
        acquired = old.get("acquireTime") or now
        if old.get("holderIdentity") != self.identity:
            acquired, transitions = now, transitions + 1
        elif self._newborn and self._election.fresh_start:
            acquired = now
        spec = self._spec(acquired=acquired, renewed=now, transitions=transitions)
        return self._keep(await self._api.update({**found, "spec": spec}))

    async def _release(self) -> None:
        if not (self.leading and self._lease):
            return
        now = stamp()
        spec = self._spec(
            acquired=now, renewed=now, transitions=self._lease["spec"].get("leaseTransitions") or 0
        )
        spec |= {"holderIdentity": "", "leaseDurationSeconds": 1}
        try:
            await self._api.update({**self._lease, "spec": spec})
        except ApiDownError:
            return  # then the Lease will expire
        await self._record("stopped leading")

    async def _obey(self, order: Order) -> None:
        pod = self._pod
        if pod is not None and order.fate is ProcessFate.STOPPED:
            await pod.delete()
        if order.fate is ProcessFate.STOPPED:
            await self._release()
        self.leading = False
        if pod is not None and order.fate in _EXITS:
            await pod.fail(*_EXITS[order.fate])
        await asyncio.sleep(order.away)
        if pod is not None and order.fate is ProcessFate.STOPPED:
            await pod.remove()
        elif pod is not None and order.fate is not ProcessFate.FROZEN:
            await pod.restart()
        if order.fate is not ProcessFate.FROZEN:
            self._begin_anew(order)

    def _begin_anew(self, order: Order) -> None:
        """Return as a new process."""
        if order.fate is ProcessFate.STOPPED:
            self._pod = None
            self._template = order.template or self._template
            self._suffix = letters(self._random, 5)
        self.identity = self._new_identity()
        self._lease, self._newborn = None, True

    def _keep(self, written: LeaseObject | None) -> bool:
        if written is None:
            return False
        self._observe(written)
        self._newborn = False
        return True

    def _spec(self, *, acquired: str, renewed: str, transitions: int) -> dict[str, Any]:
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self._pace.duration,
            "acquireTime": acquired,
            "renewTime": renewed,
            "leaseTransitions": transitions,
        }

    @property
    def _key(self) -> ObjectName:
        return ObjectName(self._election.namespace, self._election.name)


class DemoElection:
    """The contenders of one Lease."""

    def __init__(self, name: ElectionName, *, api: DemoApi, pace: Pace, seed: int) -> None:
        self.key = ObjectName(name.namespace, name.name)
        self.contenders = [
            Elector(name, i, api=api, pace=pace, random=seeded(seed, name.name, i))
            for i in range(name.contenders)
        ]

    def leader(self) -> Elector | None:
        """Return the contender that believes to hold the Lease."""
        return next((one for one in self.contenders if one.leading), None)

    def standby(self) -> Elector | None:
        """Return a waiting contender."""
        return next((one for one in self.contenders if not one.leading), None)


def seeded(*seeds: object) -> Random:
    """Return a random generator that is the same for the same seeds."""
    return Random("/".join(map(str, seeds)))  # noqa: S311 - a script, not a secret


def stamp() -> str:
    """Return the current time as Kubernetes writes it."""
    return format_microtime(datetime.now(UTC))
