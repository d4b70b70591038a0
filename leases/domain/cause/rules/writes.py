"""What a write itself shows: a person's edit, a deletion, a preferred holder, a wrong clock."""

from datetime import timedelta

from leases.domain.cause.clue import (
    FORM_WRITER,
    Clue,
    Episode,
    Put,
    foreign_writer,
    is_human_writer,
)
from leases.domain.cause.scene import Scene, Verdict, certain, clock, likely, possible, seen, span
from leases.domain.cause.unwatched import between
from leases.domain.change import Change, ChangeType
from leases.domain.incident import Cause, Confidence, Source
from leases.domain.kind import Kind
from leases.domain.steady_clock import after

_GAPS = (ChangeType.RELEASED, ChangeType.EXPIRED)
MADE_AGAIN = timedelta(seconds=120)
WRONG_CLOCK = 3.0  # seconds by which a clock is wrong beyond doubt
# What may come before a deletion: a lock is taken, or the users of a Lease are removed first.
_BEFORE_DELETION = (
    ChangeType.CREATED, ChangeType.DELETED, ChangeType.RELEASED, ChangeType.EXPIRED,
)  # fmt: skip
_DID = {
    ChangeType.RELEASED: "emptied holderIdentity",
    ChangeType.RECONFIGURED: "changed",
    ChangeType.ACQUIRED: "set holderIdentity",
    ChangeType.REPLACED: "put another holderIdentity over the valid holder",
    ChangeType.TAKEN_OVER: "set holderIdentity",
}


def by_hand(scene: Scene) -> Verdict | None:
    """A field manager that is not the holder's moved the field."""
    episode = scene.episode
    first = episode.first
    writer = foreign_writer(first)
    if writer is None and (edited := _ran_out_by_edit(scene)) is not None:
        return edited
    if writer is None and first.put is not None:
        return _unrenewed(scene, first.put)
    if writer is None or ("preferredHolder" in first.change.fields and not is_human_writer(writer)):
        return None
    change = first.change
    if writer == FORM_WRITER:
        return _by_form(scene)
    did = _DID.get(change.change, "wrote it")
    if change.change is ChangeType.RECONFIGURED:
        did = f"changed {', '.join(change.fields) or 'it'}"
    elif change.change is not ChangeType.RELEASED:
        did = f"{did}: {change.holder}"
    sentence = f"{writer} {did} of {scene.lease} at {clock(change.at)}"
    facts = [seen(Source.LEASES, f"managedFields name {writer} as the writer of what changed")]
    if change.change is ChangeType.RELEASED and _keeps_duration(first):
        facts.append(seen(Source.LEASES, "a holder's own release also sets leaseDurationSeconds 1"))
    if episode.happened(ChangeType.EXPIRED) and change.holder:
        facts.append(seen(Source.LEASES, f"{change.holder} never renewed it"))
    confidence = Confidence.CERTAIN if is_human_writer(writer) else Confidence.LIKELY
    return Verdict(Cause.BY_HAND, confidence, sentence, tuple(facts), writer)


# Another Leaseboard may have written it.
BY_FORM = "managedFields name leaseboard: the audit trail of the one that wrote it has who, and why"


def _by_form(scene: Scene) -> Verdict:
    """A form wrote it; who sent it, and why, is in the audit trail."""
    change = scene.episode.first.change
    if change.change is ChangeType.RELEASED:
        what = f"{scene.lease} was released"
    elif change.change is ChangeType.RECONFIGURED:
        many = len(change.fields) > 1 or "labels" in change.fields or "annotations" in change.fields
        fields = ", ".join(change.fields) or "the configuration"
        what = f"{fields} of {scene.lease} {'were' if many else 'was'} edited"
    else:
        what = f"{scene.lease} was handed to {change.holder}"
    sentence = f"{what} through a form of Leaseboard at {clock(change.at)}"
    fact = seen(Source.LEASES, BY_FORM)
    return Verdict(Cause.BY_HAND, Confidence.CERTAIN, sentence, (fact,), FORM_WRITER)


