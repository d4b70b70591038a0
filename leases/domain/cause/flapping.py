"""A Lease that is lost again and again: one incident, and when it is over.

A time that nobody watched puts no two losses farther apart, and ends no incident. What was lost
across it does not count. Each spell before and after it is counted by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import dropwhile, groupby

import msgspec

from leases.domain.cause.clue import Clue, Episode, opens
from leases.domain.cause.facts import Break
from leases.domain.cause.going_on import SETTLED_AFTER
from leases.domain.cause.scene import Group, Judged, Verdict, chains, several, some, span, surest
from leases.domain.change import ChangeType
from leases.domain.figures import Span, watched_seconds
from leases.domain.flapping import LOST_SOON, QUICK_LOSSES, BriefChange, flapped
from leases.domain.incident import Cause, Confidence
from leases.domain.lease import ObjectName

# The losses whose evidence is told, and how much of it: how it began, and what it is now.
TOLD_FIRST, TOLD_LAST = 3, 6
FACTS_FIRST, FACTS_LAST = 6, 14
FEW = 300  # losses are one incident, however long they take: it is not over while they go on
_WRITTEN = (ChangeType.REPLACED, ChangeType.RELEASED)
_CAUSES = (
    Cause.CRASH, Cause.RESTART_IN_PLACE, Cause.OOM_KILLED, Cause.UNKNOWN, Cause.PARTITION,
    Cause.GRACEFUL_STOP, Cause.CRASH_LOOP, Cause.STARVED,
)  # fmt: skip


def flapping(left: list[Judged], breaks: Iterable[Break] = ()) -> list[Group]:
    """Group losses soon after one another, from the first spell on that flaps by itself.

    They are one incident. It is called flapping where the overview calls it that.
    """
    past = [(one.since, one.until, one.is_brief) for one in breaks if one.until is not None]
    blind = [(since, until) for since, until, _ in past]
    long = [(since, until) for since, until, is_brief in past if not is_brief]
    ends = [until for _, until in long]
    by_key: dict[ObjectName, list[Judged]] = defaultdict(list)
    for one in left:
        if one.verdict.cause in _CAUSES and not _is_across(one, long):
            by_key[one.episode.key].append(one)
    groups = []
    for there in several(by_key, QUICK_LOSSES):
        for chain in _chains(there, blind):
            watched = groupby(chain, lambda one: sum(end <= one.at for end in ends))
            spells = dropwhile(_is_seldom, (list(spell) for _, spell in watched))
            if found := list(spells):
                losses = tuple(one for spell in found for one in spell)
                groups.append(Group(losses, _lost_again_and_again(found, blind)))
    return groups


def _chains(there: list[Judged], blind: Sequence[Span]) -> list[list[Judged]]:
    """Losses soon after one another. What flaps goes on until it settles."""
    found: list[list[Judged]] = []
    for chain in chains(there, LOST_SOON, _ended_at, few=FEW, blind=blind):
        if found and _goes_on(found[-1], chain[0], blind):
            found[-1] += chain
        else:
            found.append(chain)
    return found


def _goes_on(before: Sequence[Judged], after: Judged, blind: Sequence[Span]) -> bool:
    """Whether a Lease that flaps was lost again before nobody had lost it for long enough."""
    waited = watched_seconds([(_ended_at(before[-1]), after.at)], blind)
    is_soon = waited <= SETTLED_AFTER.total_seconds()
    return is_soon and _count(before) >= QUICK_LOSSES and _flaps(before)


def _is_across(one: Judged, blind: Iterable[Span]) -> bool:
    """Whether nobody watched when it was lost, or when its next renewal was due. A write that the
    watch brought later, with its own time, needs nobody who watched."""
    if one.gap is not None or not any(since < one.at <= until for since, until in blind):
        return one.gap is not None
    first = one.episode.first.change
    return first.inferred or first.change not in _WRITTEN


def _is_seldom(spell: Sequence[Judged]) -> bool:
    """Whether these are too few losses, or each of another Pod that was only stopped."""
    released = any(one.episode.opening is ChangeType.RELEASED for one in spell)
    number = _count(spell)
    return number < QUICK_LOSSES or (released and len(_hosts(spell)) == number)


def _count(spell: Iterable[Judged]) -> int:
    return sum(one.episode.losses for one in spell)


def _hosts(spell: Iterable[Judged]) -> set[str]:
    return {host for one in spell for host in one.episode.hosts}


def _lost_again_and_again(spells: Sequence[Sequence[Judged]], blind: Sequence[Span]) -> Verdict:
    """Flapping, or the surest cause of these losses in its own words."""
    losses = [one for spell in spells for one in spell]
    told = losses[:TOLD_FIRST] + losses[TOLD_FIRST:][-TOLD_LAST:]
    facts = list(dict.fromkeys(fact for one in told for fact in one.verdict.evidence))
    evidence = (*facts[:FACTS_FIRST], *facts[FACTS_FIRST:][-FACTS_LAST:])
    during = [(losses[0].at, losses[-1].at)]
    seconds = (losses[-1].at - losses[0].at).total_seconds()
    watched = watched_seconds(during, blind)
    lost = f"was lost {_count(losses)} times within {span(watched)}"
    if len(spells) > 1:
        lost += f", without {span(seconds - watched)} that nobody watched,"
    if any(map(_flaps, spells)):
        sentence = (
            f"{losses[0].episode.key} {lost} by {some(sorted(_hosts(losses)))}: "
            "each lost it soon after taking it"
        )
        return Verdict(Cause.FLAPPING, Confidence.LIKELY, sentence, evidence)
    best = min((one.verdict for one in losses), key=surest)
    sentence = f"{best.sentence}; the Lease {lost.rstrip(',')}"
    return Verdict(best.cause, best.confidence, sentence, evidence)


def thinned_out(group: Group) -> Iterator[Judged]:
    """Yield those of which nobody reads the evidence any more, with one verdict for all."""
    between, verdicts = _between(group), [one.verdict for one in group.episodes]
    words = next((one.verdict for one in between if not one.verdict.evidence), None)
    for one in between:
        if one.verdict.evidence:
            words = words or msgspec.structs.replace(min(verdicts, key=surest), evidence=())
            yield msgspec.structs.replace(one, verdict=words)


def taken_over(group: Group) -> list[Episode]:
    """Let the first of those in between stand for the next ones: each takes a kilobyte. Returns
    those that nobody needs any more.
    """
    known, found = None, []
    for one in _between(group):
        if known is not None and known.take_over(one.episode):
            found.append(one.episode)
        else:
            known = one.episode
    return found


def _between(group: Group) -> list[Judged]:
    """The losses of one Lease that are over for long, without the first and the newest."""
    if len({one.episode.key for one in group.episodes}) > 1:
        return []
    return [one for one in group.episodes if one.episode.rests][TOLD_FIRST:-TOLD_LAST]


def _flaps(spell: Iterable[Judged]) -> bool:
    """Whether the Lease flapped at any time of these losses."""
    spell = tuple(spell)
    changes = sorted(
        (BriefChange.of(clue.change) for one in spell for clue in one.episode.clues),
        key=lambda one: one.at,
    )
    return flapped(changes, spell[0].episode.kind)


def unseen_after(at: datetime, blind: Iterable[Span]) -> timedelta:
    """Return how much of the time since then nobody watched."""
    return sum((until - max(since, at) for since, until in blind if until > at), timedelta(0))


def _ended_at(one: Judged) -> datetime:
    return one.episode.ended_at or one.at


def flapped_before(clues: Iterable[Clue]) -> Iterator[Episode]:
    """Yield the losses of one Lease that history has, oldest first."""
    episode: Episode | None = None
    for clue in clues:
        if episode is not None and episode.takes(clue):
            episode.add(clue)
        elif opens(clue):
            if episode is not None:
                yield episode
            episode = Episode(clue)
    if episode is not None:
        yield episode
