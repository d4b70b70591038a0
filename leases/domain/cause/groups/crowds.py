"""Group what happened to many Leases at once, or to one Lease again and again."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta

import msgspec

from leases.domain.cause.groups.judged import Group, Judged, chains, several
from leases.domain.cause.incident import Cause, Confidence
from leases.domain.cause.verdict import Verdict, clock, some, span
from leases.domain.changes.change import ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName

_replace = msgspec.structs.replace

API_GAP = timedelta(seconds=60)  # between two stalls of one trouble
STORM_GAP = timedelta(seconds=10)  # between two of one rollout of everything
LONGEST_STORM = timedelta(minutes=2)
STORM = 4  # rollouts
BURST = timedelta(seconds=2)  # one command on several Leases
ROLLING_GAP = timedelta(seconds=45)  # from one old Pod to the next
FLAPS = 3
FLAP_GAP = timedelta(seconds=60)  # from taking it to losing it
FEW_FLAPS = 300  # one incident, however long they take: it is not over while they go on
ONE_DEATH = timedelta(seconds=10)

_API = (Cause.API_OUTAGE, Cause.API_SLOW)
# Causes that a rollout of everything explains as well.
_SOFT = (
    Cause.ROLLOUT, Cause.GRACEFUL_STOP, Cause.RESTART_IN_PLACE, Cause.CRASH, Cause.UNKNOWN,
    Cause.SCALED_DOWN, Cause.PARTITION,
)  # fmt: skip
_FLAPS = (Cause.CRASH, Cause.RESTART_IN_PLACE, Cause.OOM_KILLED, Cause.UNKNOWN, Cause.PARTITION)


def outages(left: list[Judged]) -> list[Group]:
    mine = sorted((one for one in left if one.verdict.cause in _API), key=lambda one: one.lost_at)
    groups = []
    for chain in chains(mine, API_GAP, lambda one: one.at):
        worst = min(chain, key=lambda one: (one.verdict.cause is not Cause.API_OUTAGE, one.at))
        verdict = worst.verdict
        lost = [one for one in chain if one.episode.opening is ChangeType.EXPIRED]
        if len(lost) > 1:
            verdict = _replace(verdict, sentence=f"{verdict.sentence}; {len(lost)} Leases ran out")
        groups.append(Group(tuple(chain), verdict))
    return groups


def storms(left: list[Judged]) -> list[Group]:
    """A rollout of everything: many rollouts within seconds, and what else ended among them."""
    rollouts = [one for one in left if one.verdict.cause is Cause.ROLLOUT]
    groups = []
    for chain in chains(rollouts, STORM_GAP, lambda one: one.at, LONGEST_STORM):
        if len({one.episode.key for one in chain}) < STORM:
            continue
        since, until = chain[0].at, chain[-1].at
        among = [
            one
            for one in left
            if one.verdict.cause in _SOFT
            and one.episode.kind is not Kind.HEARTBEAT
            and since - STORM_GAP <= one.lost_at <= until + STORM_GAP
        ]
        names = len({one.episode.key for one in among})
        seconds = (among[-1].at - among[0].at).total_seconds()
        sentence = (
            f"{names} elections were rolled out within {span(seconds)} from {clock(since)} on: "
            f"{some([one.episode.key.name for one in among])}"
        )
        evidence = tuple(fact for one in chain[:10] for fact in one.verdict.evidence)
        groups.append(
            Group(tuple(among), Verdict(Cause.ROLLOUT, Confidence.LIKELY, sentence, evidence[:20]))
        )
    return groups


def flapping(left: list[Judged]) -> list[Group]:
    by_key: dict[ObjectName, list[Judged]] = defaultdict(list)
    for one in left:
        if one.verdict.cause in (*_FLAPS, Cause.GRACEFUL_STOP):
            by_key[one.episode.key].append(one)
    groups = []
    for there in several(by_key, FLAPS):
        for chain in chains(there, FLAP_GAP, _ended_at, few=FEW_FLAPS):
            if len(chain) < FLAPS:
                continue
            hosts = {one.episode.loser.host for one in chain if one.episode.loser is not None}
            stops = [one for one in chain if one.verdict.cause is Cause.GRACEFUL_STOP]
            if stops and len(hosts) == len(chain):  # each another Pod: they were only stopped
                continue
            seconds = (chain[-1].at - chain[0].at).total_seconds()
            sentence = (
                f"{chain[0].episode.key} was lost {len(chain)} times within {span(seconds)} by "
                f"{some(sorted(hosts))}: each lost it soon after taking it"
            )
            evidence = tuple(fact for one in chain for fact in one.verdict.evidence)
            verdict = Verdict(Cause.FLAPPING, Confidence.LIKELY, sentence, evidence[:20])
            groups.append(Group(tuple(chain), verdict))
    return groups


def _ended_at(one: Judged) -> datetime:
    return one.episode.ended_at or one.at


def rolling(left: list[Judged]) -> list[Group]:
    """One rollout that moved a Lease several times, from one old Pod to the next."""
    by_key: dict[ObjectName, list[Judged]] = defaultdict(list)
    for one in left:
        if one.verdict.cause in (Cause.GRACEFUL_STOP, Cause.ROLLOUT) and one.episode.loser:
            by_key[one.episode.key].append(one)
    groups = []
    for there in several(by_key):
        for chain in chains(there, ROLLING_GAP, lambda one: one.at):
            rollouts = [one for one in chain if one.verdict.cause is Cause.ROLLOUT]
            losers = [one.episode.loser for one in chain if one.episode.loser is not None]
            if len(chain) < 2 or len({one.host for one in losers}) < len(chain):
                continue
            of_a_set = all(one.ordinal for one in losers)
            if len({one.workload for one in losers}) > 1 or not (rollouts or of_a_set):
                continue
            last = chain[-1].episode.winner
            sentence = (
                f"{losers[0].workload} was rolled out: {chain[0].episode.key} moved "
                f"{len(chain)} times from {clock(chain[0].at)} on, at last to "
                f"{'nobody yet' if last is None else last.host}"
            )
            evidence = tuple(fact for one in chain for fact in one.verdict.evidence)
            verdict = Verdict(Cause.ROLLOUT, Confidence.LIKELY, sentence, evidence[:20])
            groups.append(Group(tuple(chain), verdict))
    return groups


def bursts(left: list[Judged]) -> list[Group]:
    """One command of a person on several Leases."""
    by_writer: dict[tuple[str, ChangeType], list[Judged]] = defaultdict(list)
    for one in left:
        if one.verdict.cause is Cause.BY_HAND and one.verdict.writer:
            by_writer[one.verdict.writer, one.episode.opening].append(one)
        elif one.verdict.cause in (Cause.BY_HAND, Cause.DELETED) and _is_deletion(one):
            by_writer[one.episode.key.namespace, ChangeType.DELETED].append(one)
        elif one.verdict.cause is Cause.SCALED_DOWN:
            by_writer[one.verdict.confidence, ChangeType.RELEASED].append(one)
    groups = []
    for there in several(by_writer):
        ordered = sorted(there, key=_ends_at)
        for chain in chains(ordered, BURST, _ends_at):
            if len({one.verdict.cause for one in chain}) == 1 and len(chain) > 1:
                first, more = chain[0].verdict, len(chain) - 1
                sentence = f"{first.sentence}, and {more} more Lease{'s' if more > 1 else ''}"
                groups.append(Group(tuple(chain), _replace(first, sentence=sentence)))
    return groups


def _is_deletion(one: Judged) -> bool:
    return one.episode.kind is not Kind.LOCK


def _ends_at(one: Judged) -> datetime:
    """When a person's command reached it: it is deleted after its users were stopped."""
    if one.verdict.cause is Cause.DELETED:
        return one.episode.last.change.at
    return one.at


def one_pod(left: list[Judged]) -> list[Group]:
    """Several Leases of one Pod that were lost together."""
    by_pod: dict[str, list[Judged]] = defaultdict(list)
    for one in left:
        loser = one.episode.loser
        if loser is not None and loser.is_pod and one.verdict.cause is not Cause.BY_HAND:
            by_pod[loser.host].append(one)
    groups = []
    for there in several(by_pod):
        ordered = sorted(there, key=lambda one: one.lost_at)
        for chain in chains(ordered, ONE_DEATH, lambda one: one.lost_at):
            if len({one.episode.key for one in chain}) > 1:
                best = min(chain, key=lambda one: _rank(one.verdict))
                groups.append(Group(tuple(chain), best.verdict))
    return groups


def _rank(verdict: Verdict) -> int:
    return list(Confidence).index(verdict.confidence)
