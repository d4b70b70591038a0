"""The API server was gone, or slow: nobody wrote any Lease, or our own watch was broken."""

from datetime import timedelta

import msgspec

from leases.domain.cause.clue import Clue, Episode, LateWriter, Silence, contender
from leases.domain.cause.facts import Knowledge
from leases.domain.cause.scene import Scene, Verdict, clock, likely, possible, seen, some, span
from leases.domain.change import ChangeType
from leases.domain.incident import Cause, Source
from leases.domain.kind import Kind
from leases.domain.steady_clock import plus
from leases.domain.watched_times import BRIEF, Missing

EXPECTED = 4.0  # writes of others that did not come: fewer prove nothing
OUTAGE = 10.0  # seconds of silence; a shorter one is slowness
COVERED = 0.45  # of the time since the last renewal
SHARE = 0.33  # of that time, in one silence
AROUND = 30.0  # seconds in which the API server's own Leases come and go
TOGETHER = timedelta(seconds=60)  # before the last renewal: what is slow was slow before
ONE_STALL = timedelta(seconds=10)  # within which all are late after it
MANY = 3  # other holders that were late in the same seconds
MANY_SHARE = 0.3  # of all elections: one slow node has fewer
SLOW_SHARE = 0.3  # of the silence of a lost holder: so late is one of the others
STILL_LATE = timedelta(seconds=60)  # after an outage: a holder that gave up starts anew
GIVES_UP = 2 / 3  # of the duration: RenewDeadline of client-go's tools/leaderelection


def waited_out(scene: Scene) -> Verdict | None:
    """Whoever took a Lease that had no holder could not do so before."""
    outage = scene.episode.waited_out
    if outage is None:
        return None
    sentence = f"Nobody could take {scene.lease} from {clock(outage.since)} on"
    return likely(Cause.API_OUTAGE, sentence)


def api_trouble(scene: Scene) -> Verdict | None:
    """Nobody at all wrote while the holder should have renewed."""
    episode = scene.episode
    quiet = silences(episode)
    broken = broken_seconds(episode, scene.known)
    if episode.opening in (ChangeType.DELETED, ChangeType.CREATED):
        return _identity(scene)
    if episode.opening is ChangeType.RECONFIGURED:
        return None
    first = episode.first
    if first.observed_at is None:
        return None
    return _silent(scene, quiet, broken) or _came_late_after(scene, quiet) or _slow_for_all(scene)


def _silent(scene: Scene, quiet: list[Silence], broken: float) -> Verdict | None:
    """Nobody wrote for most of the time since the last renewal."""
    episode, first = scene.episode, scene.episode.first
    observed_at = first.observed_at or first.change.at
    waited = (first.change.at - observed_at).total_seconds()
    covered = overlap(quiet, first) + broken
    if waited <= 0 or covered < COVERED * waited or covered < 0.4 * episode.duration:
        return None
    stalls = [one for one in quiet if _touches(one, first)]
    if not broken and stalls and not _was_due_in(stalls, episode):
        return None
    longest = max([one.seconds for one in stalls], default=0.0)
    # Where most nodes died, the rest writes less often: short pauses then prove nothing.
    if max(longest, broken) < SHARE * waited:
        return None
    if broken >= 2 or longest >= OUTAGE:
        return _outage(scene, max(broken, longest), broken=broken > longest)
    several = [one for one in quiet if one.seconds >= 1.0]
    times = f"{len(several)} times within {span(_spread(several))}, " if len(several) > 1 else ""
    sentence = (
        f"The API server stalled: nobody wrote any Lease {times}for up to {span(longest)} "
        f"until {clock(several[-1].until)}"
    )
    conclude = likely if len(several) > 1 or longest >= 3 else possible
    expected = sum(one.expected for one in several)
    missing = f"{expected:.0f} writes of all Leases were missing in these seconds"
    return conclude(Cause.API_SLOW, sentence, seen(Source.LEASES, missing))


