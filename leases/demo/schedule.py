"""The events of the demo and their times; the same seed gives the same events."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from enum import StrEnum
from random import Random

import msgspec

from leases.demo.names import ELECTIONS, NODES


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
    Cue(34, Act.NODE_DOWN, ELECTIONS[3].node_of(0), 75),  # its election runs out too
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
        return random.choice(NODES)
    return random.choice([one.name for one in ELECTIONS if one.name != FLAPPING])
