"""Group the losses of one Lease by holders who each lose it soon after they took it."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta

from leases.domain.cause.groups.judged import Group, Judged, chains, several
from leases.domain.cause.incident import Cause, Confidence
from leases.domain.cause.verdict import Verdict, some, span
from leases.domain.lease import ObjectName

FLAPS = 3
FLAP_GAP = timedelta(seconds=60)  # from taking it to losing it
FEW_FLAPS = 300  # one incident, however long they take: it is not over while they go on
_CAUSES = (
    Cause.CRASH, Cause.RESTART_IN_PLACE, Cause.OOM_KILLED, Cause.UNKNOWN, Cause.PARTITION,
    Cause.GRACEFUL_STOP,
)  # fmt: skip


def flapping(left: list[Judged]) -> list[Group]:
    by_key: dict[ObjectName, list[Judged]] = defaultdict(list)
    for one in left:
        if one.verdict.cause in _CAUSES:
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