def _was_due_in(stalls: list[Silence], episode: Episode) -> bool:
    """Whether it was heard of until the first one, and had no time to renew after the last."""
    due = _next_due(episode)
    since, until = min(one.since for one in stalls), max(one.until for one in stalls)
    late = still_late(episode, sum(one.seconds for one in stalls))
    return since <= plus(episode.lost_at, due) and episode.at <= plus(until, late)


def _came_late_after(scene: Scene, quiet: list[Silence]) -> Verdict | None:
    """An outage swallowed the renewal that was due, and the holder was back later than others."""
    episode = scene.episode
    if episode.opening is ChangeType.RELEASED:
        return None
    due = _next_due(episode)
    gone = [(one.since, one.until) for one in quiet if one.seconds >= OUTAGE]
    gone += [
        (one.since, one.until)
        for one in scene.known.breaks
        if one.until is not None
        and one.of_the_api
        and (one.until - one.since).total_seconds() >= OUTAGE
    ]
    for since, until in gone:
        # A renewal within it shows that the API server was back before our watch was.
        due_in_it = plus(since, -due) <= episode.lost_at <= plus(since, BRIEF)
        seconds = (until - since).total_seconds()
        if due_in_it and since < episode.at <= plus(until, still_late(episode, seconds)):
            verdict = _outage(scene, seconds, broken=False)
            text = f"the renewal that was due fell into it; it ended at {clock(until)}"
            fact = seen(Source.LEASES, text)
            return msgspec.structs.replace(verdict, evidence=(*verdict.evidence, fact))
    return None


def _next_due(episode: Episode) -> timedelta:
    """Return how long after a renewal the next one is due at the latest."""
    return timedelta(seconds=1.5 * episode.rhythm + 2.0)


def still_late(episode: Episode, seconds: float) -> timedelta:
    """Return for how long after so many seconds of outage its holder may be late because of it.

    It tries again by its own rhythm, unless it has given up meanwhile.
    """
    if seconds >= GIVES_UP * episode.duration:
        return STILL_LATE
    return _next_due(episode)


def _slow_for_all(scene: Scene) -> Verdict | None:
    """Several holders were late in the same seconds: what they share is the API server."""
    episode = scene.episode
    elections = max((clue.elections for clue in episode.clues), default=0)
    if sum(map(_late_elections, episode.clues)) < MANY_SHARE * elections:
        return None  # soon found, of thousands of heartbeats
    others = late_together(episode, TOGETHER)
    hosts = {host for one in others if (host := _host(one.holder)) is not None}
    # Heartbeats alone are late where nodes are cut off while elections go on.
    late = {one.key for one in others if one.kind is not Kind.HEARTBEAT}
    if len(hosts) < MANY or len(late) < MANY_SHARE * elections:
        return None
    # Whoever renewed after one stall, or had time to, was not lost in it; one that is slow stalls
    # again.
    late_at = [one.at for one in others]
    once, over = max(late_at) - min(late_at) <= ONE_STALL, max(late_at)
    late_for = still_late(episode, max(one.seconds for one in others))
    if once and (over < plus(episode.lost_at, -BRIEF) or plus(over, late_for) < episode.at):
        return None
    # Where others were in time when its renewal was due, it fell silent by itself.
    due = plus(episode.lost_at, _next_due(episode))
    if min(plus(one.at, -timedelta(seconds=one.seconds)) for one in others) > due:
        return None
    first = episode.first
    if first.observed_at is None:
        return None
    waited = (first.change.at - first.observed_at).total_seconds()
    longest = max(one.seconds for one in others)
    # A Lease with room for more is not lost by what made the others a little late.
    if waited < 0.4 * episode.duration or longest < SLOW_SHARE * waited:
        return None
    keys = sorted({str(one.key) for one in others})
    sentence = (
        f"The API server was slow: the renewals of {len(keys) + 1} Leases came late in the same "
        f"seconds, up to {span(longest)}, and {scene.lease} was lost at {clock(episode.at)}"
    )
    fact = seen(Source.LEASES, f"late as well, by other holders: {some(keys)}")
    return likely(Cause.API_SLOW, sentence, fact)


