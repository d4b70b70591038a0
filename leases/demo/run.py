"""Run the demo against a Lease API until cancelled: its events, their times, its processes."""

import asyncio
import heapq
import logging
import time
from collections.abc import Coroutine, Iterator
from enum import StrEnum
from random import Random
from typing import Any

import msgspec

from leases.demo import electors, names
from leases.demo.cluster_objects import forget_pods
from leases.demo.demo_client import ApiDownError, DemoApi
from leases.demo.kubelet import Heartbeat, api_server, node
from leases.domain.lease import ObjectName


class Act(StrEnum):
    """The types of events."""

    CRASH = "crash"  # the holder's process dies and returns in the same Pod
    FREEZE = "freeze"  # the holder sleeps, and wakes as the same process
    RELEASE = "release"  # the holder's Pod is deleted: it steps down, and another takes over
    ROLL_OUT = "roll out"  # all Pods are replaced by those of another template
    VACATE = "vacate"  # all Pods are deleted, as when scaled to zero, and come back later
    OUTAGE = "outage"  # all processes run out of memory
    HAND_OVER = "hand over"  # a person makes a waiting contender the holder
    RECONFIGURE = "reconfigure"  # a person changes an annotation
    DELETE = "delete"  # a person deletes the Lease; the holder creates it again
    NODE_DOWN = "node down"  # with all that runs on it
    API_RESTART = "API restart"


class Cue(msgspec.Struct, frozen=True):
    """One event: when (seconds from the start), to whom, for how long (seconds)."""

    at: float
    act: Act
    target: str = ""
    away: float = 0.0


# The first two minutes show every phase and every change; life begins within the first seconds.
OPENING = (
    Cue(8, Act.RELEASE, "kube-controller-manager", 6),
    Cue(16, Act.HAND_OVER, "ingress-nginx-leader"),
    Cue(24, Act.CRASH, "cert-manager-controller", 40),
    Cue(34, Act.NODE_DOWN, names.ELECTIONS[3].node_of(0), 75),  # its election runs out too
    Cue(44, Act.VACATE, "thanos-operator-leader", 50),
    Cue(54, Act.FREEZE, "kustomize-controller-leader-election", 28),
    Cue(64, Act.RECONFIGURE, "argo-rollouts-controller-lock"),
    Cue(74, Act.DELETE, "driver-longhorn-io"),
    Cue(84, Act.CRASH, "backup-operator", 4),
    Cue(94, Act.OUTAGE, "external-secrets-controller", 95),
    Cue(104, Act.API_RESTART),
    Cue(110, Act.ROLL_OUT, "argo-rollouts-controller-lock", 4),
)
CALM = (120.0, 300.0)  # seconds between two events later on: what a healthy cluster shows
FLAPPING = "operator.keda.sh"  # the one Lease that is there to show flapping
FLAPS = (35.0, 55.0)  # seconds between two crashes: each holder dies soon after it took over

# The weight of each event, and for how long somebody is away.
_LATER = {
    Act.RELEASE: (5, (4, 10)),
    Act.CRASH: (4, (20, 60)),
    Act.NODE_DOWN: (4, (30, 120)),
    Act.ROLL_OUT: (2, (3, 6)),
    Act.FREEZE: (2, (12, 40)),
    Act.RECONFIGURE: (2, (0, 0)),
    Act.HAND_OVER: (1, (0, 0)),
    Act.VACATE: (1, (40, 90)),
    Act.OUTAGE: (1, (60, 150)),
    Act.DELETE: (1, (0, 0)),
    Act.API_RESTART: (1, (0, 0)),
}


def script(seed: int) -> Iterator[Cue]:
    """Yield events in the order of time, without end."""
    return heapq.merge(_story(seed), _flapping(seed), key=lambda cue: cue.at)


def _story(seed: int) -> Iterator[Cue]:
    yield from OPENING
    random = Random(seed)  # noqa: S311 - a script, not a secret
    acts, weights = list(_LATER), [weight for weight, _ in _LATER.values()]
    at = OPENING[-1].at
    while True:
        at += random.uniform(*CALM)
        (act,) = random.choices(acts, weights)
        yield Cue(at, act, _target(act, random), random.uniform(*_LATER[act][1]))


def _flapping(seed: int) -> Iterator[Cue]:
    random = Random(seed + 1)  # noqa: S311 - a script, not a secret
    at = OPENING[0].at
    while True:
        at += random.uniform(*FLAPS)
        yield Cue(at, Act.CRASH, FLAPPING, random.uniform(2, 8))


def _target(act: Act, random: Random) -> str:
    if act is Act.API_RESTART:
        return ""
    if act is Act.NODE_DOWN:
        return random.choice(names.NODES)
    return random.choice([one.name for one in names.ELECTIONS if one.name != FLAPPING])


