"""Group what one rollout moved: many Leases at once, or one Lease from Pod to Pod."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta

from leases.domain.cause.groups.judged import Group, Judged, chains, several
from leases.domain.cause.incident import Cause, Confidence
from leases.domain.cause.verdict import Verdict, clock, some, span
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName

STORM_GAP = timedelta(seconds=10)  # between two of one rollout of everything
LONGEST_STORM = timedelta(minutes=2)
STORM = 4  # rollouts
ROLLING_GAP = timedelta(seconds=45)  # from one old Pod to the next
# Causes that a rollout of everything explains as well.
_SOFT = (
    Cause.ROLLOUT, Cause.GRACEFUL_STOP, Cause.RESTART_IN_PLACE, Cause.CRASH, Cause.UNKNOWN,
    Cause.SCALED_DOWN, Cause.PARTITION,
)  # fmt: skip


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
