"""Contenders of elections by client-go's rules, coordinated ones, and locks of Terraform.

Source: k8s.io/client-go/tools/leaderelection/leaderelection.go: tryAcquireOrRenew, isLeaseValid,
release, and its defaults of 15, 10 and 2 s.

Source: k8s.io/client-go/tools/leaderelection/leasecandidate.go (ensureLease) and
leaderelection.go (tryCoordinatedRenew).

Source: github.com/hashicorp/terraform/internal/backend/remote-state/kubernetes/client.go.
"""

import asyncio
import json
import time
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from random import Random
from typing import Any, Generic, TypeVar

import msgspec

from leases.demo.cluster_objects import DemoPod, PodName, record_election
from leases.demo.demo_client import ApiDownError, DemoApi, LeaseObject
from leases.demo.names import COORDINATED, LOCK_NAMESPACE, ElectionName, letters, new_uuid
from leases.domain.holder_identity import split_holder
from leases.domain.lease import ObjectName
from leases.wire.microtime import format_microtime

BEAT = 1.0  # seconds
JITTER = 1.2  # client-go's: a waiting contender asks every 2 to 4.4 s


class Pace(msgspec.Struct, frozen=True):
    """The speed of the demo; `tempo` 1 is real time. All values are seconds."""

    tempo: float = 1.0
    _waiting: dict[int, list[asyncio.Future[None]]] = msgspec.field(default_factory=dict)

    @property
    def duration(self) -> int:
        return self.lasting(15)

    @property
    def renew_deadline(self) -> float:
        return 10.0 / self.tempo

    @property
    def retry_period(self) -> float:
        return 2.0 / self.tempo

    def after(self, seconds: float) -> asyncio.Future[None]:
        """Return what is done after about these seconds.

        All processes of the demo wake at the same beats: requests that come together cost half.
        """
        beat, loop = BEAT / self.tempo, asyncio.get_running_loop()
        now = loop.time()
        number = max(round((now + seconds) / beat), int(now / beat) + 1)
        if number not in self._waiting:
            self._waiting[number] = []
            loop.call_at(number * beat, self._strike, number)
        waiter = loop.create_future()
        self._waiting[number].append(waiter)
        return waiter

    def _strike(self, number: int) -> None:
        for waiter in self._waiting.pop(number):
            if not waiter.done():
                waiter.set_result(None)

    def lasting(self, seconds: int) -> int:
        """Return a leaseDurationSeconds, a whole number of at least 1."""
        return max(1, round(seconds / self.tempo))


T = TypeVar("T")