PATIENCE = 40.0  # seconds until somebody must be elected, even after another run crashed
ATTEMPTS = 5
_FATES = {
    Act.CRASH: electors.ProcessFate.FAILED,
    Act.FREEZE: electors.ProcessFate.FROZEN,
    Act.RELEASE: electors.ProcessFate.STOPPED,
}
_FATES_OF_ALL = {
    Act.VACATE: electors.ProcessFate.STOPPED,
    Act.ROLL_OUT: electors.ProcessFate.STOPPED,
    Act.OUTAGE: electors.ProcessFate.OOM_KILLED,
}


class Actors:
    """Every process that renews a Lease."""

    def __init__(self, *, api: DemoApi, pace: electors.Pace, seed: int, candidates: bool) -> None:
        """`candidates`: the API serves LeaseCandidates."""
        self._api = api
        self._pace = pace
        self._random: Random = electors.seeded(seed, "stage")
        self.coordinated = (
            electors.CoordinatedElection(api=api, pace=pace, seed=seed) if candidates else None
        )
        self.elections = {
            name.name: electors.DemoElection(name, api=api, pace=pace, seed=seed)
            for name in names.ELECTIONS
        }
        self.nodes: dict[str, Heartbeat] = {
            name: node(name, api=api, pace=pace, random=electors.seeded(seed, name))
            for name in (*names.NODES, *names.CONTROL_PLANE)
        }
        self.api_servers = [
            api_server(name, host, api=api, pace=pace, random=electors.seeded(seed, name))
            for name, host in zip(
                names.api_server_names(self._random), names.CONTROL_PLANE, strict=True
            )
        ]
        self.locks = [
            electors.StateLock(
                name, forgotten=i > 0, api=api, pace=pace, random=electors.seeded(seed, name)
            )
            for i, name in enumerate(names.LOCKS)
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
                    one.order(electors.Order(away, electors.ProcessFate.LOST))

    async def _befall(self, election: electors.DemoElection, act: Act, away: float) -> None:
        leader = await self._leader(election)
        if leader is None:
            return
        if act in _FATES:
            leader.order(electors.Order(away, _FATES[act]))
        elif act in _FATES_OF_ALL:
            template = names.letters(self._random, 10) if act is Act.ROLL_OUT else ""
            for one in election.contenders:
                one.order(electors.Order(away, _FATES_OF_ALL[act], template))
        elif act is Act.HAND_OVER:
            await self._hand_over(election)
        elif act is Act.RECONFIGURE:
            number = self._random.randint(1000, 9999)
            note = f"checked {electors.stamp()[:10]} by on-call, no. {number}"
            await self._edit(
                "kubectl-annotate", election.key, annotations={"demo.example.com/note": note}
            )
        elif act is Act.DELETE:
            await self._api.acting_as("kubectl-delete").delete(election.key)

    async def _leader(self, election: electors.DemoElection) -> electors.Elector | None:
        until = time.monotonic() + PATIENCE / self._pace.tempo
        while time.monotonic() < until:
            if leader := election.leader():
                return leader
            await asyncio.sleep(self._pace.retry_period)
        return None

    async def _hand_over(self, election: electors.DemoElection) -> None:
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
                moment, spec = electors.stamp(), lease["spec"]
                spec |= {"holderIdentity": holder, "acquireTime": moment, "renewTime": moment}
                spec["leaseTransitions"] = spec.get("leaseTransitions", 0) + 1
            lease["metadata"].setdefault("annotations", {}).update(annotations or {})
            if await api.update(lease):
                return


logger = logging.getLogger(__name__)

RETRY_SECONDS = 1.0


async def run_demo(*, url: str, token: str, seed: int = 1, tempo: float = 1.0) -> None:
    """Run a small busy cluster at the API at `url` until cancelled. It deletes nothing at the end.

    `tempo`: how many times faster than real time. The API may be down at the start or restart at
    any time. Leases of an earlier run are contended for like any others.
    """
    pace = electors.Pace(tempo)
    async with DemoApi(url=url, token=token) as api:
        candidates = await _prepare(api)
        stage = Actors(api=api, pace=pace, seed=seed, candidates=candidates)
        async with asyncio.TaskGroup() as cast:
            for life in stage.lives():
                cast.create_task(life)
            started = time.monotonic()
            for cue in script(seed):
                await asyncio.sleep(max(0.0, started + cue.at / tempo - time.monotonic()))
                logger.debug("demo: %s %s", cue.act, cue.target)
                cast.create_task(stage.perform(cue))


async def _prepare(api: DemoApi) -> bool:
    """Create the namespaces as soon as the API answers. Return whether it serves candidates."""
    while True:
        try:
            for namespace in names.NAMESPACES:
                await api.ensure_namespace(namespace)
                await forget_pods(api, namespace)
            return await api.serves_candidates()
        except ApiDownError as error:
            logger.info("demo: waiting for the API: %s", error)
            await asyncio.sleep(RETRY_SECONDS)
