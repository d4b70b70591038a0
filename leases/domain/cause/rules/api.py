"""The API server was gone, or slow: nobody wrote any Lease, or our own watch was broken."""

from leases.domain.cause.clue import Clue, Episode, Silence
from leases.domain.cause.facts import Knowledge
from leases.domain.cause.incident import Cause, Source
from leases.domain.cause.scene import Scene, Verdict, clock, likely, possible, seen, span
from leases.domain.change import ChangeType
from leases.domain.kind import Kind

EXPECTED = 4.0  # writes of others that did not come: fewer prove nothing
OUTAGE = 10.0  # seconds of silence; a shorter one is slowness
COVERED = 0.45  # of the time since the last renewal
SHARE = 0.33  # of that time, in one silence
AROUND = 30.0  # seconds in which the API server's own Leases come and go


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
    waited = (first.change.at - first.observed_at).total_seconds()
    covered = overlap(quiet, first) + broken
    if waited <= 0 or covered < COVERED * waited or covered < 0.4 * episode.duration:
        return None
    longest = max([one.seconds for one in quiet if _touches(one, first)], default=0.0)
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


def silences(episode: Episode) -> list[Silence]:
    """Return the silences that say something, of all clues.

    The renewals of a holder that died are missing in any case.
    """
    found = {one.since: one for clue in episode.clues for one in clue.silences}
    return [
        one for one in found.values() if one.expected - one.seconds / episode.rhythm >= EXPECTED
    ]


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
        (one.until is None or one.until.timestamp() >= since)
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