class Orders(Generic[T]):
    """What a process is told while it waits for its next attempt."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._given: deque[T] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def give(self, order: T) -> None:
        self._given.append(order)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def within(self, seconds: float) -> T | None:
        """Return the next order; None after about these seconds without one."""
        if not self._given:
            self._waiter = self._pace.after(seconds)
            await self._waiter
        return self._given.popleft() if self._given else None


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
        self._orders = Orders[Order](pace)
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
        self._orders.give(order)

    async def run(self) -> None:
        """Contend until cancelled."""
        # Later contenders start later, so that the first holder is always the same.
        await asyncio.sleep(self._pace.retry_period * (self._index + self._random.random()) / 2)
        while True:
            await self._attempt()
            if self._pod is None:
                self._pod = self._new_pod()
                await self._pod.start()
            order = await self._orders.within(self._pause())
            if order is not None:
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


BINARY_VERSION = "1.36.0"
EMULATION_VERSIONS = ("1.36.0", "1.35.0")
STRATEGY = "OldestEmulationVersion"
FIRST_ROLLOUT = 12.0  # seconds after the start
ROLLOUTS = (300.0, 600.0)  # seconds between two


class CoordinatedContender(Elector):
    """A contender that waits to be elected, and stops renewing once another is preferred."""

    emulation = EMULATION_VERSIONS[0]

    async def _try_acquire_or_renew(self) -> bool:
        await self._stand()
        found = await self._api.get(self._key)
        if found is None:
            return False
        self._observe(found)
        spec = found["spec"]
        if spec.get("holderIdentity") != self.identity or spec.get("preferredHolder"):
            return False
        return self._is_valid(found) and await self._renew(found)

    async def _stand(self) -> None:
        """Create the candidate; renew it when it is pinged."""
        found = await self._api.get(self._candidate, candidate=True)
        if found is None:
            spec = {
                "leaseName": self._key.name,
                "binaryVersion": BINARY_VERSION,
                "emulationVersion": self.emulation,
                "strategy": STRATEGY,
                "renewTime": stamp(),
            }
            meta = {"namespace": self._key.namespace, "name": self.identity}
            await self._api.create({"metadata": meta, "spec": spec}, candidate=True)
        elif found["spec"].get("pingTime", "") > found["spec"].get("renewTime", ""):
            found["spec"]["renewTime"] = stamp()
            await self._api.update(found, candidate=True)

    async def _renew(self, found: LeaseObject) -> bool:
        spec = found["spec"] | {
            "leaseDurationSeconds": self._pace.duration,
            "renewTime": stamp(),
            "leaseTransitions": found["spec"].get("leaseTransitions") or 0,
        }
        return self._keep(await self._api.update({**found, "spec": spec}))

    async def _release(self) -> None:
        """Keep the Lease: kube-apiserver elects another, or this one again."""

    async def _obey(self, order: Order) -> None:
        """Restart with the other emulation version."""
        with suppress(ApiDownError):
            await self._api.delete(self._candidate, candidate=True)
        await super()._obey(order)
        first, second = EMULATION_VERSIONS
        self.emulation = second if self.emulation == first else first

    @property
    def _candidate(self) -> ObjectName:
        return ObjectName(self._key.namespace, self.identity)


class CoordinatedElection:
    """The contenders of the coordinated election, and the rollouts that move its Lease."""

    def __init__(self, *, api: DemoApi, pace: Pace, seed: int) -> None:
        self._pace = pace
        self._random: Random = seeded(seed, "rollouts")
        self.contenders = [
            CoordinatedContender(
                COORDINATED, i, api=api, pace=pace, random=seeded(seed, COORDINATED.name, i)
            )
            for i in range(COORDINATED.contenders)
        ]

    async def roll_out(self) -> None:
        """Restart one contender after the other with another emulation version, for ever."""
        wait, one = FIRST_ROLLOUT, self.contenders[1]
        while True:
            await asyncio.sleep(wait / self._pace.tempo)
            one.order(Order(self._pace.retry_period, ProcessFate.STOPPED))
            wait, one = self._random.uniform(*ROLLOUTS), self._random.choice(self.contenders)


INFO = "app.terraform.io/lock-info"
FIRST_RUN = (
    60.0,
    90.0,
)  # seconds for which the first run holds the lock: the opening shows its end
RUN = (120.0, 240.0)
FREE = (480.0, 900.0)  # seconds between two runs


class StateLock:
    """The lock of one state: taken by a run, then free for a while. A forgotten one stays taken."""

    def __init__(
        self, name: str, *, forgotten: bool, api: DemoApi, pace: Pace, random: Random
    ) -> None:
        self.key = ObjectName(LOCK_NAMESPACE, name)
        self._forgotten = forgotten
        self._api = api.acting_as("HashiCorp")  # Terraform's User-Agent begins so
        self._pace = pace
        self._random = random

    async def run(self) -> None:
        """Take and release the lock until cancelled."""
        await self._spend(1, 3)
        held = FIRST_RUN
        while True:
            try:
                await self._take()
                if self._forgotten:
                    return
                await self._spend(*held)
                await self._give_back()
            except ApiDownError:
                pass  # the next run tries again
            held = RUN
            await self._spend(*FREE)

    async def _spend(self, least: float, most: float) -> None:
        await asyncio.sleep(self._random.uniform(least, most) / self._pace.tempo)

    async def _take(self) -> None:
        found = await self._api.get(self.key)
        if found and found["spec"].get("holderIdentity"):
            return  # locked by an earlier run
        run, now = new_uuid(self._random), format_microtime(datetime.now(UTC))
        info = {"ID": run, "Operation": "OperationTypeApply", "Who": "ci@runner-7", "Created": now}
        spec = {"holderIdentity": run, "acquireTime": now}
        if found is None:
            lease = {**_new(self.key), "spec": spec}
            lease["metadata"]["annotations"] = {INFO: json.dumps(info)}
            await self._api.create(lease)
        else:
            meta = {**found["metadata"], "annotations": {INFO: json.dumps(info)}}
            await self._api.update({**found, "metadata": meta, "spec": spec})

    async def _give_back(self) -> None:
        found = await self._api.get(self.key)
        if found is None:
            return
        meta = {name: value for name, value in found["metadata"].items() if name != "annotations"}
        await self._api.update({**found, "metadata": meta, "spec": {}})


def _new(key: ObjectName) -> LeaseObject:
    labels = {"tfstate": "true", "app.kubernetes.io/managed-by": "terraform"}
    return {"metadata": {"namespace": key.namespace, "name": key.name, "labels": labels}}
