"""A Pod that was stopped on purpose: a rollout, a scale to zero, or only a graceful stop.

From Leases alone a cause is `likely` if any other one needs a second event at the same time. A
release that a Pod of the same template follows stays `possible`: on SIGTERM a Pod writes the same
bytes, whether it was stopped, evicted, preempted or drained.
"""

from datetime import timedelta

from leases.domain.cause.clue import Contender
from leases.domain.cause.facts import EventFact, PodFact
from leases.domain.cause.scene import (
    BLUR,
    GRACE_PERIOD,
    Scene,
    Verdict,
    clock,
    likely,
    possible,
    seen,
    set_neighbours,
    span,
)
from leases.domain.change import ChangeType
from leases.domain.figures import held
from leases.domain.incident import Cause, Evidence, Source
from leases.domain.kind import Kind

LATELY = timedelta(seconds=45)  # a set goes on when its last Pod is ready
VACANT = timedelta(seconds=30)  # without a holder: nobody contends
# A rollout with the strategy Recreate goes to zero as well; its next ReplicaSet is up by then.
RECREATED = timedelta(seconds=40)
NO_POD_MADE = timedelta(seconds=100)  # an owner that is not at zero has made a Pod by then


def stopped(scene: Scene) -> Verdict | None:
    """The Pod was deleted: what came after it shows why."""
    if not scene.stopped():
        return None
    episode = scene.episode
    facts = _proof(scene)
    rolled = rolled_out(scene)
    if rolled is not None:
        return rolled
    scaled = scaled_down(scene)
    if scaled is not None:
        return scaled
    if episode.opening is ChangeType.RELEASED:
        sentence = f"{scene.pod_name} was stopped and released {scene.lease} at {clock(episode.at)}"
    else:
        # A list skips what came between.
        unseen = episode.first.change.inferred and episode.opening is not ChangeType.EXPIRED
        did = "perhaps released" if unseen else "did not release"
        sentence = (
            f"{scene.pod_name} was stopped and {did} {scene.lease}, which was lost at "
            f"{clock(episode.at)}"
        )
    if not _has_witness(scene):  # that its Pod is not there tells nothing: it may never have been
        return None
    if episode.open and episode.opening is ChangeType.RELEASED and _waits(scene) < VACANT:
        return possible(Cause.GRACEFUL_STOP, sentence, *facts)
    if _same_pod_again(scene):  # stopped, or rolled out: without a revision nothing shows which
        return possible(Cause.GRACEFUL_STOP, sentence, *facts)
    if scene.disrupted():
        return possible(Cause.GRACEFUL_STOP, sentence, *facts)
    return likely(Cause.GRACEFUL_STOP, sentence, *facts)


def _has_witness(scene: Scene) -> bool:
    """Whether its release, or anything dated, tells that the Pod went then: that it is not there
    now is of any time.
    """
    if scene.episode.opening is ChangeType.RELEASED:
        return True
    since = scene.episode.lost_at - BLUR
    dates = [one.at for one in (*scene.pod_events, *scene.owner_events)] + scene.asked_at()
    read = any(one.read_at >= since for one in scene.live)
    return read or any(since - GRACE_PERIOD <= at <= scene.until for at in dates)


def _same_pod_again(scene: Scene) -> bool:
    """Whether a Pod of the same name took over, and nothing shows that its set was not rolled out.

    A rollout makes the other Pods of the set anew as well: the one after it in the seconds before,
    the one before it when this one is ready.
    """
    loser, winner = scene.episode.loser, scene.episode.winner
    if loser is None or winner is None or loser.host != winner.host:
        return False
    if any(one.revision for one in scene.live):
        return False
    return not _others_stayed(scene)


def _others_stayed(scene: Scene) -> bool:
    """Whether the neighbours in its StatefulSet were there before, and still are."""
    loser = scene.episode.loser
    found = [scene.known.pods(key.name, key.namespace) for key in set_neighbours(scene)]
    there = [[one for one in readings if not one.gone] for readings in found]
    if loser is None or not any(there) or not all(found):
        return False
    long_ago, enough = scene.episode.at - LATELY, scene.episode.at + LATELY
    same = all(
        one.created_at is not None and one.created_at < long_ago for some in there for one in some
    )
    looked = all(some[-1].read_at >= enough for some in there if some)
    return same and looked


def _rolled_up(scene: Scene) -> EventFact | None:
    """Another ReplicaSet of the Deployment was scaled up then: this is a rollout."""
    owner = next((name for kind, name in scene.deployment if kind == "ReplicaSet"), "")
    return next(
        (
            one
            for one in scene.owner_events
            if one.reason == "ScalingReplicaSet"
            and one.message.startswith("Scaled up replica set ")
            and owner not in one.message.split()
        ),
        None,
    )