def _ran_out_by_edit(scene: Scene) -> Verdict | None:
    """A person cut its duration, or made what had run out count as held again."""
    episode, edit = scene.episode, scene.episode.first.edit
    if edit is None or episode.opening is not ChangeType.EXPIRED:
        return None
    without = edit.would_run_out
    if not is_human_writer(edit.writer) or without is None:
        return None
    if without > episode.at:
        then = "so it ran out"
    elif without <= edit.at:
        then = "which made it count as held again; nobody renewed it, so it ran out"
    else:
        return None
    what = f"leaseDurationSeconds of {scene.lease}"
    fields = f"from {edit.before} to {edit.after} at {clock(edit.at)}"
    if edit.writer == FORM_WRITER:
        wrote = f"{what} was edited through a form of Leaseboard {fields}"
    else:
        wrote = f"{edit.writer} changed {what} {fields}"
    facts = (
        seen(Source.LEASES, f"its last renewal came at {clock(edit.renewal)}"),
        seen(Source.LEASES, f"without the edit it would have run out at {clock(without)}"),
    )
    sentence = f"{wrote}, {then} at {clock(episode.at)}"
    return Verdict(Cause.BY_HAND, Confidence.CERTAIN, sentence, facts, edit.writer)


_WROTE = {
    ChangeType.CREATED: ("created", "created for", "holderIdentity"),
    ChangeType.RECOVERED: ("renewed", "renewed for", "renewTime"),
    ChangeType.RESTARTED: ("renewed", "renewed for", "acquireTime"),
}


def _unrenewed(scene: Scene, put: Put) -> Verdict:
    """A person wrote the holder, or renewed by hand, and nobody renewed it: nothing stopped."""
    episode, writer = scene.episode, put.writer
    then = "it ran out" if episode.opening is ChangeType.EXPIRED else "it was lost"
    did, was, field = _WROTE.get(put.by, ("", "handed to", "holderIdentity"))
    if writer == FORM_WRITER:
        wrote = f"{scene.lease} was {was} {put.holder} through a form of Leaseboard"
    elif did:
        wrote = f"{writer} {did} {scene.lease} for {put.holder}"
    else:
        wrote = f"{writer} wrote {put.holder} as the holder of {scene.lease}"
    sentence = f"{wrote} at {clock(put.at)}; nobody renewed it, so {then} at {clock(episode.at)}"
    fact = seen(Source.LEASES, f"managedFields name {writer} as the writer of {field}")
    return Verdict(Cause.BY_HAND, Confidence.CERTAIN, sentence, (fact,), writer)


def preferred(scene: Scene) -> Verdict | None:
    """The coordinator named a preferred holder, and the holder yielded."""
    episode = scene.episode
    named = next(
        (
            clue.after.spec.preferred_holder
            for clue in episode.clues
            if clue.after is not None and clue.after.spec.preferred_holder
        ),
        None,
    )
    first = episode.first
    if named is None and first.before is not None:
        named = first.before.spec.preferred_holder
    if not named:
        return None
    reached = any(clue.change.holder == named for clue in episode.clues)
    sentence = f"{named} was named preferredHolder of {scene.lease}"
    if not episode.happened(ChangeType.RELEASED, ChangeType.REPLACED):
        if episode.opening is not ChangeType.RECONFIGURED:
            return None
        return possible(Cause.PREFERRED_HOLDER, f"{sentence} at {clock(episode.at)}")
    sentence = f"{sentence}, and the holder yielded at {clock(episode.last.change.at)}"
    writer = first.change.writer or "the coordinator"
    evidence = seen(Source.LEASES, f"{writer} set preferredHolder before the release")
    conclude = certain if reached else likely
    return conclude(Cause.PREFERRED_HOLDER, sentence, evidence)


def deleted(scene: Scene) -> Verdict | None:
    """A Lease that was deleted, and perhaps made again by those who need it."""
    episode = scene.episode
    clues = iter(episode.clues)
    gone = next((c for c in clues if c.change.change is ChangeType.DELETED), None)
    if gone is None or episode.opening not in _BEFORE_DELETION:
        return None
    if episode.kind is Kind.HEARTBEAT and episode.opening is ChangeType.EXPIRED:
        return None
    # By their order: both may have come in one read, which gives them one moment.
    again = next((c for c in clues if c.change.change is ChangeType.CREATED), None)
    if gone is not episode.first and episode.opening in _GAPS:  # it has a cause of its own
        return None
    at = gone.change.at
    sentence = f"{scene.lease} was deleted {_when(gone.change, again)}"
    if gone.by_person:
        said = f"{scene.lease} was deleted through a form of Leaseboard at {clock(at)}"
        fact = seen(Source.LEASES, "the audit trail has who did it, and the reason")
        return Verdict(Cause.BY_HAND, Confidence.CERTAIN, said, (fact,), FORM_WRITER)
    if _is_lock(gone):
        held = f" by {gone.change.previous_holder}" if gone.change.previous_holder else ""
        evidence = seen(Source.LEASES, f"a lock, taken{held} and given back by deleting it")
        return likely(Cause.DELETED, sentence, evidence)
    if again is not None and _new_api_server(episode):
        return likely(
            Cause.RESTART_IN_PLACE,
            f"{scene.lease} was announced anew by a new process at {clock(again.change.at)}",
            seen(Source.LEASES, f"{gone.change.previous_holder}, then {again.change.holder}"),
        )
    if again is not None and again.change.at - at <= MADE_AGAIN and gone.change.previous_holder:
        passed = span((again.change.at - at).total_seconds())
        later = f"at most {passed}" if gone.change.inferred else passed
        return likely(
            Cause.BY_HAND,
            f"{sentence} while {gone.change.previous_holder} held it, and made again "
            f"{later} later {_by_whom(again)}",
            seen(Source.LEASES, _who_needs_it(gone, again)),
            seen(Source.LEASES, "a deletion leaves no field manager: only an audit log has it"),
        )
    if scene.now - at < timedelta(seconds=25):
        return possible(Cause.DELETED, sentence)
    evidence = seen(Source.LEASES, "nobody has made it again")
    if episode.kind is Kind.HEARTBEAT and _was_silent(gone, episode.rhythm):
        return possible(Cause.NODE_DOWN, f"{sentence}, after its node had fallen silent", evidence)
    return likely(Cause.DELETED, sentence, evidence)


