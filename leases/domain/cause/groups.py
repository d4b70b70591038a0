"""Which episodes are one incident: an outage, one Pod, one command, a rollout, repeated losses."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

import msgspec

from leases.domain.cause.clue import FORM_WRITER, Clue, Episode
from leases.domain.cause.facts import Break
from leases.domain.cause.flapping import flapping, unseen_after
from leases.domain.cause.node_groups import (
    NO_CROWD,
    Crowd,
    blind_times,
    cut_off_nodes,
    dead_nodes,
    drains,
    hearts_of,
    series,
)
from leases.domain.cause.outages import outages, silent_together, unwatched
from leases.domain.cause.scene import (
    Group,
    Judged,
    Verdict,
    chains,
    clock,
    counted,
    several,
    some,
    span,
    surest,
)
from leases.domain.cause.standing import standing_of
from leases.domain.change import ChangeType
from leases.domain.figures import Span, held, watched_gap
from leases.domain.incident import Cause, Confidence, Evidence, Incident, Member, Source, Unlisted
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName

BURST = timedelta(seconds=2)  # one command on several Leases


def bursts(left: list[Judged]) -> list[Group]:
    """One command of a person on several Leases. A form of ours deletes several; all else that is
    written through forms has a reason of its own.
    """
    by_writer: dict[tuple[str, ChangeType], list[Judged]] = defaultdict(list)
    for one in left:
        by_form = one.verdict.writer == FORM_WRITER
        if by_form and one.episode.opening is not ChangeType.DELETED:
            continue
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
                # What is lost still is what people look for.
                lead = next((one for one in chain if one.episode.unheld_since), chain[0])
                first, more = lead.verdict, len({one.episode.key for one in chain}) - 1
                sentence = first.sentence
                if more:
                    sentence = f"{sentence}, and {counted(more, 'more Lease')}"
                groups.append(
                    Group(tuple(chain), msgspec.structs.replace(first, sentence=sentence))
                )
    return groups


def _is_deletion(one: Judged) -> bool:
    return one.episode.kind is not Kind.LOCK


def _ends_at(one: Judged) -> datetime:
    """When a person's command reached it: it is deleted after its users were stopped."""
    if one.verdict.cause is Cause.DELETED:
        return one.episode.last.change.at
    return one.at


ONE_DEATH = timedelta(seconds=10)


def one_process(left: list[Judged]) -> list[Group]:
    """Several Leases of one Pod, or of one identity, that were lost together."""
    by_pod: dict[str, list[Judged]] = defaultdict(list)
    for one in left:
        loser = one.episode.loser
        if loser is None or one.verdict.cause in (Cause.BY_HAND, Cause.DELETED):
            continue
        if loser.is_pod:
            by_pod[loser.host].append(one)
        elif one.episode.kind is not Kind.HEARTBEAT:  # its holder has the name of the node
            by_pod[loser.identity].append(one)
    groups = []
    for there in several(by_pod):
        ordered = sorted(there, key=lambda one: one.lost_at)
        for chain in chains(ordered, ONE_DEATH, lambda one: one.lost_at):
            if len({one.episode.key for one in chain}) > 1:
                best = min((one.verdict for one in chain), key=surest)
                more = len({one.episode.key for one in chain}) - 1
                others = "another of its Leases was"
                if more > 1:
                    others = f"{more:,} more of its Leases were"
                sentence = f"{best.sentence}; {others} lost with this one"
                groups.append(Group(tuple(chain), msgspec.structs.replace(best, sentence=sentence)))
    return groups


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


def grouped(
    judged: Iterable[Judged],
    breaks: Iterable[Break] = (),
    crowd: Crowd = NO_CROWD,
    now: datetime | None = None,
) -> list[Group]:
    """Return the incidents that these episodes are. `breaks`: the times that nobody watched."""
    left = sorted(judged, key=lambda one: (one.at, one.episode.key))
    groups: list[Group] = []
    claims = (
        partial(outages, crowd=crowd, now=now), unwatched, silent_together,
        partial(cut_off_nodes, crowd=crowd), partial(dead_nodes, crowd=crowd), drains, storms,
        rolling, partial(flapping, breaks=breaks), bursts, one_process, series,
    )  # fmt: skip
    for claim in claims:
        found = claim(left)
        if not found:
            continue
        groups += found
        claimed = {id(one.episode) for group in found for one in group.episodes}
        left = [one for one in left if id(one.episode) not in claimed]
    groups += [Group((one,), one.verdict) for one in left]
    return groups


MAX_HOSTS = 50
MAX_EVIDENCE = 25


