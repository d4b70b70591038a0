"""The verdict on one episode: that of the first rule that is surer than possible."""

from collections.abc import Callable
from datetime import datetime

from leases.domain.cause.clue import Clue
from leases.domain.cause.rules.api import api_trouble, waited_out
from leases.domain.cause.rules.handover import by_shape, scaled_down, stopped
from leases.domain.cause.rules.place import drained, evicted, heartbeat, node_down
from leases.domain.cause.rules.process import cut_off, ended, gave_up, killed_for_memory, starved
from leases.domain.cause.rules.writes import by_hand, deleted, preferred, wrong_clock
from leases.domain.cause.scene import Scene, Verdict, clock, possible, seen
from leases.domain.change import ChangeType
from leases.domain.incident import Cause, Confidence, Source
from leases.domain.kind import Kind

Rule = Callable[[Scene], Verdict | None]


def _died_at_once(scene: Scene) -> Verdict | None:
    """A container that ended with its last renewal was not starved, however late that came."""
    pod = scene.ended()
    if pod is None or gave_up(scene.episode, pod) or scene.episode.opening is ChangeType.RELEASED:
        return None
    return None if scene.stopped() else ended(scene)


_RULES: tuple[Rule, ...] = (
    waited_out,
    by_hand,
    preferred,
    killed_for_memory,
    api_trouble,
    deleted,
    wrong_clock,
    evicted,
    drained,
    node_down,
    heartbeat,
    _died_at_once,
    starved,
    scaled_down,
    stopped,
    ended,
    cut_off,
    by_shape,
)


_OF_ALL = (waited_out, api_trouble)


def judge(scene: Scene, *, alone: bool = False) -> Verdict:
    """Return the verdict on one episode, from what is known now.

    `alone`: whatever befell all Leases together.
    """
    best: Verdict | None = None
    for rule in _RULES:
        if alone and rule in _OF_ALL:
            continue
        verdict = rule(scene)
        if verdict is None:
            continue
        if verdict.confidence is not Confidence.POSSIBLE:
            return verdict
        best = best or verdict
    return best or _unknown(scene)


def _unknown(scene: Scene) -> Verdict:
    episode = scene.episode
    loser = "its holder" if episode.loser is None else episode.loser.host
    at = clock(episode.at)
    if episode.kind is Kind.LOCK and episode.opening is ChangeType.EXPIRED:
        return possible(Cause.UNKNOWN, f"The lock {scene.lease} ran out at {at} in {loser}'s hands")
    if (acquired := _unrenewed_since(episode.first)) is not None:
        said = f"nobody renewed {scene.lease} after {loser} acquired it at {clock(acquired)}"
        return possible(Cause.UNKNOWN, f"{said}, so it ran out at {at}")
    if episode.opening in (ChangeType.EXPIRED, ChangeType.TAKEN_OVER):
        sentence = f"{loser} stopped renewing {scene.lease} at {clock(episode.lost_at)}"
        read = [one.read_at for one in scene.pods] + [one.read_at for one in scene.nodes]
        was_asked = scene.known.refusals or (read and max(read) > episode.at)
        more = "; nothing else tells why" if was_asked else ""
        return possible(Cause.CRASH, sentence, seen(Source.LEASES, f"it ran out at {at}{more}"))
    word = episode.opening.value.replace("_", " ")
    return possible(Cause.UNKNOWN, f"{scene.lease} was {word} at {at}: nothing tells why")


def _unrenewed_since(clue: Clue) -> datetime | None:
    """When its holder acquired a Lease that nobody renewed since, where nobody saw who wrote that:
    it may have been a person."""
    if clue.change.change is not ChangeType.EXPIRED or clue.usual_writer or clue.before is None:
        return None
    acquired = clue.before.spec.acquire_time
    never = not clue.renewals_seen and acquired == clue.before.spec.renew_time
    return acquired if never else None
