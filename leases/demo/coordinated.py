"""A coordinated election: contenders stand as LeaseCandidates, and kube-apiserver elects.

Source: k8s.io/client-go/tools/leaderelection/leasecandidate.go (ensureLease) and
leaderelection.go (tryCoordinatedRenew).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random

from leases.demo.demo_client import ApiDownError, DemoApi, LeaseObject
from leases.demo.elector import Elector, Order, Pace, ProcessFate, seeded, stamp
from leases.demo.names import COORDINATED
from leases.domain.lease import ObjectName

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