def rolled_out(scene: Scene) -> Verdict | None:
    """The next holder is of another template, or the Pod of a set was made anew by its set."""
    episode = scene.episode
    loser, winner = episode.loser, episode.winner
    if loser is None or winner is None:
        return None
    if loser.workload == winner.workload and loser.template and winner.template:
        if loser.template == winner.template:
            return None
        return likely(
            Cause.ROLLOUT,
            f"{loser.workload} was rolled out: {scene.lease} went from {loser.host} to "
            f"{winner.host} at {clock(episode.last.change.at)}",
            seen(
                Source.LEASES,
                f"the next holder is of another ReplicaSet: {loser.template}, {winner.template}",
            ),
            *_events(scene, "ScalingReplicaSet"),
        )
    revisions = _revisions(scene, winner.host)
    if len(revisions) > 1:
        return likely(
            Cause.ROLLOUT,
            f"{loser.workload} was rolled out: {scene.lease} went from {loser.host} to "
            f"{winner.host} at {clock(episode.last.change.at)}",
            seen(Source.PODS, f"their revisions differ: {', '.join(revisions)}"),
        )
    return _made_anew(scene, loser, winner)


def _made_anew(scene: Scene, loser: Contender, winner: Contender) -> Verdict | None:
    """A StatefulSet replaces its Pods one after another: the next holder is a new one."""
    episode = scene.episode
    mine = next((one for one in scene.live if one.owner_kind == "StatefulSet"), None)
    if mine is None or winner.host == loser.host or mine.created_at is None:
        return None
    others = [one for one in scene.known.pods(winner.host, mine.key.namespace) if not one.gone]
    made = next((one.created_at for one in others if one.owner_name == mine.owner_name), None)
    since = episode.at - LATELY
    if made is None or not (since <= made <= episode.last.change.at and mine.created_at < since):
        return None
    age = (episode.last.change.at - made).total_seconds()
    return likely(
        Cause.ROLLOUT,
        f"{loser.workload} was rolled out: {scene.lease} went from {loser.host} to "
        f"{winner.host} at {clock(episode.last.change.at)}",
        seen(Source.PODS, f"{winner.host} had been made anew {span(age)} before"),
    )


def scaled_down(scene: Scene) -> Verdict | None:
    """Its owner went to zero, and nobody holds it since."""
    episode = scene.episode
    if not episode.open or episode.opening not in (ChangeType.RELEASED, ChangeType.EXPIRED):
        return None
    zero = next((one for one in reversed(scene.owner_events) if _to_zero(one)), None)
    vacant = _waits(scene)
    since = clock(episode.at)
    rolled = _rolled_up(scene)
    if zero is not None and rolled is not None:
        sentence = f"{zero.key.name} was rolled out: nobody holds {scene.lease} since {since} yet"
        fact = seen(Source.EVENTS, f"{rolled.reason}: {rolled.message}")
        return likely(Cause.ROLLOUT, sentence, fact)
    if zero is not None:
        sentence = f"{zero.key.name} was scaled to zero: nobody holds {scene.lease} since {since}"
        conclude = likely if vacant >= RECREATED else possible
        return conclude(
            Cause.SCALED_DOWN, sentence, seen(Source.EVENTS, f"{zero.reason}: {zero.message}")
        )
    made = any(one.reason == "SuccessfulCreate" for one in scene.owner_events)
    if vacant < VACANT or made or rolled is not None or _is_there(scene):
        return None
    gone = [one for one in scene.owner_events if one.reason == "SuccessfulDelete"]
    if gone:
        sentence = f"{scene.lease} is vacant since {since}: its Pods were deleted, none was made"
        facts = [seen(Source.EVENTS, f"{one.reason}: {one.message}") for one in gone[-3:]]
        return likely(Cause.SCALED_DOWN, sentence, *facts)
    if scene.stopped():
        sentence = f"{scene.pod_name} was stopped, and nobody holds {scene.lease} since {since}"
        known = _has_witness(scene) and not _never_was(scene)
        conclude = likely if vacant >= NO_POD_MADE and known else possible
        return conclude(Cause.SCALED_DOWN, sentence, *_proof(scene))
    return None


def _is_there(scene: Scene) -> bool:
    """Whether its Pod is there still, or again: its containers were only started anew."""
    return bool(scene.pods) and not scene.pods[-1].gone and scene.pods[-1].deleted_at is None


def by_shape(scene: Scene) -> Verdict | None:
    """From Leases alone: who released, and who came next."""
    episode = scene.episode
    loser, winner = episode.loser, episode.winner
    at = clock(episode.at)
    if episode.opening is ChangeType.RESTARTED and loser is not None:
        sentence = f"{loser.identity} acquired {scene.lease} anew at {at}"
        return possible(Cause.RESTART_IN_PLACE, sentence)
    rolled = rolled_out(scene)
    if rolled is not None:
        return rolled
    if episode.opening is ChangeType.RELEASED:
        return _released(scene)
    if loser is None or winner is None or episode.opening is ChangeType.DELETED:
        return None
    if loser.identity == winner.identity:
        return _same_identity(scene, loser)
    if loser.host == winner.host:
        fact = seen(Source.LEASES, f"the next holder is the same host: {winner.identity}")
        sentence = f"{loser.host} was started anew and took {scene.lease} at {_last(scene)}"
        return likely(Cause.RESTART_IN_PLACE, sentence, fact)
    return None