def _by_whom(made: Clue) -> str:
    """A person who makes a Lease may name any holder."""
    writer = made.change.writer or ""
    if writer == FORM_WRITER:
        return "through a form"
    return f"by {writer if is_human_writer(writer) else made.change.holder}"


def _who_needs_it(gone: Clue, made: Clue) -> str:
    if is_human_writer(made.change.writer or ""):
        return "a person made it again, not who held it before"
    if made.change.holder == gone.change.previous_holder:
        return "it was deleted though its user was well and needed it"
    return "somebody else who needs it made it again"


def _when(gone: Change, again: Clue | None) -> str:
    """At which time it was deleted, or between which: before it was made again."""
    since, until = gone.inferred_since, gone.observed_at
    until = until if again is None else min(until, again.change.at)
    if since is None or clock(since) == clock(until):
        return f"at {clock(gone.at)}"
    return f"between {between(since, until)}"


def wrong_clock(scene: Scene) -> Verdict | None:
    """A valid Lease was taken by somebody whose clock, or the holder's, was wrong."""
    episode = scene.episode
    first = episode.first
    before, change, written = first.before, first.change, first.after
    if change.change is not ChangeType.REPLACED or before is None or written is None:
        return None
    claimed, seconds = before.spec.renew_time, before.spec.lease_duration_seconds
    if claimed is None or seconds is None or first.observed_at is None:
        return None
    quiet = (change.at - first.observed_at).total_seconds()
    if quiet > max(3 * episode.rhythm, 0.7 * seconds) or change.inferred:
        return None
    behind = (first.observed_at - claimed).total_seconds()
    usual = first.skew_seconds
    behind = behind if usual is None else min(behind, usual)  # one may only have come late
    taker = written.spec.acquire_time or written.spec.renew_time
    ahead = 0.0 if taker is None else (taker - change.at).total_seconds()
    if taker is None or taker < after(claimed, seconds) or max(behind, ahead) < WRONG_CLOCK:
        return None
    # The one that is further off is the wrong one.
    if behind >= ahead:
        wrong = f"the clock of {change.previous_holder} is {span(behind)} behind"
    else:
        wrong = f"the clock of {change.holder} is {span(ahead)} ahead"
    return likely(
        Cause.CLOCK_SKEW,
        f"{change.holder} took {scene.lease} at {clock(change.at)} though it had been renewed "
        f"{span(quiet)} before: {wrong}",
        seen(Source.LEASES, f"by renewTime it had run out at {clock(after(claimed, seconds))}"),
    )


def _keeps_duration(clue: Clue) -> bool:
    return clue.after is not None and clue.after.spec.lease_duration_seconds != 1


def _new_api_server(episode: Episode) -> bool:
    """Whether an API server that started anew replaced the Lease of the process before it."""
    loser, winner = episode.loser, episode.winner
    return (
        episode.kind is Kind.IDENTITY
        and loser is not None
        and winner is not None
        and loser.host == winner.host
        and loser.identity != winner.identity
    )


def _was_silent(clue: Clue, rhythm: float) -> bool:
    if clue.observed_at is None:
        return False
    return (clue.change.at - clue.observed_at).total_seconds() > 1.5 * rhythm + 1.0


def _is_lock(gone: Clue) -> bool:
    if gone.change.kind is Kind.LOCK:
        return True
    never_renewed = not gone.renewals_seen and gone.before is not None
    return never_renewed and gone.change.kind is Kind.UNKNOWN