class ReportedAs(msgspec.Struct, frozen=True):
    """What an incident was made from when it was reported. It is made anew when this changes."""

    verdict: Verdict
    serials: list[int]  # of the judgements
    settles_at: datetime
    unlisted: Unlisted | None = None
    graver_at: datetime | None = None  # when nobody held a Lease of it for long

    @classmethod
    def of(
        cls,
        group: Group,
        crowd: Crowd | None,
        settled_after: timedelta,
        blind: Sequence[Span],
    ) -> ReportedAs:
        """`blind`: the times that nobody watched; whether a Lease flaps no more must be seen."""
        changed_at = max(one.changed_at for one in group.episodes)
        if crowd is not None:
            changed_at = max(changed_at, crowd.changed_at)
        serials = [one.serial for one in group.episodes]
        unlisted = None if crowd is None else crowd.unlisted
        settles_at = changed_at + settled_after
        if group.verdict.cause is Cause.FLAPPING:
            settles_at += unseen_after(changed_at, blind)
        return cls(group.verdict, serials, settles_at, unlisted)

    def still_holds(self, group: Group, crowd: Crowd | None, now: datetime) -> bool:
        if now >= self.settles_at or [one.serial for one in group.episodes] != self.serials:
            return False
        if self.graver_at is not None and now >= self.graver_at:
            return False
        if self.unlisted is not (None if crowd is None else crowd.unlisted):
            return False
        old, new = self.verdict, group.verdict
        return old is new or _said(old) == _said(new)


def _said(verdict: Verdict) -> tuple[str, str, str]:
    return verdict.cause, verdict.confidence, verdict.sentence


def incident_id(cluster: str, first: Clue) -> str:
    """Return the id of the incident that begins with this change."""
    text = f"{cluster} {first.key} {first.identity}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def with_the_crowd(groups: list[Group], crowd: Crowd) -> Group | None:
    """Return the group that the heartbeats belong to that are not listed."""
    if crowd.unlisted is None:
        return None
    return next((one for one in groups if crowd.number_with(hearts_of(one.episodes))), None)


def incident_of(
    cluster: str,
    number: str,
    group: Group,
    crowd: Crowd | None = None,
    *,
    without: tuple[Source, ...],
    settled: bool,
    now: datetime,
    breaks: Sequence[Break] = (),
) -> Incident:
    """Return the incident as it is known now."""
    episodes, verdict = [one.episode for one in group.episodes], group.verdict
    clues = sorted((clue for one in episodes for clue in one.all_clues), key=_at)
    losers = [host for one in episodes for host in one.hosts]
    blind = blind_times(breaks, now)
    standing = standing_of(group, now, blind)
    unlisted = None if crowd is None else crowd.unlisted
    ended = [one.ended_at for one in episodes]
    if verdict.cause is Cause.FLAPPING and not settled:
        ended.append(None)  # another loss may follow
    if unlisted is not None:
        ended.append(None if unlisted.without else unlisted.until)
    worst_gap, unheld_since = _without_holder(episodes, crowd, blind)
    evidence = verdict.evidence or (Evidence(verdict.sentence, Source.LEASES),)
    return Incident(
        id=number,
        cluster=cluster,
        cause=verdict.cause,
        confidence=verdict.confidence,
        sentence=verdict.sentence,
        began=clues[0].change.at,
        ended=None if None in ended else max(one for one in ended if one is not None),
        leases=tuple(sorted({one.key for one in episodes})),
        hosts=tuple(dict.fromkeys([*group.hosts, *losers]))[:MAX_HOSTS],
        writer=verdict.writer,
        worst_gap_seconds=worst_gap,
        unheld_since=unheld_since if None in ended else None,
        evidence=tuple(dict.fromkeys(evidence))[:MAX_EVIDENCE],
        without=without,
        members=tuple(clue.member for clue in clues),
        own_causes=_own_causes(episodes),
        unlisted=unlisted,
        standing=standing,
        settled=settled,
    )


def _at(clue: Clue) -> datetime:
    return clue.change.at


def _own_causes(episodes: Iterable[Episode]) -> tuple[tuple[Member, Cause], ...]:
    """Return the causes of what was written later, to Leases that were lost already."""
    later = (clue for one in episodes for clue in one.all_clues[1:])
    return tuple((clue.member, own) for clue in later if (own := clue.own_cause) is not None)


def _without_holder(
    episodes: Sequence[Episode], crowd: Crowd | None, blind: Sequence[Span]
) -> tuple[float | None, datetime | None]:
    """Return the longest time without a holder that is over, and since when the longest goes on."""
    changes = [change for one in episodes for change in one.costly]
    gaps = [gap for change in changes if (gap := watched_gap(change, blind))]
    waits = [wait for one in episodes for wait in one.waits()]
    gaps += [held(since, until, blind).watched for since, until in waits if until is not None]
    unheld = [since for since, until in waits if until is None]
    if crowd is not None:
        gaps += [gap] if (gap := crowd.worst_gap(blind)) else []
        unheld += crowd.unheld()
    return max(gaps, default=None), min(unheld, default=None)


def withdrawn(incident: Incident, heir: str) -> Incident:
    """Return an incident that turned out to be part of another."""
    return msgspec.structs.replace(
        incident, members=(), unlisted=None, unheld_since=None, settled=True, part_of=heir
    )


def given_up(incident: Incident) -> Incident:
    """Return an incident that is followed no longer: it counts as settled and over."""
    ended = incident.ended or incident.began
    return msgspec.structs.replace(incident, settled=True, ended=ended, unheld_since=None)