def _same_identity(scene: Scene, loser: Contender) -> Verdict:
    """Whoever comes back under its name began anew, or stood still, or was only late.

    Source: k8s.io/client-go tools/leaderelection: an elector gives up before its Lease runs out
    (RenewDeadline is less than LeaseDuration), and one that finds its own identity keeps
    acquireTime and leaseTransitions (tryAcquireOrRenew).
    """
    episode = scene.episode
    sentence = f"{loser.identity} holds {scene.lease} again since {_last(scene)}"
    away = (episode.last.change.at - episode.at).total_seconds()
    # The Pods of a StatefulSet keep their names.
    is_known = episode.kind is Kind.ELECTION and bool(loser.ordinal) and not loser.has_suffix
    if is_known and away >= 2 * episode.rhythm:
        fact = "the same identity came back after the Lease had run out"
        return likely(Cause.RESTART_IN_PLACE, sentence, seen(Source.LEASES, fact))
    fact = "the same identity came back: it was started anew, or only held up"
    return possible(Cause.RESTART_IN_PLACE, sentence, seen(Source.LEASES, fact))


def _released(scene: Scene) -> Verdict:
    episode = scene.episode
    loser, winner = episode.loser, episode.winner
    who = "its holder" if loser is None else loser.host
    sentence = f"{who} released {scene.lease} at {clock(episode.at)}"
    if winner is None or loser is None:
        return _vacant(scene, sentence)
    gap = (episode.last.change.at - episode.at).total_seconds()
    sentence = f"{sentence}, and {winner.host} took it {span(gap)} later"
    facts = [seen(Source.LEASES, "the holder wrote the release itself; nothing ran out")]
    if loser.template and loser.host != winner.host:
        facts.append(seen(Source.LEASES, "both are of one ReplicaSet"))
    facts.append(seen(Source.LEASES, "a Pod that is evicted or drained releases in the same way"))
    return possible(Cause.GRACEFUL_STOP, sentence, *facts)


def _vacant(scene: Scene, sentence: str) -> Verdict:
    """Nobody took it: a Pod that was only stopped is made again, and contends."""
    waits = _waits(scene)
    if waits < VACANT or _is_there(scene) or _rolled_up(scene) is not None:
        return possible(Cause.GRACEFUL_STOP, sentence)
    sentence = f"{sentence}, and nobody took it at once"  # how long it lasts, the page counts
    if waits < NO_POD_MADE or scene.episode.kind is not Kind.ELECTION or _never_was(scene):
        return possible(Cause.SCALED_DOWN, sentence)
    fact = seen(Source.LEASES, f"nobody took it for {span(waits.total_seconds())}")
    return likely(Cause.SCALED_DOWN, sentence, fact)


def _never_was(scene: Scene) -> bool:
    """Whether its Pod was looked for, and nobody ever saw it: perhaps it runs elsewhere."""
    return bool(scene.pods) and not scene.live


def _last(scene: Scene) -> str:
    return clock(scene.episode.last.change.at)


def _waits(scene: Scene) -> timedelta:
    """How long somebody watched that nobody took it: nobody takes a Lease that is deleted."""
    since, until = scene.episode.at, scene.episode.ended_at or scene.now
    return timedelta(seconds=held(since, until, scene.known.blind(until)).watched)


def _to_zero(event: EventFact) -> bool:
    """Source: k8s.io/kubernetes pkg/controller/deployment/sync.go, scaleReplicaSet."""
    text = event.message.rstrip(".")
    return event.reason == "ScalingReplicaSet" and (text.endswith(" to 0") or " to 0 from " in text)


def _revisions(scene: Scene, host: str) -> list[str]:
    """Return the revisions of the loser's and the winner's Pod, if both are known and differ."""
    namespace = scene.live[0].key.namespace if scene.live else scene.episode.key.namespace
    winners = [one for one in scene.known.pods(host, namespace) if not one.gone and one.revision]
    losers = [one for one in scene.live if one.revision and one.read_at <= scene.episode.at + BLUR]
    if not winners or not losers or winners[-1].uid == losers[0].uid:
        return []
    return sorted({losers[0].revision, winners[-1].revision})


def _proof(scene: Scene) -> list[Evidence]:
    facts = []
    pod: PodFact | None = next((one for one in scene.own if one.deleted_at is not None), None)
    if pod is not None:
        facts.append(seen(Source.PODS, f"Pod {pod.key} was being deleted"))
    elif scene.live and any(one.gone for one in scene.pods):
        facts.append(seen(Source.PODS, f"Pod {scene.pod_name} is gone"))
    return [*facts, *_events(scene, "Killing")]


def _events(scene: Scene, reason: str) -> list[Evidence]:
    found = [
        e
        for e in (*scene.pod_events, *scene.owner_events)
        if e.reason == reason and (reason != "Killing" or e.at <= scene.until)
    ]
    return [seen(Source.EVENTS, f"{e.reason} at {clock(e.at)}: {e.message}") for e in found[-2:]]