def _late_elections(clue: Clue) -> int:
    return sum(one.kind is not Kind.HEARTBEAT for some in clue.late_around for one in some)


def late_together(episode: Episode, before: timedelta) -> list[LateWriter]:
    """Return the late renewals of other hosts' Leases from `before` the last renewal on."""
    loser = None if episode.loser is None else episode.loser.host
    since = plus(episode.lost_at, -before)
    until = plus(episode.at, timedelta(seconds=episode.rhythm))
    parts = {id(some): some for clue in episode.clues for some in clue.late_around}
    found = {(one.key, one.at): one for some in parts.values() for one in some}
    return [
        one
        for one in found.values()
        if one.key != episode.key
        and _host(one.holder) != loser
        and one.at >= since
        and plus(one.at, -timedelta(seconds=one.seconds)) <= until
    ]


def _host(holder: str) -> str | None:
    one = contender(holder)
    return None if one is None else one.host


def silences(episode: Episode) -> list[Silence]:
    """Return the silences that say something, of all clues.

    The renewals of a holder that died are missing in any case.
    """
    found = {one.since: one for clue in episode.clues for one in clue.silences}
    return [
        one for one in found.values() if one.expected - one.seconds / episode.rhythm >= EXPECTED
    ]


def silence_of_all(episode: Episode) -> Silence | None:
    """Return the silence that covers most of the time from the last renewal to the loss."""
    first = episode.first
    if first.observed_at is None:
        return None
    longest = max(first.silences, key=lambda one: overlap([one], first), default=None)
    waited = (first.change.at - first.observed_at).total_seconds()
    if longest is None or longest.seconds <= BRIEF.total_seconds():
        return None
    if overlap([longest], first) < COVERED * waited:
        return None
    return longest


def overlap(quiet: list[Silence], clue: Clue) -> float:
    """Return the seconds of silence between the last renewal and the change."""
    since, until = clue.observed_at or clue.change.at, clue.change.at
    return sum(
        max(0.0, (min(one.until, until) - max(one.since, since)).total_seconds()) for one in quiet
    )


def broken_seconds(episode: Episode, known: Knowledge) -> float:
    """Return for how long our watch was broken between the last renewal and the change."""
    first = episode.first
    return known.broken(first.observed_at or first.change.at, first.change.at)


def _outage(scene: Scene, seconds: float, *, broken: bool) -> Verdict:
    at = clock(scene.episode.lost_at)
    sentence = (
        f"The API server was gone for {span(seconds)} from about {at} on: nobody wrote any Lease"
    )
    if broken:
        evidence = seen(Source.LEASES, f"our watch was broken for {span(seconds)} as well")
    else:
        evidence = seen(Source.LEASES, f"no Lease was written for {span(seconds)}, by anybody")
    return likely(Cause.API_OUTAGE, sentence, evidence)


def _identity(scene: Scene) -> Verdict | None:
    """An API server that comes back replaces the Lease that announces it."""
    episode = scene.episode
    if episode.kind is not Kind.IDENTITY:
        return None
    since = episode.at.timestamp() - AROUND
    broken = any(
        (one.why is Missing.LOST or one.of_all)
        and (one.until is None or one.until.timestamp() >= since)
        and (episode.at - one.since).total_seconds() >= 5
        for one in scene.known.breaks
    )
    longest = max(
        [one.seconds for one in silences(episode) if one.until.timestamp() >= since], default=0.0
    )
    if not broken and longest < OUTAGE:
        return None
    sentence = f"The API server came back at {clock(episode.at)} and announced itself anew"
    evidence = seen(Source.LEASES, f"{scene.lease} was written by the API server itself")
    return likely(Cause.API_OUTAGE, sentence, evidence)


def _touches(one: Silence, clue: Clue) -> bool:
    return overlap([one], clue) > 0


def _spread(several: list[Silence]) -> float:
    return (several[-1].until - several[0].since).total_seconds()
