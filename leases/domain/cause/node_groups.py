"""Group what one dead node, or several, took with them, and what a drain moved."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from leases.domain.cause.clue import Clue
from leases.domain.cause.facts import Break
from leases.domain.cause.scene import (
    Group,
    Judged,
    Verdict,
    chains,
    clock,
    counted,
    seen,
    some,
    span,
)
from leases.domain.change import Change, ChangeType
from leases.domain.figures import Span, watched_gap
from leases.domain.incident import Cause, Confidence, Evidence, Source, Unlisted
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName

NODE_GAP = timedelta(seconds=60)
MANY_NODES = 5
NEARLY_ALL = 0.9  # of the heartbeats of a cluster
ONE_DEATH = timedelta(seconds=10)
MAX_EVIDENCE = 20
_ON_A_NODE = (
    Cause.ROLLOUT, Cause.GRACEFUL_STOP, Cause.RESTART_IN_PLACE, Cause.CRASH, Cause.UNKNOWN,
    Cause.SCALED_DOWN, Cause.PARTITION, Cause.NODE_DOWN, Cause.STARVED,
)  # fmt: skip


# How a heartbeat that ran out goes on. The SQL of `leases.history.insert_incidents` reads it too.
GOES_ON = frozenset(
    {
        ChangeType.RECOVERED, ChangeType.TAKEN_OVER, ChangeType.RESTARTED, ChangeType.ACQUIRED,
        ChangeType.DELETED,
    }
)  # fmt: skip
OF_A_CROWD = GOES_ON | {ChangeType.EXPIRED}


class Crowd:
    """The heartbeats of a cluster that ran out together and are too many to list."""

    def __init__(self, heartbeats: int = 0) -> None:
        self.heartbeats = heartbeats  # that the cluster has
        self.listed = 0  # episodes of heartbeats that ran out and are listed
        self.changed_at = datetime.min.replace(tzinfo=UTC)  # our clock
        self._worst: Change | None = None  # ended the longest time without a holder
        self._worst_seconds = 0.0
        self.names: dict[ObjectName, datetime | None] = {}  # since when nobody holds it
        self.unlisted: Unlisted | None = None

    @property
    def number(self) -> int:
        return len(self.names)

    def begins(self, clue: Clue, most: int) -> bool:
        """Whether this heartbeat ran out after so many others that it is not listed."""
        change = clue.change
        ran_out = change.change is ChangeType.EXPIRED and change.kind is Kind.HEARTBEAT
        return ran_out and self.listed >= most

    def takes(self, clue: Clue, breaks: Iterable[Break]) -> bool:
        """Add how one of them goes on. Returns whether it is any."""
        change = clue.change
        if change.change not in GOES_ON or not self.names.get(clue.key):
            return False
        self.add(clue)
        seconds = watched_gap(change, blind_times(breaks, change.at)) or 0.0
        if seconds > self._worst_seconds:
            self._worst, self._worst_seconds = change, seconds
        return True

    def worst_gap(self, blind: Sequence[Span]) -> float | None:
        """Return the longest watched time without a holder: more may be known of it by now."""
        return None if self._worst is None else watched_gap(self._worst, blind)

    def add(self, clue: Clue) -> None:
        change = clue.change
        is_open = change.change is ChangeType.EXPIRED
        self.names[clue.key] = change.at if is_open else None
        self.changed_at = change.observed_at
        known = self.unlisted or Unlisted(change.at, change.at, 0, 0, 0)
        self.unlisted = one_more(known, change.at, leases=self.number, opened=1 if is_open else -1)

    def unheld(self) -> list[datetime]:
        """Return since when nobody holds each of them that nobody holds."""
        return [since for since in self.names.values() if since is not None]

    def number_with(self, hearts: Iterable[Judged]) -> int:
        """Return how many belong to a group with these heartbeats, the one that has most: or 0."""
        lost = sum(one.episode.opening is ChangeType.EXPIRED for one in hearts)
        return self.number if 2 * lost > self.listed else 0


def blind_times(breaks: Iterable[Break], now: datetime) -> list[Span]:
    return [(one.since, one.until or now) for one in breaks]


def one_more(known: Unlisted, at: datetime, *, leases: int, opened: int) -> Unlisted:
    """Return what is not listed with one more change."""
    without = max(0, known.without + opened)
    since, until = min(known.since, at), max(known.until, at)
    return Unlisted(since, until, leases, known.changes + 1, without)


NO_CROWD = Crowd()


def cut_off_nodes(left: list[Judged], crowd: Crowd) -> list[Group]:
    """Nearly all nodes fell silent while others went on: what lies between them and the API did."""
    many = _many_nodes([one for one in left if _is_lost_heartbeat(one)])
    number = len(many) + crowd.number_with(many)
    if not many or number < NEARLY_ALL * crowd.heartbeats or not crowd.heartbeats:
        return []
    by_node = _by_node(left)
    hearts = {one.episode.key.name: one for one in many}
    on_them = [
        one for name, heart in hearts.items() for one in by_node[name] if _died_with(one, heart)
    ]
    if number > len(many):
        nodes = {key.name for key in crowd.names} - hearts.keys()
        on_them += [
            one for name in nodes & by_node.keys() for one in by_node[name] if _ran_out(one, many)
        ]
    since = min(one.lost_at for one in many)
    within = span((max(one.lost_at for one in many) - since).total_seconds())
    sentence = (
        f"{number:,} of {crowd.heartbeats:,} heartbeats stopped within {within} from "
        f"{clock(since)} on, while others went on: what lies between these nodes and the API failed"
    )
    if number > len(many):
        sentence = f"{sentence}; {len(many):,} of them are listed"
    facts = tuple(dict.fromkeys(fact for one in many[:20] for fact in one.verdict.evidence))
    verdict = Verdict(Cause.PARTITION, Confidence.LIKELY, sentence, facts[:MAX_EVIDENCE])
    together = _without_twice([Group((*many, *on_them), verdict, tuple(hearts))])
    return together or [Group(tuple(many), verdict, tuple(hearts))]


def _ran_out(one: Judged, many: list[Judged]) -> bool:
    """Whether an election of a node that is not listed was lost when they fell silent."""
    if one.episode.opening is not ChangeType.EXPIRED:
        return False
    since, until = min(one.lost_at for one in many), max(_death(one)[1] for one in many)
    return since <= one.lost_at <= until


def dead_nodes(left: list[Judged], crowd: Crowd = NO_CROWD) -> list[Group]:
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
        names[counted(len(many) + crowd.number_with(many), "node")] = many
    for name, mine in names.items():
        there = []
        for heart in mine:
            on_it = by_node.pop(heart.episode.key.name, [])
            there += [one for one in on_it if _died_with(one, heart)]
        placed = bool(there)
        there = there or _one_death(unsure, mine)
        groups.append(_node_group([*mine, *there], name, placed=placed))
    for name, alike in by_node.items():
        there = [one for one in alike if one.node]
        if not there:
            continue
        sure = [one for one in there if one.verdict.cause is Cause.NODE_DOWN]
        lost = [one for one in there if one.episode.opening is ChangeType.EXPIRED and not one.gap]
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


def _node_group(there: list[Judged], name: str, *, placed: bool = True) -> Group:
    """`placed`: it is known that the holders of the elections ran there."""
    if len(there) == 1 and there[0].episode.kind is Kind.HEARTBEAT:
        return Group(tuple(there), there[0].verdict, _hosts(there, name))
    there = sorted(there, key=lambda one: one.at)
    hearts = hearts_of(there)
    elections = [one for one in there if one.episode.kind is not Kind.HEARTBEAT]
    stopped = min(one.lost_at for one in (hearts or there))
    evidence = _evidence(there)
    if not elections:
        sentence = f"The heartbeats of {name} stopped from {clock(stopped)} on"
        lead = Verdict(Cause.NODE_DOWN, Confidence.LIKELY, sentence, evidence[:MAX_EVIDENCE])
        return Group(tuple(there), lead, _hosts(hearts, name))
    within = max(one.at for one in elections) - min(one.at for one in elections)
    count = counted(len(elections), "election")
    what = _stopped(name, len(hearts))
    whose = "their" if len(hearts) > 1 else "its"
    pods = "pods" if len(elections) > 1 else "pod"
    held = f"that {whose} {pods} {'held' if placed else 'may have held'}"
    ran = f"{count} {held} ran out within {span(within.total_seconds())}"
    if len(elections) == 1:
        ran = f"{count} {held} ran out at {clock(elections[0].at)}"
    back = [one for one in hearts if one.episode.happened(ChangeType.RECOVERED)]
    died, lived = any(one.died for one in there), any(one.died is False for one in there)
    cause = Cause.NODE_DOWN
    if back and lived and not died:
        evidence = _evidence(there, Cause.NODE_DOWN)
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


def _evidence(there: list[Judged], against: Cause = Cause.PARTITION) -> tuple[Evidence, ...]:
    """Return what was seen, without what speaks for the other of the two causes."""
    found = (
        fact
        for one in there[:20]
        if one.verdict.cause is not against
        for fact in one.verdict.evidence
    )
    return tuple(dict.fromkeys(found))


def _stopped(name: str, hearts: int) -> str:
    """What fell silent: one node by its name, or `63 nodes`."""
    if not hearts:
        return f"{name} fell silent"
    return f"{name}'s heartbeat stopped" if hearts == 1 else f"The heartbeats of {name} stopped"


def _hosts(hearts: list[Judged], name: str) -> tuple[str, ...]:
    return tuple(one.episode.key.name for one in hearts) or (name,)


def hearts_of(there: Iterable[Judged]) -> list[Judged]:
    return [one for one in there if one.episode.kind is Kind.HEARTBEAT]


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
    count = counted(len(chain), "election")
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
