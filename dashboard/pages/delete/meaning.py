"""What the deletion of a Lease brings about, in sentences with its own numbers.

Source: client-go's leaderelection.go. A holder that finds no Lease creates it at its next renewal;
one that finds another holder's Lease stops at its renew deadline, two thirds of the duration by
default. The kubelet's lease controller creates a missing Lease at its next renewal.
"""

from __future__ import annotations

from datetime import datetime

from dashboard.parts.formatting import age, counted, seconds
from dashboard.parts.holder_name import holder_view
from leases.domain.kind import NODE_LEASES, Kind
from leases.domain.phase import DEADLINE_SHARE, Phase
from leases.tracking.tracked_lease import Tracked

RETRY_SECONDS = 2.0  # client-go's default retry period
KUBELET_SECONDS = 10.0  # the kubelet renews every quarter of 40 s
ALIVE = (Phase.HELD, Phase.LATE, Phase.UNTIMED)


def headline(tracked: Tracked, now: datetime) -> str:
    """What matters most."""
    silent = (now - tracked.observed_at).total_seconds()
    if tracked.phase in (Phase.HELD, Phase.LATE):
        again = "make it anew" if tracked.kind is not Kind.LOCK else "go on as if it held it"
        return f"Renewed {age(silent)} ago: the holder will probably {again}"
    if tracked.phase is Phase.UNTIMED:
        return f"{_holder(tracked)} holds it without an end and is not told"
    if tracked.phase is Phase.VACANT:
        return "Nobody holds it"
    return f"Silent for {age(silent)}: the holder is probably gone"


def meaning_of(tracked: Tracked) -> tuple[str, ...]:
    return (*_who_makes_it_anew(tracked), _what_is_lost(tracked), "What Leaseboard knows stays.")


def _who_makes_it_anew(tracked: Tracked) -> tuple[str, ...]:
    alive = tracked.phase in ALIVE
    if tracked.kind is Kind.ELECTION:
        return _of_election(tracked) if alive else (_whoever(RETRY_SECONDS),)
    if tracked.kind is Kind.LOCK:
        if not alive:
            return ("Whoever wants the lock next makes it anew.",)
        said = f"{_holder(tracked)} may go on: until it is done, two may act at once."
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
    holder = _holder(tracked)
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


def _holder(tracked: Tracked) -> str:
    holder = holder_view(tracked.holder)
    return holder.short if holder else "nobody"
