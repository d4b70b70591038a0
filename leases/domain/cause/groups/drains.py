"""Group what the drain of one node moved."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta

from msgspec.structs import replace

from leases.domain.cause.groups.judged import Group, Judged, chains
from leases.domain.cause.incident import Cause, Confidence, Source
from leases.domain.cause.verdict import Verdict, clock, seen, some, span
from leases.domain.changes.change import ChangeType

NODE_GAP = timedelta(seconds=60)
AT_ONCE = timedelta(seconds=3)
SERIES = 3  # releases in a row that look like a drain
MAX_SERIES = 50
SERIES_GAP = timedelta(seconds=5)
ONE_DRAIN = timedelta(seconds=15)  # kubectl drain evicts all Pods of a node at once
_STOPPED = (
    Cause.GRACEFUL_STOP, Cause.DRAIN, Cause.EVICTED, Cause.SCALED_DOWN, Cause.ROLLOUT,
)  # fmt: skip


def drains(left: list[Judged]) -> list[Group]:
    by_node: dict[str, list[Judged]] = defaultdict(list)
    for one in left:
        if one.node and one.verdict.cause in _STOPPED:
            by_node[one.node].append(one)
    groups = []
    for name, there in by_node.items():
        for chain in chains(there, NODE_GAP, lambda one: one.at):
            if any(one.verdict.cause is Cause.DRAIN for one in chain):
                vanished = _stopped_with(chain, left)
                groups.append(_drain(sorted([*chain, *vanished], key=_when), name))
    return groups


def _stopped_with(chain: list[Judged], left: list[Judged]) -> list[Judged]:
    """Return those whose Pods were gone too soon to say where they ran, but stopped just then."""
    times = [one.stopped_at for one in chain if one.stopped_at is not None]
    if not times:
        return []
    since, until = min(times) - AT_ONCE, max(times) + AT_ONCE
    return [
        one
        for one in left
        if not one.node
        and one.verdict.cause is Cause.GRACEFUL_STOP
        and one.stopped_at is not None
        and since <= one.stopped_at <= until
    ]


def _when(one: Judged) -> datetime:
    return one.at


def _drain(chain: list[Judged], name: str) -> Group:
    evidence = tuple(dict.fromkeys(fact for one in chain[:20] for fact in one.verdict.evidence))
    count = f"{len(chain)} election{'s' if len(chain) > 1 else ''}"
    within = (chain[-1].at - chain[0].at).total_seconds()
    sentence = f"{name} was drained from {clock(chain[0].at)} on; {count} that its pods held " + (
        f"moved within {span(within)}" if len(chain) > 1 else "moved"
    )
    return Group(
        tuple(chain), Verdict(Cause.DRAIN, Confidence.LIKELY, sentence, evidence[:20]), (name,)
    )


def _unsure(one: Judged) -> Group:
    return Group((one,), replace(one.verdict, confidence=Confidence.POSSIBLE))


def series(left: list[Judged]) -> list[Group]:
    """Where Pods cannot be read: a series of releases to pods of the same ReplicaSets."""
    alike = [
        one
        for one in left
        if not one.node
        and one.verdict.cause is Cause.GRACEFUL_STOP
        and one.episode.opening is ChangeType.RELEASED
    ]
    groups = []
    for chain in chains(alike, SERIES_GAP, lambda one: one.at):
        if not SERIES <= len(chain) <= MAX_SERIES:
            # Two may be a drain, or two stops by chance; a node holds no hundreds of elections.
            groups += [_unsure(one) for one in chain if len(chain) > 1]
            continue
        groups.append(_series(chain))
    return groups


def _series(chain: list[Judged]) -> Group:
    within = chain[-1].at - chain[0].at
    names = some([f"{one.episode.key}" for one in chain])
    sentence = (
        f"{len(chain)} elections were released within {span(within.total_seconds())}: {names}"
    )
    fact = seen(Source.LEASES, "each went on to another pod of the same ReplicaSet")
    return Group(tuple(chain), Verdict(Cause.DRAIN, _confidence(chain, within), sentence, (fact,)))


def _confidence(chain: list[Judged], within: timedelta) -> Confidence:
    """Only their node ties together Pods of several Deployments in several namespaces."""
    moved = {
        (one.episode.key.namespace, one.episode.loser.workload)
        for one in chain
        if one.episode.loser is not None and one.episode.loser.template
    }
    namespaces = {namespace for namespace, _ in moved}
    one_command = len(moved) < SERIES or len(namespaces) < 2
    return Confidence.POSSIBLE if one_command or within > ONE_DRAIN else Confidence.LIKELY
