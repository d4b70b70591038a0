"""What a write brings about, in words and numbers for this Lease.

The rules are those of client-go (leaderelection.go): a holder tries to renew every retry period and
stops when it could not for its renew deadline, 10 s of 15 s by default; contenders look every 1 to
2.2 retry periods; each renewal writes the holder's own duration. A holder that finds no Lease
creates it at its next renewal, as the kubelet does; one that finds another holder's Lease stops at
its renew deadline.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from dashboard.parts.formatting import age, counted, seconds, when
from dashboard.parts.names import holder_view
from leases.domain.edit import FieldEdit, NewLease, is_coordinated
from leases.domain.election import ANSWER_SECONDS, REQUEUE, RETRY_SHARE, STRETCH, Outlook, forecast
from leases.domain.kind import NODE_LEASES, Kind
from leases.domain.lease import Lease
from leases.domain.phase import DEADLINE_SHARE, Phase, runs_out_at, trusted_cadence
from leases.domain.steady_clock import EARLIEST
from leases.tracking.tracked_lease import Tracked

USUAL_DURATION = 15  # client-go's default
# Contenders count anew from a write of these.
RENEWING = {"acquireTime", "renewTime", "leaseDurationSeconds"}
EXPIRY = {"renewTime", "leaseDurationSeconds"}  # a Lease without either cannot expire
RETRY_SECONDS = 2.0  # client-go's default retry period
KUBELET_SECONDS = 10.0  # the kubelet renews every quarter of 40 s
ALIVE = (Phase.HELD, Phase.LATE, Phase.UNTIMED)


class WhatHappens(msgspec.Struct, frozen=True):
    """`phase` colours the box: "late" for a warning, "" for a note."""

    title: str
    sentences: tuple[str, ...]
    phase: str = ""


class _Numbers:
    """What is known or assumed of one Lease, in seconds."""

    def __init__(self, tracked: Tracked, now: datetime) -> None:
        self.holder = short(tracked.holder)
        self.silent = max(0.0, (now - tracked.renewed_at).total_seconds())
        self.duration = tracked.lease.spec.lease_duration_seconds
        usual = self.duration or USUAL_DURATION
        self.identity, self.cadence = tracked.holder, trusted_cadence(tracked)
        self.retry = self.cadence or RETRY_SHARE * usual
        self.deadline = DEADLINE_SHARE * usual
        self.kind, self.phase = tracked.kind, tracked.phase
        self.outlook = forecast(tracked).outlook
        self.was_renewed = _was_renewed(tracked)

    @property
    def overlap(self) -> str:
        """How long the old holder may still act: until its renew deadline after its last try."""
        return seconds(round(self.deadline + self.retry))

    @property
    def is_elected(self) -> bool:
        return self.outlook in (Outlook.CONTENDED, Outlook.COORDINATED)


def of_release(tracked: Tracked, now: datetime, as_of: datetime | None = None) -> WhatHappens:
    """`as_of`: up to when the cluster is known, if not up to now."""
    known = _Numbers(tracked, now)
    if as_of is not None and tracked.observed_at <= as_of < now:
        return _of_release_unseen(known, when(as_of, now))
    if known.phase is Phase.VACANT:
        said = "A release writes its times anew; whoever looks first acquires it."
        return WhatHappens("Nobody holds it now", (said,))
    if known.kind is Kind.HEARTBEAT:
        title = f"The next heartbeat names the holder again, within {_every(known)}"
        said = "Until then whoever watches the heartbeat sees no holder; if none comes, it is lost."
        return WhatHappens(title, (said,), "late")
    if known.outlook is Outlook.COORDINATED:
        title = f"The API server gives it to its best candidate within {seconds(ANSWER_SECONDS)}"
        return WhatHappens(title, tuple(_after_the_holder(known)), "late")
    if known.phase is Phase.EXPIRED:
        title = f"Silent for {age(known.silent)}: the holder is probably gone"
        return WhatHappens(title, (_first_to_look(known),))
    if known.phase is Phase.LATE:
        title = f"Silent for {age(known.silent)}: the holder may be gone, or slow"
    elif not known.was_renewed:
        title = _never_renewed(known.holder)
    elif known.is_elected:
        title = (
            f"Renewed {age(known.silent)} ago: the holder will probably take it back "
            f"within {_every(known)}"
        )
    else:
        title = f"{known.holder} may still rely on it"
    return WhatHappens(title, (*_still_looks(known), *_after_the_holder(known)), "late")


def _of_release_unseen(known: _Numbers, moment: str) -> WhatHappens:
    """The cluster is not live: the holder may have gone, and another one may have come."""
    said = ["By now somebody else may hold it, or nobody."]
    if known.kind is not Kind.HEARTBEAT:
        said += [] if known.outlook is Outlook.COORDINATED else [_first_to_look(known)]
        said += _after_the_holder(known)
    title = f"Its present state is not known: what you see was known at {moment}"
    return WhatHappens(title, tuple(said), "late")


def _was_renewed(tracked: Tracked) -> bool:
    """Also before we saw it: a lock has the same moment in both fields, or never a renewTime."""
    spec = tracked.lease.spec
    return tracked.renewals_seen > 0 or spec.renew_time not in (None, spec.acquire_time)


def _never_renewed(holder: str) -> str:
    return f"Never renewed: {holder} may still rely on it"


def of_hand_over(tracked: Tracked, to: str, now: datetime) -> WhatHappens:
    known, name = _Numbers(tracked, now), short(to)
    lease = tracked.lease
    if is_coordinated(lease):
        stops = f"preferredHolder is set: {known.holder} stops renewing within {known.overlap}."
        wait = seconds(REQUEUE + ANSWER_SECONDS)
        then = f"Then the API server gives it to {name}, if that is a candidate, within {wait}."
        return WhatHappens(f"The API server ends the term of {known.holder}", (stops, then), "late")
    count = lease.spec.lease_transitions or 0
    counted = f"The Lease is rewritten in the name of {name}, transitions {count} to {count + 1}."
    said = (counted, *_after_the_holder(known), _if_not_running(name, known.duration))
    if not _may_still_act(known):
        return WhatHappens("Nobody else holds it now", said)
    title = f"Two may act at once for up to {known.overlap}"
    return WhatHappens(title if known.is_elected else "Two may act at once", said, "late")


def of_edit(tracked: Tracked, wanted: FieldEdit, now: datetime) -> WhatHappens:
    known, before = _Numbers(tracked, now), tracked.lease
    after = _edited(before, wanted, now)
    said: list[str] = []
    if "holderIdentity" in wanted.spec:
        said += _of_holder(known, after, wanted)
    if EXPIRY & wanted.spec.keys():
        said += _of_expiry(before, after)
    if "leaseDurationSeconds" in wanted.spec:
        said += _of_duration(known, before)
    gap = _expires_between_renewals(known, wanted)
    said += gap
    said += _of_times(known, after, wanted)
    said += _of_coordination(known, wanted)
    if wanted.labels or wanted.annotations:
        said.append("Labels and annotations renew nothing: the term goes on.")
    if not said:
        said = ["You changed no field: saving changes nothing."]
    risky = "holderIdentity" in wanted.spec and _may_still_act(known)
    return WhatHappens("What this means", tuple(said), "late" if risky or gap else "")


def short(identity: str | None) -> str:
    holder = holder_view(identity)
    return holder.short if holder else "nobody"


def _edited(lease: Lease, wanted: FieldEdit, now: datetime) -> Lease:
    """The Lease with the edited fields that decide whether and when it expires."""
    spec = lease.spec
    if "leaseDurationSeconds" in wanted.spec:
        lasts = wanted.spec["leaseDurationSeconds"]
        lasts = lasts if isinstance(lasts, int) else None
        spec = msgspec.structs.replace(spec, lease_duration_seconds=lasts)
    if "renewTime" in wanted.spec:
        renewed = now if wanted.spec["renewTime"] else None
        spec = msgspec.structs.replace(spec, renew_time=renewed)
    return msgspec.structs.replace(lease, spec=spec)


def _lasts(lease: Lease) -> int | None:
    """Seconds from a renewal until others may take it; None if it cannot expire."""
    can_expire = runs_out_at(lease, EARLIEST) is not None
    return lease.spec.lease_duration_seconds if can_expire else None


def _of_holder(known: _Numbers, after: Lease, wanted: FieldEdit) -> Iterator[str]:
    to = wanted.spec["holderIdentity"]
    if not to:
        yield "Nobody is named any more: whoever looks first acquires it."
        if "leaseDurationSeconds" not in wanted.spec:
            yield "Release also writes a duration of 1 s and both times, as client-go does."
    else:
        missing = {"acquireTime", "renewTime", "leaseTransitions"} - wanted.spec.keys()
        if missing:
            yield "Hand over also writes both times and counts the transition, as client-go does."
    yield from _after_the_holder(known)
    if to:
        yield _if_not_running(short(str(to)), _lasts(after))


def _of_expiry(before: Lease, after: Lease) -> Iterator[str]:
    was, lasts = _lasts(before), _lasts(after)
    if lasts is None:
        untimed = after.spec.lease_duration_seconds is None
        verb = "still cannot" if was is None else "can no longer"
        yield (
            f"{'It' if untimed else 'Without renewTime it'} {verb} expire: "
            "a dead holder keeps it until somebody edits it."
        )
    elif was is None:
        yield f"If the holder dies, others wait {seconds(lasts)}; until now it could not expire."
    elif lasts != was:
        yield f"If the holder dies, others wait {seconds(lasts)} instead of {seconds(was)}."


def _of_duration(known: _Numbers, before: Lease) -> Iterator[str]:
    if known.is_elected and before.holder is not None:
        when = f"with its next renewal, within {_every(known)}"
        if known.phase is Phase.EXPIRED:
            when = "when it acquires or renews"
        yield f"client-go writes its own duration {when}: to keep this, change its setting."


def _expires_between_renewals(known: _Numbers, wanted: FieldEdit) -> list[str]:
    """What a duration brings about that is no longer than the learned interval of renewals."""
    lasts, every = wanted.spec.get("leaseDurationSeconds"), known.cadence
    if not isinstance(lasts, int) or not every or lasts > every or not _may_still_act(known):
        return []
    if wanted.spec.get("holderIdentity", known.identity) != known.identity:
        return []
    away = round(every - lasts, 1)
    expires = (
        f"{known.holder} renews every {_every(known)}: the Lease expires {seconds(lasts)} after "
        f"each renewal and stays expired for {seconds(away)}, until the next one."
    )
    if known.outlook is Outlook.COORDINATED:
        who = "the API server may give it to another candidate"
    elif known.is_elected:
        who = "whoever looks may take it"
    else:
        return [expires, "Whoever watches it then takes the holder for lost."]
    return [expires, f"In that time {who}, while {known.holder} still acts: two holders at once."]


def _of_times(known: _Numbers, after: Lease, wanted: FieldEdit) -> Iterator[str]:
    if _renews_an_expired_lease(known, after, wanted):
        yield (
            "Contenders wait the whole duration again, as after a renewal, though "
            f"{known.holder} did not renew it."
        )
    elif "renewTime" in wanted.spec:
        if _lasts(after) is not None:
            yield "Contenders count the whole duration anew from this write."
        if _may_still_act(known):
            yield f"The holder overwrites renewTime, within {_every(known)}."
    if "acquireTime" in wanted.spec:
        yield "Another acquireTime begins another term in the history."
    if "leaseTransitions" in wanted.spec and known.kind is Kind.ELECTION:
        yield "client-go counts on from this number when another one acquires the Lease."


def _renews_an_expired_lease(known: _Numbers, after: Lease, wanted: FieldEdit) -> bool:
    same_holder = "holderIdentity" not in wanted.spec
    touched = RENEWING & wanted.spec.keys()
    return (
        known.phase is Phase.EXPIRED and same_holder and _lasts(after) is not None and bool(touched)
    )


def _of_coordination(known: _Numbers, wanted: FieldEdit) -> Iterator[str]:
    if wanted.spec.get("strategy"):
        yield "The API server elects the holder from now on, if its election is switched on."
    elif "strategy" in wanted.spec:
        yield "The API server no longer elects the holder: contenders take it themselves."
    if preferred := wanted.spec.get("preferredHolder"):
        name = short(str(preferred))
        yield f"{known.holder} no longer renews, so that {name} can be elected."


def _still_looks(known: _Numbers) -> Iterator[str]:
    if known.is_elected:
        yield (
            f"{known.holder} looks every {_every(known)}, others every {_every(known)} to "
            f"{seconds(round(STRETCH * known.retry, 1))}: whoever looks first takes it."
        )
    else:
        yield "Whoever looks first takes it; how often others look is not known."


def _after_the_holder(known: _Numbers) -> Iterator[str]:
    """What becomes of the present holder, if another one takes the Lease."""
    if not _may_still_act(known):
        return
    if known.is_elected:
        yield (
            f"If another one takes it, {known.holder} stops at its renew deadline, "
            f"{seconds(round(known.deadline))} by default: two may act at once for up to "
            f"{known.overlap}."
        )
    else:
        yield f"{known.holder} may not notice that it lost the Lease: then both act."


def _may_still_act(known: _Numbers) -> bool:
    return known.phase in ALIVE


def _first_to_look(known: _Numbers) -> str:
    if known.is_elected:
        return f"Whoever looks first takes it, usually within {_every(known)}."
    return "Whoever looks first takes it; how often others look is not known."


def _if_not_running(name: str, duration: int | None) -> str:
    until = f"it runs out: {seconds(duration)}" if duration else "somebody edits it again"
    return f"If {name} is not running, nobody really holds it until {until}."


def _every(known: _Numbers) -> str:
    return seconds(round(known.retry, 1))


def of_create(new: NewLease, *, kept: Mapping[str, Any]) -> tuple[str, ...]:
    """`kept` is the spec that the server would store."""
    said = []
    if "strategy" in kept:
        said.append("The API server chooses the holder among the LeaseCandidates of this name.")
    elif not new.holder:
        said.append(
            "It starts vacant. An elector of this name takes it within its retry period, "
            "2 s by default."
        )
    if new.holder:
        holder = holder_view(new.holder)
        who = holder.short if holder else new.holder
        said.append(f"It starts held by {who}, with transitions at {new.transitions or 0:,}.")
        lasts = new.duration_seconds
        until = f"it expires: {seconds(lasts)}" if lasts else "somebody edits it"
        said.append(f"If {who} does not run, nobody acts until {until}.")
    if new.duration_seconds is None:
        said.append("It is untimed: it never runs out, and no elector takes it from a holder.")
    return tuple(said)


def of_delete(tracked: Tracked, now: datetime) -> WhatHappens:
    said = (*_who_makes_it_anew(tracked), _what_is_lost(tracked), "What Leaseboard knows stays.")
    return WhatHappens(_headline_of_delete(tracked, now), said)


def _headline_of_delete(tracked: Tracked, now: datetime) -> str:
    silent = (now - tracked.renewed_at).total_seconds()
    if tracked.phase in (Phase.HELD, Phase.UNTIMED) and not _was_renewed(tracked):
        return _never_renewed(short(tracked.holder))
    if tracked.phase in (Phase.HELD, Phase.LATE):
        again = "make it anew" if tracked.kind is not Kind.LOCK else "go on as if it held it"
        return f"Renewed {age(silent)} ago: the holder will probably {again}"
    if tracked.phase is Phase.UNTIMED:
        return f"{short(tracked.holder)} holds it without an end and is not told"
    if tracked.phase is Phase.VACANT:
        return "Nobody holds it"
    return f"Silent for {age(silent)}: the holder is probably gone"


def _who_makes_it_anew(tracked: Tracked) -> tuple[str, ...]:
    alive = tracked.phase in ALIVE
    if tracked.kind is Kind.ELECTION:
        return _of_election(tracked) if alive else (_whoever(RETRY_SECONDS),)
    if tracked.kind is Kind.LOCK:
        if not alive:
            return ("Whoever wants the lock next makes it anew.",)
        said = f"{short(tracked.holder)} may go on: until it is done, two may act at once."
        return ("Another one may take the lock at once.", said)
    if tracked.key.namespace == NODE_LEASES and tracked.kind is Kind.HEARTBEAT:
        beat = tracked.cadence_seconds or KUBELET_SECONDS
        return (
            f"The kubelet makes it anew within {seconds(round(beat, 1))}, if it runs.",
            "If it does not, the node is marked NotReady and its pods may be moved.",
        )
    every = tracked.cadence_seconds
    within = f" within {seconds(round(every, 1))}" if every else ""
    return (f"Whoever renews it makes it anew{within}, if it still runs.",)


def _of_election(tracked: Tracked) -> tuple[str, ...]:
    holder = short(tracked.holder)
    retry = tracked.cadence_seconds or RETRY_SECONDS
    lasts = tracked.lasts_seconds
    stops = f"If another one is first, {holder} stops at its renew deadline"
    if lasts is None:
        return (_whoever(retry), f"{stops}. Until then two may act at once.")
    deadline = lasts * DEADLINE_SHARE
    both = f"Until then two may act at once, for up to {seconds(round(deadline + retry, 1))}."
    by_default = f"{seconds(round(deadline, 1))} by client-go's default"
    return (f"{_whoever(retry)} Often {holder} is first.", f"{stops}, {by_default}. {both}")


def _whoever(within: float) -> str:
    return f"Whoever notices first makes it anew, usually within {seconds(round(within, 1))}."


def _what_is_lost(tracked: Tracked) -> str:
    lease = tracked.lasting.lease
    meta, transitions = lease.metadata, lease.spec.lease_transitions
    lost = [
        counted(len(pairs), one)
        for pairs, one in ((meta.labels, "label"), (meta.annotations, "annotation"))
        if pairs
    ]
    said = [f"Transitions restart at 0 (now {transitions:,})."] if transitions else []
    said += [f"Lost with it: {' and '.join(lost)}."] if lost else []
    return " ".join(said) or "It has no transitions, labels or annotations to lose."
