"""The processes of the demo, and how they perform its events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator
from random import Random
from typing import Any

from leases.demo.coordinated import CoordinatedElection
from leases.demo.demo_client import ApiDownError, DemoApi
from leases.demo.elector import DemoElection, Elector, Order, Pace, ProcessFate, seeded, stamp
from leases.demo.kubelet import Heartbeat, api_server, node
from leases.demo.locks import StateLock
from leases.demo.names import CONTROL_PLANE, ELECTIONS, LOCKS, NODES, api_server_names, letters
from leases.demo.schedule import Act, Cue
from leases.domain.lease import ObjectName

PATIENCE = 40.0  # seconds until somebody must be elected, even after another run crashed
ATTEMPTS = 5
_FATES = {
    Act.CRASH: ProcessFate.FAILED,
    Act.FREEZE: ProcessFate.FROZEN,
    Act.RELEASE: ProcessFate.STOPPED,
}
_FATES_OF_ALL = {
    Act.VACATE: ProcessFate.STOPPED,
    Act.ROLL_OUT: ProcessFate.STOPPED,
    Act.OUTAGE: ProcessFate.OOM_KILLED,
}


class Actors:
    """Every process that renews a Lease."""

    def __init__(self, *, api: DemoApi, pace: Pace, seed: int, candidates: bool) -> None:
        """`candidates`: the API serves LeaseCandidates."""
        self._api = api
        self._pace = pace
        self._random: Random = seeded(seed, "stage")
        self.coordinated = (
            CoordinatedElection(api=api, pace=pace, seed=seed) if candidates else None
        )
        self.elections = {
            name.name: DemoElection(name, api=api, pace=pace, seed=seed) for name in ELECTIONS
        }
        self.nodes: dict[str, Heartbeat] = {
            name: node(name, api=api, pace=pace, random=seeded(seed, name))
            for name in (*NODES, *CONTROL_PLANE)
        }
        self.api_servers = [
            api_server(name, host, api=api, pace=pace, random=seeded(seed, name))
            for name, host in zip(api_server_names(self._random), CONTROL_PLANE, strict=True)
        ]
        self.locks = [
            StateLock(name, forgotten=i > 0, api=api, pace=pace, random=seeded(seed, name))
            for i, name in enumerate(LOCKS)
        ]

    def lives(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Return the coroutine of each process."""
        for election in self.elections.values():
            for contender in election.contenders:
                yield contender.run()
        for heartbeat in (*self.nodes.values(), *self.api_servers):
            yield heartbeat.run()
        for lock in self.locks:
            yield lock.run()
        if self.coordinated is not None:
            for one in self.coordinated.contenders:
                yield one.run()
            yield self.coordinated.roll_out()

    async def perform(self, cue: Cue) -> None:
        """Let an event happen. It does nothing while the API is down or nobody holds the Lease."""
        away = cue.away / self._pace.tempo
        try:
            if cue.act is Act.NODE_DOWN:
                self._fail_node(cue.target, away)
            elif cue.act is Act.API_RESTART:
                await self._random.choice(self.api_servers).restart()
            else:
                await self._befall(self.elections[cue.target], cue.act, away)
        except ApiDownError:
            return

    def _fail_node(self, name: str, away: float) -> None:
        self.nodes[name].die(away)
        for election in self.elections.values():
            for one in election.contenders:
                if one.node == name:
                    one.order(Order(away, ProcessFate.LOST))

    async def _befall(self, election: DemoElection, act: Act, away: float) -> None:
        leader = await self._leader(election)
        if leader is None:
            return
        if act in _FATES:
            leader.order(Order(away, _FATES[act]))
        elif act in _FATES_OF_ALL:
            template = letters(self._random, 10) if act is Act.ROLL_OUT else ""
            for one in election.contenders:
                one.order(Order(away, _FATES_OF_ALL[act], template))
        elif act is Act.HAND_OVER:
            await self._hand_over(election)
        elif act is Act.RECONFIGURE:
            note = f"checked {stamp()[:10]} by on-call, no. {self._random.randint(1000, 9999)}"
            await self._edit(
                "kubectl-annotate", election.key, annotations={"demo.example.com/note": note}
            )
        elif act is Act.DELETE:
            await self._api.acting_as("kubectl-delete").delete(election.key)

    async def _leader(self, election: DemoElection) -> Elector | None:
        until = time.monotonic() + PATIENCE / self._pace.tempo
        while time.monotonic() < until:
            if leader := election.leader():
                return leader
            await asyncio.sleep(self._pace.retry_period)
        return None

    async def _hand_over(self, election: DemoElection) -> None:
        heir = election.standby()
        if heir is not None:
            await self._edit("kubectl-edit", election.key, holder=heir.identity)

    async def _edit(
        self,
        program: str,
        key: ObjectName,
        *,
        holder: str = "",
        annotations: dict[str, str] | None = None,
    ) -> None:
        """Edit a Lease as a person with kubectl would; retry after a renewal in between."""
        api = self._api.acting_as(program)
        for _ in range(ATTEMPTS):
            lease = await api.get(key)
            if lease is None:
                return
            if holder:
                moment, spec = stamp(), lease["spec"]
                spec |= {"holderIdentity": holder, "acquireTime": moment, "renewTime": moment}
                spec["leaseTransitions"] = spec.get("leaseTransitions", 0) + 1
            lease["metadata"].setdefault("annotations", {}).update(annotations or {})
            if await api.update(lease):
                return
