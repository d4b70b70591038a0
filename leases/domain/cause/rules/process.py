"""How the holder's process ended, if it did: killed for memory, crashed, starved, cut off."""

from leases.domain.cause.clue import Episode, OverdueInterval
from leases.domain.cause.facts import PodFact
from leases.domain.cause.incident import Cause, Source
from leases.domain.cause.rules.api import silences
from leases.domain.cause.scene import Scene, Verdict, certain, clock, likely, possible, seen, span
from leases.domain.change import ChangeType

OOM = "OOMKilled"
LATE = 1.8  # rhythms: a renewal that took longer was late
NEVER_IN_TIME = 45.0  # seconds after which a dead node has been noticed
RECENT = 150.0  # seconds


def killed_for_memory(scene: Scene) -> Verdict | None:
    """The kernel killed the container."""
    pod = scene.ended()
    if pod is None or pod.exit_reason != OOM:
        return None
    return certain(
        Cause.OOM_KILLED,
        f"{pod.key.name}, which held {scene.lease}, was killed for memory at {_exit_time(pod)}",
        seen(Source.PODS, f"Pod {pod.key}: {OOM}, exit code {pod.exit_code}"),
    )


def starved(scene: Scene) -> Verdict | None:
    """The renewals of this holder alone came ever later before the Lease was lost."""
    episode = scene.episode
    if episode.opening not in (
        ChangeType.EXPIRED, ChangeType.RELEASED, ChangeType.TAKEN_OVER, ChangeType.REPLACED,
    ):  # fmt: skip
        return None
    late = late_intervals(episode)
    if not late:
        return None
    longest = max(late)
    growing = late[-1] >= 0.8 * longest or sum(late[len(late) // 2 :]) > sum(late[: len(late) // 2])
    numbers = ", ".join(f"{seconds:.1f}" for seconds in late[-6:])
    sentence = (
        f"The renewals of {scene.lease} by {scene.pod_name or 'its holder'} came ever later "
        f"({numbers} s, every {span(episode.rhythm)} before) until it was lost at "
        f"{clock(episode.at)}"
    )
    fact = seen(Source.LEASES, "no other Lease was late in these seconds")
    if len(late) >= 2 and longest >= 0.3 * episode.duration and growing:
        event = scene.event("Unhealthy")
        more = [] if event is None else [seen(Source.EVENTS, f"Unhealthy: {event.message}")]
        return likely(Cause.STARVED, sentence, fact, *more)
    if longest >= 0.5 * episode.duration:
        return possible(Cause.STARVED, sentence, fact)
    return None


def late_intervals(episode: Episode) -> list[float]:
    """Return the intervals of the last minutes that were late for this holder alone."""
    least = max(LATE * episode.rhythm, episode.rhythm + 1.0)
    first, quiet = episode.first, silences(episode)

    def own(one: OverdueInterval) -> bool:
        """Whether the silence of all does not explain it."""
        since = one.at.timestamp() - one.seconds
        shared = sum(
            max(0.0, min(s.until.timestamp(), one.at.timestamp()) - max(s.since.timestamp(), since))
            for s in quiet
        )
        return shared < 0.5 * one.seconds

    horizon = episode.lost_at.timestamp() - max(RECENT, 8 * episode.duration)
    began = first.held_since.timestamp() if first.held_since is not None else horizon
    noted = [
        one.seconds
        for one in first.overdue
        if one.seconds >= least and one.at.timestamp() > max(horizon, began) and own(one)
    ]
    remembered = [seconds for seconds in first.renew_intervals if seconds >= least]
    if quiet and not noted:
        return []
    return noted if len(noted) >= len(remembered) else remembered


def ended(scene: Scene) -> Verdict | None:
    """The container ended between the last renewal and the loss, and the Pod stayed."""
    episode = scene.episode
    pod = scene.ended()
    if pod is None:
        return None
    how = f"exit code {pod.exit_code}" if pod.exit_code is not None else "it ended"
    fact = seen(Source.PODS, f"Pod {pod.key}: {pod.exit_reason or 'ended'}, {how}")
    at = _exit_time(pod)
    if _same_host(episode):
        return likely(
            Cause.RESTART_IN_PLACE,
            f"{pod.key.name}, which held {scene.lease}, was started anew after it ended at {at}",
            fact,
            seen(Source.LEASES, f"the next holder is the same Pod: {_winner(episode)}"),
        )
    if gave_up(episode, pod):
        return likely(
            Cause.PARTITION,
            f"{pod.key.name} could not renew {scene.lease} from {clock(episode.lost_at)} on and "
            f"ended itself at {at}",
            fact,
        )
    sentence = f"{pod.key.name}, which held {scene.lease}, ended at {at} ({how})"
    if pod.exit_code == 0:
        return possible(Cause.GRACEFUL_STOP, sentence, fact)
    if episode.opening is ChangeType.RELEASED:
        return possible(Cause.CRASH, sentence, fact)
    return likely(Cause.CRASH, sentence, fact)


def gave_up(episode: Episode, pod: PodFact) -> bool:
    """Whether the process lived on long after its last renewal: it tried, and could not."""
    if pod.exited_at is None or episode.opening is ChangeType.RELEASED:
        return False
    lived = (pod.exited_at - episode.lost_at).total_seconds()
    return lived > 2 * episode.rhythm + 2.0


def cut_off(scene: Scene) -> Verdict | None:
    """It ran out although the process was alive, or the process came back as if it held it."""
    episode = scene.episode
    back = came_back(scene)
    if back is not None:
        return back
    if episode.opening not in (ChangeType.EXPIRED, ChangeType.TAKEN_OVER, ChangeType.REPLACED):
        return None
    alive = [one for one in scene.live if one.read_at >= episode.at and one.deleted_at is None]
    if not alive or scene.ended() is not None or alive[0].phase not in ("", "Running"):
        return None
    read = alive[0].read_at
    sentence = (
        f"{alive[0].key.name} could not renew {scene.lease} from {clock(episode.lost_at)} on, "
        "though it ran"
    )
    fact = seen(Source.PODS, f"Pod {alive[0].key} ran at {clock(read)}, not restarted before")
    well = [one for one in scene.nodes if one.ready == "True" and not one.gone]
    noticed = [
        one for one in well if (one.read_at - episode.lost_at).total_seconds() >= NEVER_IN_TIME
    ]
    if noticed or scene.ended_later() is not None:
        node = [seen(Source.NODES, f"Node {scene.node} was ready")] if noticed else []
        return likely(Cause.PARTITION, sentence, fact, *node)
    return possible(Cause.PARTITION, sentence, fact)


def came_back(scene: Scene) -> Verdict | None:
    """The very same process renewed again after its Lease had run out."""
    episode = scene.episode
    loser = episode.loser
    back = next((c for c in episode.clues if c.change.change is ChangeType.RECOVERED), None)
    if loser is None or back is None or episode.opening is not ChangeType.EXPIRED:
        return None
    silent = (back.change.at - episode.lost_at).total_seconds()
    sentence = (
        f"{loser.identity} did not renew {scene.lease} for {span(silent)} and then went on as "
        f"its holder at {clock(back.change.at)}"
    )
    if loser.has_suffix:
        fact = seen(Source.LEASES, "the identity names one process: it was never restarted")
        return likely(Cause.PARTITION, sentence, fact)
    alive = [one for one in scene.live if one.read_at >= back.change.at]
    if alive and scene.ended() is None and not _restarted_since(scene):
        fact = seen(Source.PODS, f"Pod {alive[0].key} was not restarted meanwhile")
        return likely(Cause.PARTITION, sentence, fact)
    return None


def _restarted_since(scene: Scene) -> bool:
    since, back = scene.episode.lost_at, scene.episode.last.change.at
    return (
        any(one.started_at is not None and since <= one.started_at <= back for one in scene.live)
        or scene.replaced_pod()
    )


def _same_host(episode: Episode) -> bool:
    loser, winner = episode.loser, episode.winner
    return loser is not None and winner is not None and loser.host == winner.host


def _winner(episode: Episode) -> str:
    winner = episode.winner
    return "nobody" if winner is None else winner.identity


def _exit_time(pod: PodFact) -> str:
    return "an unknown time" if pod.exited_at is None else clock(pod.exited_at)
