"""Everything at once has one cause: an outage of the API, or a time that nobody watched.

An outage lasts as long as renewals are missing, however long our own watch was cut.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import pairwise

import msgspec

from leases.domain.cause.clue import Silence
from leases.domain.cause.facts import EARLIEST, Break
from leases.domain.cause.node_groups import NO_CROWD, Crowd, hearts_of
from leases.domain.cause.rules.api import OUTAGE, STILL_LATE, silence_of_all, still_late
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
from leases.domain.cause.unwatched import (
    between,
    did_not_come_back,
    happened,
    is_lost_later,
    within,
)
from leases.domain.change import ChangeType
from leases.domain.incident import Cause, Confidence, Source
from leases.domain.phase import CADENCES, SLACK
from leases.domain.watched_times import BRIEF, Missing

API_GAP = timedelta(seconds=60)  # between two stalls of one trouble
AWAY = 2  # durations after an outage: whoever takes a Lease then is not held up by it any more
SHARE = 0.5  # of an outage: who was silent for so much of it was silent because of it
MAX_EVIDENCE = 20
MAX_NAMED = 5
_API = (Cause.API_OUTAGE, Cause.API_SLOW)
_RAN_OUT = (ChangeType.EXPIRED, ChangeType.TAKEN_OVER, ChangeType.REPLACED)
# Causes that a silent API server explains as well.
_SOFT = (
    Cause.GRACEFUL_STOP, Cause.RESTART_IN_PLACE, Cause.CRASH, Cause.UNKNOWN, Cause.PARTITION,
    Cause.ROLLOUT, Cause.SCALED_DOWN, Cause.STARVED,
)  # fmt: skip
_BACK = (
    ChangeType.ACQUIRED, ChangeType.TAKEN_OVER, ChangeType.RECOVERED, ChangeType.CREATED,
    ChangeType.RESTARTED, ChangeType.REPLACED,
)  # fmt: skip


def outages(
    left: list[Judged], crowd: Crowd = NO_CROWD, now: datetime | None = None
) -> list[Group]:
    """Group what one outage did, whatever each Lease alone looks like.

    Whoever stays away after it was perhaps lost for another reason.
    """
    groups, taken = [], set[int]()
    for gaps, silenced in _by_gap(left):
        away = [one for one in silenced if _stays_away(one, gaps[-1], silenced, now)]
        # Where most of them do, they all began anew.
        few = len(away) < SHARE * len(silenced)
        for one in away:
            one.episode.stays_away |= few  # also when the others are settled
        for one in [one for one in silenced if one.episode.stays_away]:
            silenced.remove(one)
            taken.add(one.serial)
            if one.verdict.cause in (*_API, Cause.UNWATCHED):
                groups.append(Group((one,), did_not_come_back(one.episode)))
        api = [one for one in left if one.verdict.cause in _API]
        around = [one for one in api if any(_is_near(one, gap) for gap in gaps)]
        found = {one.serial: one for one in (*silenced, *around) if one.serial not in taken}
        taken |= found.keys()
        if found:
            there = list(found.values())
            early = [
                one
                for one in _silent_before(gaps[0], found, left)
                if one.serial not in taken and not _stays_away(one, gaps[-1], there, now)
            ]
            taken |= {one.serial for one in early}
            there = sorted([*found.values(), *early], key=_lost)
            late = [one for one in there if one.serial not in found or _was_late(one, gaps[0])]
            # Where half of them fell silent before, they did by what stopped us.
            named = late if len(late) < SHARE * len(there) else []
            groups.append(_off(gaps, there, crowd, named))
    mine = sorted((one for one in left if one.verdict.cause in _API), key=_lost)
    for chain in chains([one for one in mine if one.serial not in taken], API_GAP, _at):
        groups.append(_outage(chain, left, taken, crowd))
        taken |= {one.serial for one in groups[-1].episodes}
    return groups


def silent_together(left: list[Judged]) -> list[Group]:
    """Group holders of several hosts that nobody heard of in one silence of the whole cluster.

    No rate of writes is needed to see it: it is too short for one, or a burst came before it.
    """
    by_silence: dict[datetime, list[Judged]] = defaultdict(list)
    for one in left:
        soft = one.verdict.cause in _SOFT and one.verdict.confidence is not Confidence.CERTAIN
        if soft and one.episode.opening in _RAN_OUT:
            quiet = silence_of_all(one.episode)
            if quiet is not None:
                by_silence[quiet.since].append(one)
    return [_silent(there) for there in by_silence.values() if _fell_silent_once(there)]


def _fell_silent_once(there: list[Judged]) -> bool:
    """Whether all of them were lost in one silence, and not in one of several stalls."""
    found = [silence_of_all(one.episode) for one in there]
    since = {None if one is None else one.since for one in found}
    return _hosts(there) > 1 and len(since) == 1 and None not in since


def _hosts(there: list[Judged]) -> int:
    return len({one.episode.loser.host for one in there if one.episode.loser is not None})


def _silent(there: list[Judged]) -> Group:
    ordered = sorted(there, key=_lost)
    quiet = _longest_known(ordered)
    sentence = (
        f"The API server was gone for {span(quiet.seconds)} from about {clock(quiet.since)} on: "
        f"nobody wrote any Lease{_count(ordered, NO_CROWD)}"
    )
    facts = (
        seen(Source.LEASES, f"{counted(_hosts(ordered), 'host')} fell silent together"),
        seen(Source.LEASES, "nothing shows whether the API server or all of them stopped"),
    )
    verdict = Verdict(Cause.API_OUTAGE, Confidence.POSSIBLE, sentence, facts)
    return Group(tuple(ordered), verdict)


def _longest_known(there: list[Judged]) -> Silence:
    """Return the silence in which all of them were lost, as long as the last change knows it."""
    since = {one.since for each in there if (one := silence_of_all(each.episode)) is not None}
    clues = (clue for one in there for clue in one.episode.all_clues)
    found = (one for clue in clues for one in clue.silences if one.since in since)
    return max(found, key=lambda one: one.until)


def unwatched(left: list[Judged]) -> list[Group]:
    """Group what happened while nobody watched and has no witness, and by itself whoever fell
    silent meanwhile, while others went on, and lost it before our eyes.
    """
    by_gap: dict[tuple[int, bool], list[Judged]] = defaultdict(list)
    for one in left:
        if one.verdict.cause is Cause.UNWATCHED:
            by_gap[id(one.gap), _is_lost_later(one)].append(one)
    groups = []
    for (_, later), there in by_gap.items():
        evidence = tuple(fact for one in there[:MAX_EVIDENCE] for fact in one.verdict.evidence)
        lead = msgspec.structs.replace(there[0].verdict, evidence=evidence)
        gap = there[0].gap
        if len(there) > 1 and gap is not None:
            until = gap.until or max(one.at for one in there)
            names = some(list(dict.fromkeys(one.episode.key.name for one in there)))
            sentence = f"{happened(gap, until, *(one.episode for one in there))}: {names}"
            if later:
                sentence = (
                    f"The holders of {names} fell silent {within(gap.since, until)}, "
                    f"while nobody watched; these {len(there):,} Leases were lost from "
                    f"{clock(min(one.at for one in there))} on"
                )
            lead = _saying(lead, sentence)
        groups.append(Group(tuple(there), lead))
    return groups


def _is_lost_later(one: Judged) -> bool:
    gap = one.gap
    return (
        gap is not None
        and (gap.went_on or gap.since == EARLIEST)
        and is_lost_later(one.episode, gap)
    )


def _by_gap(left: list[Judged]) -> Iterator[tuple[list[Break], list[Judged]]]:
    """Yield the times in which nobody could write, with all that was silent through them: several
    where it came back, and went again.
    """
    found: list[tuple[list[Break], list[Judged]]] = []
    gaps = {id(one.gap): one.gap for one in left if one.gap is not None and one.gap.of_all}
    for gap in sorted(gaps.values(), key=lambda one: one.since):
        there = _victims(gap, [one for one in left if one.gap is gap])
        if found and _goes_on(found[-1][0][-1], gap):
            found[-1][0].append(gap)
            found[-1][1].extend(there)
        else:
            found.append(([gap], there))
    yield from found


def _victims(gap: Break, there: list[Judged]) -> list[Judged]:
    """Leave out whoever renewed in it, or had time to after it while others did."""
    there = [one for one in there if one.verdict.cause is not Cause.BY_HAND]
    if gap.until is None:
        return there
    back = _first_back(there, gap.since) or gap.until
    seconds, went = (gap.until - gap.since).total_seconds(), _went(gap, gap.until, there)
    found = []
    for one in there:
        late = still_late(one.episode, seconds)
        if one.episode.waited_out is not None:
            found.append(one)
            continue
        # Where nobody was back, a holder is no later than the others.
        alone = late < STILL_LATE and silence_of_all(one.episode) is None
        until = gap.until if alone else max(gap.until, back)
        if one.at <= until + late and one.lost_at <= went + BRIEF:
            found.append(one)
    return found


def _went(gap: Break, until: datetime, there: list[Judged]) -> datetime:
    """Return from when on nobody could write. What a process that was killed had stored of its
    watch may be some seconds older than the last write to its own Lease API.
    """
    if not gap.hosted:
        return gap.since
    written = sorted(one.lost_at for one in there if gap.since < one.lost_at < until)
    silences = pairwise([gap.since, *written, until])
    return max(silences, key=lambda one: one[1] - one[0])[0]


def _stays_away(one: Judged, gap: Break, there: list[Judged], now: datetime | None) -> bool:
    """Whether nobody took it, or another one did, long after others were back: contenders wait out
    a duration, and one more if they were started anew.
    """
    episode = one.episode
    if gap.until is None or episode.waited_out is not None or episode.opening not in _RAN_OUT:
        return False
    if episode.stays_away:
        return True
    if episode.last.change.change is ChangeType.RECOVERED:
        return False
    back, until = _first_back(there, gap.since), episode.ended_at or now
    if back is None or until is None:
        return False
    return until > max(gap.until, back) + timedelta(seconds=AWAY * episode.duration)


def _silent_before(gap: Break, found: Mapping[int, Judged], left: list[Judged]) -> list[Judged]:
    """Return those that had fallen silent shortly before, ran out in it, and came back with the
    others: whatever befell them, nobody could follow.
    """
    back = _first_back(list(found.values()), gap.since) or gap.until
    if gap.until is None or back is None:
        return []
    seconds = (gap.until - gap.since).total_seconds()
    return [
        one
        for one in left
        if one.serial not in found
        and one.verdict.cause is not Cause.BY_HAND
        and one.episode.opening is ChangeType.EXPIRED
        and one.lost_at < gap.since <= one.at <= gap.until
        and one.episode.ended_at is not None
        and one.episode.ended_at <= back + still_late(one.episode, seconds)
    ]


def _was_late(one: Judged, gap: Break) -> bool:
    """Whether it was late already when the time began that nobody watched: see phase.late_after."""
    slowest = one.episode.slowest
    late_after = timedelta(seconds=max(CADENCES * slowest, slowest + SLACK))
    return one.episode.opening in _RAN_OUT and gap.since - one.lost_at > late_after


def _goes_on(before: Break, gap: Break) -> bool:
    if before.why is not Missing.LOST or gap.why is not Missing.LOST or before.until is None:
        return False
    return gap.since - before.until <= API_GAP


def _is_near(one: Judged, gap: Break) -> bool:
    """Whether trouble of the API belongs to that outage, and to none of its own."""
    own = one.gap is not None and one.gap.of_all and not _goes_on(gap, one.gap)
    if gap.since == EARLIEST or (own and one.gap is not gap):
        return False
    ended = one.episode.ended_at
    if one.verdict.cause is Cause.API_SLOW and ended is not None and ended < gap.since:
        return False  # it was over when the API went
    return gap.since - API_GAP <= one.at and (gap.until is None or one.at <= gap.until + API_GAP)


def _off(gaps: list[Break], there: list[Judged], crowd: Crowd, early: list[Judged]) -> Group:
    """The API was off, or nobody wrote, in a time that we did not watch, or in several.

    `early` are those of them that had fallen silent before.
    """
    gap = gaps[0]
    until = gap.until or max(one.at for one in there)
    back = _first_back(there, gap.since)
    last = _last_renewal(there, min(until, back or until))
    since = gap.since if last is None else max(gap.since, last)
    count = _count(there, crowd)
    if early:
        count += f"; {_names(early)} had fallen silent before"
    if unheld := [one for one in there if one.episode.waited_out is not None]:
        count += f"; nobody held {_names(unheld)} before"
    if gap.hosted:
        what = "stood still" if gap.why is Missing.STOOD_STILL else "were stopped"
        times = between(since, until).replace(" and ", " to ")
        sentence = f"Leaseboard and its Lease API {what} from {times}{count}"
        fact = f"nobody could write any Lease for {span((until - since).total_seconds())}"
        confidence = Confidence.CERTAIN
    else:
        since = last or gap.since
        gone = f"for {span(((back or until) - since).total_seconds())}"
        if len(gaps) > 1:
            gone = f"{len(gaps)} times"
        share = 100 * (gap.wrote or 0.0)
        wrote = "hardly anybody wrote a Lease" if round(share) else "nobody wrote any Lease"
        sentence = f"The API server was gone {gone} from about {clock(since)} on: {wrote}{count}"
        times = between(gap.since, min(until, back or until))  # then all wrote again
        fact = f"between {times} resourceVersion moved by {share:.0f} % of the usual writes"
        confidence = Confidence.LIKELY
    facts = [seen(Source.LEASES, fact)]
    if back is not None and last is not None:
        text = f"the last renewal came at {clock(last)}, the first holder was back at {clock(back)}"
        facts.append(seen(Source.LEASES, text))
    for one in early[:MAX_NAMED]:
        text = f"{one.episode.key.name} renewed last at {clock(one.lost_at)}, before that"
        facts.append(seen(Source.LEASES, text))
        facts += [fact for fact in one.verdict.evidence if fact.source is not Source.LEASES]
    return Group(tuple(there), Verdict(Cause.API_OUTAGE, confidence, sentence, tuple(facts)))


def _outage(chain: list[Judged], left: list[Judged], taken: set[int], crowd: Crowd) -> Group:
    """The API was gone, or slow, while we watched or tried to."""
    worst = min(chain, key=lambda one: (one.verdict.cause is not Cause.API_OUTAGE, one.at))
    verdict = worst.verdict
    if verdict.cause is Cause.API_SLOW and _fell_silent_once(chain):
        return _silent(chain)
    if verdict.cause is Cause.API_SLOW:
        lost = [one for one in chain if one.episode.opening is ChangeType.EXPIRED]
        count = f"; {len(lost)} Leases ran out" if len(lost) > 1 else ""
        return Group(tuple(chain), _saying(verdict, f"{verdict.sentence}{count}"))
    silent = [one for one in chain if one.episode.opening in _RAN_OUT]
    since = _last_renewal(silent, max(one.at for one in chain)) or worst.lost_at
    back = _first_back(chain, since)
    if back is not None and (back - since).total_seconds() >= OUTAGE:
        mine = {one.serial for one in chain} | taken
        others = [one for one in left if one.serial not in mine and _is_silenced(one, since, back)]
        chain = sorted([*chain, *others], key=_lost)
        verdict = _saying(
            verdict,
            f"The API server was gone for {span((back - since).total_seconds())} from about "
            f"{clock(since)} on: nobody wrote any Lease",
        )
    return Group(tuple(chain), _saying(verdict, f"{verdict.sentence}{_count(chain, crowd)}"))


def _is_silenced(one: Judged, since: datetime, back: datetime) -> bool:
    """Whether a Lease was silent because of an outage, though it came back with others or late."""
    episode = one.episode
    if episode.opening not in _RAN_OUT or one.verdict.cause is Cause.BY_HAND:
        return False
    due = since + timedelta(seconds=1.3 * episode.rhythm + 1.0)
    if not since - timedelta(seconds=1.3 * episode.rhythm + 1.0) <= one.lost_at <= due:
        return False
    until = episode.ended_at or back
    return (min(until, back) - max(one.lost_at, since)) >= SHARE * (back - since)


def _names(there: list[Judged]) -> str:
    return some(list(dict.fromkeys(one.episode.key.name for one in there)))


def _last_renewal(there: list[Judged], until: datetime) -> datetime | None:
    return max((one.lost_at for one in there if one.lost_at < until), default=None)


def _first_back(there: list[Judged], since: datetime) -> datetime | None:
    """Return when the first of them was renewed again."""
    times = (
        clue.change.at
        for one in there
        for clue in one.episode.clues
        if clue.change.change in _BACK and clue.change.at > since
    )
    return min(times, default=None)


def _count(there: list[Judged], crowd: Crowd) -> str:
    number = len({one.episode.key for one in there}) + crowd.number_with(hearts_of(there))
    return f"; {number:,} Leases changed" if number > 1 else ""


def _saying(verdict: Verdict, sentence: str) -> Verdict:
    return msgspec.structs.replace(verdict, sentence=sentence)


def _lost(one: Judged) -> datetime:
    return one.lost_at


def _at(one: Judged) -> datetime:
    return one.at
