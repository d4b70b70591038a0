"""How the holder's process ended, if it did: killed for memory, crashed, starved, cut off."""

from datetime import datetime, timedelta

import msgspec

from leases.domain.cause.clue import Episode, OverdueInterval, late_counts_for
from leases.domain.cause.facts import NodeFact, PodFact
from leases.domain.cause.rules.api import late_together, silences
from leases.domain.cause.scene import (
    BLUR,
    Scene,
    Verdict,
    certain,
    clock,
    likely,
    possible,
    seen,
    span,
)
from leases.domain.change import ChangeType
from leases.domain.incident import Cause, Evidence, Source

OOM = "OOMKilled"
LATE = 1.8  # rhythms: a renewal that took longer was late
NEVER_IN_TIME = 45.0  # seconds after which a dead node has been noticed
BACK_OFF = "CrashLoopBackOff"
LOOPS = 3  # restarts: the kubelet waits before the second one, and ever longer from then on
SAME_SECONDS = timedelta(seconds=5)  # around a loss, in which others are late too


def killed_for_memory(scene: Scene) -> Verdict | None:
    """The kernel killed the container."""
    pod = scene.ended()
    if pod is None or pod.exit_reason != OOM:
        return None
    at, how = _exit_time(pod), f"{OOM}, exit code {pod.exit_code}{_restarts(pod)}"
    return certain(
        Cause.OOM_KILLED,
        f"{pod.key.name}, which held {scene.lease}, was killed for memory at {at}",
        seen(Source.PODS, f"Pod {pod.key} ended at {at}: {how}"),
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
    what = f"of {scene.lease} by {scene.pod_name or 'its holder'}"
    usual = f"every {span(episode.rhythm)} before"
    sentence = (
        f"The renewals {what} came ever later ({numbers} s, {usual}) until it was lost at "
        f"{clock(episode.at)}"
    )
    if len(late) == 1:
        sentence = (
            f"A renewal {what} came late ({numbers} s, {usual}), and it was lost at "
            f"{clock(episode.at)}"
        )
    others = late_together(episode, SAME_SECONDS)
    alike = len({one.key for one in others})
    fact = seen(Source.LEASES, "no other Lease was late in these seconds")
    if others:
        fact = seen(Source.LEASES, f"{_were(alike)} late in these seconds as well")
    if alike < 2 and len(late) >= 2 and longest >= 0.3 * episode.duration and growing:
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

    horizon = episode.lost_at.timestamp() - late_counts_for(episode.duration)
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
    at, what = _exit_time(pod), f"{pod.exit_reason or 'ended'}, {how}{_restarts(pod)}"
    fact = seen(Source.PODS, f"Pod {pod.key} ended at {at}: {what}")
    loop = _crash_loop(scene, pod, f"{pod.key.name}, which held {scene.lease}, ended", how)
    if loop is not None:
        return msgspec.structs.replace(loop, evidence=(fact, *loop.evidence))
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
    if began_anew(episode, pod):
        sentence = (
            f"{pod.key.name}, which held {scene.lease}, ended after {clock(episode.lost_at)}: its "
            f"container was started again by {clock(pod.ran_from or episode.at)}"
        )
        return likely(Cause.CRASH, sentence, fact)
    if pod.exit_code == 0:
        return possible(Cause.GRACEFUL_STOP, sentence, fact)
    if episode.opening is ChangeType.RELEASED:
        return possible(Cause.CRASH, sentence, fact)
    return likely(Cause.CRASH, sentence, fact)


def _crash_loop(scene: Scene, pod: PodFact, what: str, how: str) -> Verdict | None:
    """The container ends again and again, and the kubelet waits before it starts it again."""
    waits = next((one for one in scene.own if one.waiting == BACK_OFF), None)
    event = scene.event("BackOff")
    restarts = max(one.restarts for one in scene.own)
    if restarts < LOOPS or (waits is None and event is None):
        return None
    facts = []
    if waits is not None:
        text = f"Pod {waits.key} waited in {BACK_OFF} at {clock(waits.read_at)}"
        facts.append(seen(Source.PODS, text))
    if event is not None:
        facts.append(seen(Source.EVENTS, f"BackOff at {clock(event.at)}: {event.message}"))
    sentence = f"{what} at {_exit_time(pod)} ({how}), as it did {restarts} times: a crash loop"
    return likely(Cause.CRASH_LOOP, sentence, *facts)


def began_anew(episode: Episode, pod: PodFact) -> bool:
    """Whether the container that ended was started after the loss: the one before it held."""
    return pod.ran_from is not None and pod.ran_from > episode.lost_at


def gave_up(episode: Episode, pod: PodFact) -> bool:
    """Whether the process lived on long after its last renewal: it tried, and could not.

    An elector gives up at its deadline, two thirds of the duration; one that dies does so before
    its next renewal.
    """
    if pod.exited_at is None or episode.opening is ChangeType.RELEASED or began_anew(episode, pod):
        return False
    if episode.first.change.inferred:  # it may have renewed while we did not watch
        return False
    lived = (pod.exited_at - episode.lost_at).total_seconds()
    return lived > 1.3 * episode.rhythm + 2.0


def cut_off(scene: Scene) -> Verdict | None:
    """It ran out although the process was alive, or the process came back as if it held it."""
    episode = scene.episode
    back = came_back(scene)
    if back is not None:
        return back
    if episode.opening not in (ChangeType.EXPIRED, ChangeType.TAKEN_OVER, ChangeType.REPLACED):
        return None
    alive = _ran_on(scene, episode.at)
    if not alive or scene.ended() is not None:
        return None
    pod = alive[0]
    sentence = (
        f"{pod.key.name} could not renew {scene.lease} from {clock(episode.lost_at)} on, "
        "though it ran"
    )
    fact = seen(Source.PODS, f"Pod {pod.key} ran at {clock(pod.read_at)}{_not_restarted(pod)}")
    noticed = [one for one in scene.nodes if _stayed_well(episode, one)]
    node = [seen(Source.NODES, f"Node {scene.node} was ready")] if noticed else []
    ready = _stayed_ready(scene, alive)
    later = any(_in_time(episode, one.read_at) for one in alive) or _ended_later(scene)
    if ready is not None and (noticed or later):
        return likely(Cause.PARTITION, sentence, fact, ready, *node)
    # A process that stood still does the same.
    return possible(Cause.PARTITION, sentence, fact, *node)


def _stayed_well(episode: Episode, node: NodeFact) -> bool:
    """Whether a node is ready when its death would have been noticed, and was all the time."""
    since = node.ready_since
    return (
        node.ready == "True"
        and not node.gone
        and (since is None or since <= episode.lost_at + BLUR)
        and _in_time(episode, node.read_at)
    )


def _ended_later(scene: Scene) -> bool:
    """Whether the very process that lost it ended afterwards: its node lived."""
    later = scene.ended_later()
    return later is not None and not began_anew(scene.episode, later)


def _in_time(episode: Episode, read_at: datetime) -> bool:
    return (read_at - episode.lost_at).total_seconds() >= NEVER_IN_TIME


def _ran_on(scene: Scene, since: datetime) -> list[PodFact]:
    """Return the readings that show the holder's own container running after the loss."""
    lost_at = scene.episode.lost_at + BLUR
    return [
        one
        for one in scene.live
        if one.read_at >= since
        and one.deleted_at is None
        and one.phase in ("", "Running")
        and not one.waiting
        and (one.started_at is None or one.started_at <= lost_at)
    ]


def _stayed_ready(scene: Scene, alive: list[PodFact]) -> Evidence | None:
    """Its probes were answered all the time, so the process did not stand still."""
    lost_at = scene.episode.lost_at + BLUR
    for one in alive:
        if one.ready == "True" and one.ready_since is not None and one.ready_since <= lost_at:
            text = f"Pod {one.key} stayed Ready, from {clock(one.ready_since)} on"
            return seen(Source.PODS, f"{text}, and was at {clock(one.read_at)}")
    return None


def _restarts(pod: PodFact) -> str:
    if not pod.restarts:
        return ""
    return f", restarted {pod.restarts} time{'s' if pod.restarts > 1 else ''}"


def _not_restarted(pod: PodFact) -> str:
    if not pod.restarts:
        return ", not restarted before"
    since = f", the last time at {clock(pod.started_at)}" if pod.started_at is not None else ""
    return f"{_restarts(pod)} before{since}"


def _were(others: int) -> str:
    return f"{others} other Lease{'s were' if others > 1 else ' was'}"


def came_back(scene: Scene) -> Verdict | None:
    """The very same process renewed again after its Lease had run out."""
    episode = scene.episode
    loser = episode.loser
    back = next((c for c in episode.clues if c.change.change is ChangeType.RECOVERED), None)
    if back is not None and back.change.fields:  # an edit of its duration
        return None
    if loser is None or back is None or episode.opening is not ChangeType.EXPIRED:
        return None
    silent = (back.change.at - episode.lost_at).total_seconds()
    sentence = (
        f"{loser.identity} did not renew {scene.lease} for {span(silent)} and then went on as "
        f"its holder at {clock(back.change.at)}"
    )
    alive = _ran_on(scene, back.change.at)
    unbroken = bool(alive) and scene.ended() is None and not _restarted_since(scene)
    if not loser.has_suffix and not unbroken:
        return None
    facts = []
    if loser.has_suffix:
        text = "the identity names one process: it was never restarted"
        facts.append(seen(Source.LEASES, text))
    if unbroken:
        facts.append(seen(Source.PODS, f"Pod {alive[0].key} was not restarted meanwhile"))
    ready = _stayed_ready(scene, alive)
    if ready is not None:
        return likely(Cause.PARTITION, sentence, *facts, ready)
    return possible(Cause.PARTITION, sentence, *facts)  # or it stood still


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
