"""Group what one dead node, or several, took with them."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta

from leases.domain.cause.groups.judged import Group, Judged, chains
from leases.domain.cause.incident import Cause, Confidence
from leases.domain.cause.verdict import Verdict, clock, span
from leases.domain.changes.change import ChangeType
from leases.domain.kind import Kind

NODE_GAP = timedelta(seconds=60)
MANY_NODES = 5
ONE_DEATH = timedelta(seconds=10)
MAX_EVIDENCE = 20
_ON_A_NODE = (
    Cause.ROLLOUT, Cause.GRACEFUL_STOP, Cause.RESTART_IN_PLACE, Cause.CRASH, Cause.UNKNOWN,
    Cause.SCALED_DOWN, Cause.PARTITION, Cause.NODE_DOWN, Cause.STARVED,
)  # fmt: skip


def dead_nodes(left: list[Judged]) -> list[Group]:
    groups = []
    hearts = [one for one in left if _is_lost_heartbeat(one)]
    many = _many_nodes(hearts)
    by_node = _by_node(left)
    unsure = [one for one in left if _may_have_died(one)] if hearts else []
    names: dict[str, list[Judged]] = {one.episode.key.name: [one] for one in hearts}
    if many:
        # One group under one name; its elections are looked up under each node's.
        taken = {one.serial for one in many}
        names = {name: one for name, one in names.items() if one[0].serial not in taken}
        names[f"{len(many)} nodes"] = many
    for name, mine in names.items():
        there = []
        for heart in mine:
            on_it = by_node.pop(heart.episode.key.name, [])
            there += [one for one in on_it if _died_with(one, heart)]
        there = there or _one_death(unsure, mine)
        groups.append(_node_group([*mine, *there], name))
    for name, alike in by_node.items():
        there = [one for one in alike if one.node]
        if not there:
            continue
        sure = [one for one in there if one.verdict.cause is Cause.NODE_DOWN]
        lost = [one for one in there if one.episode.opening is ChangeType.EXPIRED]
        if not sure and len(lost) < 2:
            continue
        for chain in chains(sure or lost, NODE_GAP, lambda one: one.lost_at):
            together = len(chain) > 1 and _same_death(chain)
            removed = [one for one in left if _is_removed(one, name)] if sure else []
            groups += [_node_group([*chain, *removed], name)] if sure or together else []
    return _without_twice(groups)


def _by_node(left: list[Judged]) -> dict[str, list[Judged]]:
    by_node: dict[str, list[Judged]] = defaultdict(list)
    for one in left:
        node = one.node or _host(one)  # a static Pod's identity names its node
        if node and one.verdict.cause in _ON_A_NODE and one.episode.kind is not Kind.HEARTBEAT:
            by_node[node].append(one)
    return by_node


def _host(one: Judged) -> str:
    loser = one.episode.loser
    return "" if loser is None else loser.host


def _is_removed(one: Judged, name: str) -> bool:
    """Whether this is the heartbeat of a node that was removed after it fell silent."""
    episode = one.episode
    deleted = episode.opening is ChangeType.DELETED and one.verdict.cause is Cause.DELETED
    return episode.kind is Kind.HEARTBEAT and episode.key.name == name and deleted


def _node_group(there: list[Judged], name: str) -> Group:
    if len(there) == 1 and there[0].episode.kind is Kind.HEARTBEAT:
        return Group(tuple(there), there[0].verdict, _hosts(there, name))
    there = sorted(there, key=lambda one: one.at)
    hearts = [one for one in there if one.episode.kind is Kind.HEARTBEAT]
    elections = [one for one in there if one.episode.kind is not Kind.HEARTBEAT]
    stopped = min(one.lost_at for one in (hearts or there))
    evidence = tuple(dict.fromkeys(fact for one in there[:20] for fact in one.verdict.evidence))
    if not elections:
        sentence = f"The heartbeats of {name} stopped from {clock(stopped)} on"
        lead = Verdict(Cause.NODE_DOWN, Confidence.LIKELY, sentence, evidence[:MAX_EVIDENCE])
        return Group(tuple(there), lead, _hosts(hearts, name))
    within = max(one.at for one in elections) - min(one.at for one in elections)
    count = f"{len(elections)} election{'s' if len(elections) > 1 else ''}"
    what = f"{name}'s heartbeat stopped" if hearts else f"{name} fell silent"
    ran = f"{count} that its pods held ran out within {span(within.total_seconds())}"
    if len(elections) == 1:
        ran = f"{count} that its pod held ran out at {clock(elections[0].at)}"
    back = [one for one in hearts if one.episode.happened(ChangeType.RECOVERED)]
    died, lived = any(one.died for one in there), any(one.died is False for one in there)
    cause = Cause.NODE_DOWN
    if back and lived and not died:
        cause, ran = Cause.PARTITION, f"{ran}; the node came back, its pods were not restarted"
    sure = any(one.verdict.cause is Cause.NODE_DOWN for one in elections) and hearts and not back
    confidence = Confidence.CERTAIN if sure else Confidence.LIKELY
    if back and not died and not lived:
        confidence = Confidence.POSSIBLE  # it was down, or only cut off
    sentence = f"{what} at {clock(stopped)}; {ran}"
    return Group(
        tuple(there),
        Verdict(cause, confidence, sentence, evidence[:MAX_EVIDENCE]),
        _hosts(hearts, name),
    )


def _hosts(hearts: list[Judged], name: str) -> tuple[str, ...]:
    return tuple(one.episode.key.name for one in hearts) or (name,)


def _is_lost_heartbeat(one: Judged) -> bool:
    lost = (ChangeType.EXPIRED, ChangeType.DELETED)
    episode = one.episode
    return (
        episode.kind is Kind.HEARTBEAT
        and episode.opening in lost
        and one.verdict.cause in (Cause.NODE_DOWN, Cause.PARTITION)
    )


def _many_nodes(hearts: list[Judged]) -> list[Judged]:
    """Return the heartbeats of one common failure: many that stopped within one renewal."""
    ordered = sorted(hearts, key=lambda one: one.lost_at)
    found = chains(ordered, ONE_DEATH, lambda one: one.lost_at)
    return max((chain for chain in found if len(chain) >= MANY_NODES), key=len, default=[])


def _death(one: Judged) -> tuple[datetime, datetime]:
    """When its holder may have died: after the last renewal, before the next one was due."""
    since = one.lost_at
    return since, since + timedelta(seconds=one.episode.rhythm * 1.3 + 1.0)


def _same_death(chain: list[Judged]) -> bool:
    times = [_death(one) for one in chain]
    return max(since for since, _ in times) <= min(until for _, until in times)


def _died_with(one: Judged, heart: Judged) -> bool:
    return one.episode.opening is not ChangeType.RELEASED and (
        one.verdict.cause is Cause.NODE_DOWN or _same_death([one, heart])
    )


def _may_have_died(one: Judged) -> bool:
    """Whether an election ran out, and nothing shows where its holder ran or why it died."""
    return (
        not one.node
        and one.episode.kind is not Kind.HEARTBEAT
        and one.episode.opening is ChangeType.EXPIRED
        and one.verdict.confidence is Confidence.POSSIBLE
    )


def _one_death(unsure: list[Judged], hearts: list[Judged]) -> list[Judged]:
    """From Leases alone: several elections that fell silent in the same moment as a node."""
    heart = max(hearts, key=lambda one: one.lost_at)
    alike = [one for one in unsure if _same_death([one, heart])]
    while len(alike) > 2 and not _same_death([*alike, heart]):
        alike.remove(min(alike, key=lambda one: _death(one)[1]))
    return alike if len(alike) > 2 else []


def _without_twice(groups: list[Group]) -> list[Group]:
    """Leave each episode to the first group that has it."""
    taken: set[int] = set()
    kept = []
    for group in groups:
        mine = [one for one in group.episodes if id(one.episode) not in taken]
        taken |= {id(one.episode) for one in mine}
        if len(mine) == len(group.episodes):
            kept.append(group)
    return kept
