"""What happened while nobody watched: told by dated witnesses alone, else `unwatched`.

A witness is a fact with its own time: a container that ended, a Pod that was deleted or made, an
Event, a node's condition, a field manager's write. A Lease that ran out, or that another one holds
now, shows that something happened, and not why.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec

from leases.domain.cause.clue import Episode
from leases.domain.cause.facts import EARLIEST, Break, Knowledge
from leases.domain.cause.scene import BLUR, Scene, Verdict, clock, possible, seen
from leases.domain.change import ChangeType
from leases.domain.incident import Cause, Confidence, Source

LATELY = timedelta(seconds=150)  # before a loss, in which its renewals tell more
JUST_BEFORE = timedelta(seconds=30)
BY_SIGNAL = 128  # exit codes from here on: another one killed it
# These are told by what was written last, not by when somebody wrote.
_SILENT = (
    ChangeType.EXPIRED, ChangeType.TAKEN_OVER, ChangeType.REPLACED, ChangeType.RESTARTED,
)  # fmt: skip
_PROCESS = (Cause.OOM_KILLED, Cause.CRASH, Cause.CRASH_LOOP, Cause.RESTART_IN_PLACE)
_STOPPED = (
    Cause.GRACEFUL_STOP, Cause.EVICTED, Cause.DRAIN, Cause.SCALED_DOWN, Cause.ROLLOUT,
)  # fmt: skip
_WRITTEN = (Cause.BY_HAND, Cause.PREFERRED_HOLDER)
_OF_ALL = (Cause.API_OUTAGE, Cause.API_SLOW)


def when(episode: Episode) -> tuple[datetime, datetime]:
    """Return the time in which it was lost: a silence, or the moment of a write."""
    first = episode.first
    change = first.change
    if change.inferred:
        since = change.inferred_since or EARLIEST
        if episode.opening in _SILENT and first.observed_at is not None:
            since = min(since, first.observed_at)
        return since, max(change.at, change.observed_at)
    if episode.opening in _SILENT and first.observed_at is not None and not _held_on(episode):
        return first.observed_at, change.at
    return change.at, change.at


def _held_on(episode: Episode) -> bool:
    """Whether its holder had renewed it by its own clock when another one took it all the same."""
    before = episode.first.before
    if episode.opening is not ChangeType.REPLACED or before is None:
        return False
    renewed = before.spec.renew_time
    return renewed is not None and episode.at - renewed < _due(episode)


def _due(episode: Episode) -> timedelta:
    """Return how long after a renewal the next one is due at the latest."""
    return timedelta(seconds=1.5 * episode.slowest + 2.0)


def unwatched_time(episode: Episode, known: Knowledge) -> Break | None:
    """Return the time that nobody watched in which it was lost, or its next renewal was due."""
    since, until = when(episode)
    first = episode.first
    # That a time ran out in a pause tells nothing: its holder was silent for so long before.
    ran_out = episode.opening is ChangeType.EXPIRED and first.observed_at is not None
    if ran_out or (not first.change.inferred and episode.opening in _SILENT):
        until = min(until, since + (timedelta(0) if first.put else _due(episode)))
    if ran_out and not first.put:  # its next renewal was not due before
        since += timedelta(seconds=episode.rhythm)
    return known.unwatched(since, until) if since < until else None


def told(scene: Scene, verdict: Verdict, gap: Break | None) -> Verdict:
    """Return the verdict if it has a witness from that time, else that nobody knows."""
    if verdict.confidence is Confidence.LIKELY and _may_be_other(scene, verdict, gap):
        verdict = msgspec.structs.replace(verdict, confidence=Confidence.POSSIBLE)
    if gap is None or verdict.cause in _OF_ALL or _has_witness(scene, verdict):
        return verdict
    return nobody_watched(gap, scene)


def told_alone(scene: Scene, verdict: Verdict, gap: Break) -> Verdict:
    """Return the verdict on a loss in an outage after which others were back long before, if a
    dated witness tells it, else that nobody knows.
    """
    found = told(scene, verdict, gap)
    is_of_all = found.cause in (*_OF_ALL, Cause.UNWATCHED)
    return did_not_come_back(scene.episode) if is_of_all else found


def did_not_come_back(episode: Episode) -> Verdict:
    who = "Its holder" if episode.loser is None else episode.loser.host
    sentence = (
        f"{who} did not come back when the API server did; {episode.key} ran out at "
        f"{clock(episode.at)}"
    )
    lost = clock(episode.lost_at)
    fact = f"it renewed last at {lost}; nobody saw whether it stopped then or later"
    return possible(Cause.UNWATCHED, sentence, seen(Source.LEASES, fact))


def _may_be_other(scene: Scene, verdict: Verdict, gap: Break | None) -> bool:
    """Whether what nobody saw could turn the story round.

    A process that loses its Lease ends itself: then its end is no cause. One that was starved was
    late before it was lost.
    """
    episode = scene.episode
    loser = episode.loser
    if verdict.cause in (Cause.PARTITION, Cause.STARVED):
        return _began_lately(scene, LATELY)
    if verdict.cause is Cause.GRACEFUL_STOP and loser is not None and not loser.is_pod:
        # No template: nobody saw whether its whole set was rolled out.
        return gap is not None or _began_lately(scene, JUST_BEFORE)
    ended = (one.exit_code for one in scene.own if one.exited_at is not None)
    killed = any(code is not None and code >= BY_SIGNAL for code in ended)
    if verdict.cause not in _PROCESS or killed:
        return False
    return gap is not None or _began_lately(scene, JUST_BEFORE)


def _began_lately(scene: Scene, before: timedelta) -> bool:
    """Whether we began to watch so shortly before the loss, or after it."""
    episode = scene.episode
    since = max(episode.lost_at, EARLIEST + before) - before
    breaks = (one for one in scene.known.breaks if one.since > EARLIEST)
    return any(one.overlaps(since, episode.at) for one in breaks)


def nobody_watched(gap: Break, scene: Scene) -> Verdict:
    lease, now = scene.lease, scene.now
    unseen = [one.change for one in scene.episode.clues if one.change.inferred]
    last = unseen[-1] if unseen else scene.episode.first.change
    holder = None if last.change is ChangeType.EXPIRED else last.holder
    fact = f"{lease}: {last.change.value.replace('_', ' ')}, " + (
        f"held by {holder}" if holder else "without a holder"
    )
    evidence = seen(Source.LEASES, f"{fact}, noticed at {clock(last.observed_at)}")
    lost = scene.episode.first.change
    if not is_lost_later(scene.episode, gap):
        return possible(Cause.UNWATCHED, f"{happened(gap, now, scene.episode)}: {lease}", evidence)
    then = "ran out" if lost.change is ChangeType.EXPIRED else f"went to {lost.holder}"
    silent = f"{lost.previous_holder or lost.holder} fell silent"
    sentence = (
        f"{silent} {within(gap.since, gap.until or now)}, while nobody watched; {lease} {then} at "
        f"{clock(lost.at)}"
    )
    return possible(Cause.UNWATCHED, sentence, evidence)


def is_lost_later(episode: Episode, gap: Break) -> bool:
    """Whether a silence that began in that time ended before our eyes."""
    lost = episode.first.change
    return episode.opening in _SILENT and not lost.inferred and lost.at >= (gap.until or lost.at)


def happened(gap: Break, now: datetime, *episodes: Episode) -> str:
    """Say when these happened, at the earliest after the last that was seen of one of them."""
    until = gap.until or now
    seen_last = (when(one)[0] if one.first.change.inferred else gap.since for one in episodes)
    since = max(gap.since, min(seen_last, default=gap.since))
    return f"Happened {within(since, until)}, while nobody watched"


def within(since: datetime, until: datetime) -> str:
    """Say in which time it was; nobody knows from when on before a first start."""
    if since == EARLIEST:
        return f"before {clock(until)}"
    return f"between {between(since, until)}"


def nobody_took_it(sentence: str, at: datetime) -> str:
    """Return how a loss is told whose story ends at an outage."""
    return f"{sentence}; nobody had taken it when the API server went at {clock(at)}"


def between(since: datetime, until: datetime) -> str:
    """Two times of day in UTC, with their days where these differ."""
    if since.date() == until.date():
        return f"{clock(since)} and {clock(until)}"
    return f"{since:%Y-%m-%d %H:%M:%S} and {until:%Y-%m-%d %H:%M:%S}"


def _has_witness(scene: Scene, verdict: Verdict) -> bool:
    since, until = when(scene.episode)
    since, until = max(since, EARLIEST + BLUR) - BLUR, max(until + BLUR, scene.ends_by)
    return any(since <= at <= until for at in _dates(scene, verdict))


def _dates(scene: Scene, verdict: Verdict) -> Iterator[datetime]:
    """Yield the times of the facts that can speak for a cause."""
    cause, found = verdict.cause, list[datetime | None]()
    if cause in _PROCESS:
        found += [one.exited_at for one in scene.own]
    elif cause in _STOPPED:
        found += [one.at for one in (*scene.pod_events, *scene.owner_events)]
        found += _released(scene)
        found += scene.asked_at()
        found += _made(scene) if cause is Cause.ROLLOUT else []
    elif cause is Cause.NODE_DOWN:
        found += [one.ready_since for one in scene.nodes if one.ready != "True"]
        found += [one.at for one in scene.known.events("Node", scene.node)]
    elif cause in _WRITTEN and scene.episode.opening is ChangeType.DELETED:
        # A deletion has no writer: who made it again does not tell who deleted it.
        last = scene.episode.first.before
        found += [] if last is None else [last.metadata.deletion_timestamp]
    elif cause in _WRITTEN:
        found += [
            manager.time
            for clue in scene.episode.clues
            for manager in clue.managers
            if manager.name == clue.change.writer
        ]
    yield from (one for one in found if one is not None)


def _released(scene: Scene) -> list[datetime | None]:
    """Return when its holder says that it released it."""
    first = scene.episode.first
    if first.change.change is not ChangeType.RELEASED or first.after is None:
        return []
    return [first.after.spec.renew_time]


def _made(scene: Scene) -> list[datetime | None]:
    """Return when the Pod of the next holder was made."""
    winner = scene.episode.winner
    if winner is None:
        return []
    namespace = scene.live[0].key.namespace if scene.live else scene.episode.key.namespace
    return [one.created_at for one in scene.known.pods(winner.host, namespace) if not one.gone]
