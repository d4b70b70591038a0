"""Decide what a Lease is for, and why; and settle by what happened what fields only let us guess.

The first matching rule wins. An admin's override beats all rules.
"""

from datetime import timedelta
from enum import StrEnum

from leases.domain.holder_identity import is_uuid, pod_of, split_holder
from leases.domain.known_writers import known_writer
from leases.domain.lease import Lease, LeaseSpec

NODE_LEASES = "kube-node-lease"


class Kind(StrEnum):
    """What a Lease is for. The value is the word at every layer."""

    ELECTION = "election"
    HEARTBEAT = "heartbeat"
    IDENTITY = "identity"
    LOCK = "lock"
    UNKNOWN = "unknown"

    # Enum's own hash is slow Python code, and every event uses these as keys.
    __hash__ = str.__hash__


Verdict = tuple[Kind, str]
# What happens to the Lease may settle it: see settled_kind.
RENEWED_SINCE: Verdict = (Kind.ELECTION, "a guess: acquired, and renewed since")


def classify(lease: Lease, previous: Kind | None) -> Verdict:
    """Return the kind of a Lease and the reason in words.

    `previous` is the kind it had while held; None: it was never held. A vacant Lease keeps it. A
    Lease that looks like a lock because it was never renewed is judged again at its first renewal.
    """
    if lease.holder is None and previous is not None:
        return previous, "vacant: it keeps the kind it had while held"
    return (
        _by_strategy(lease)
        or _by_known_writer(lease)
        or _by_node_owner(lease)
        or _by_node_namespace(lease)
        or _by_own_name(lease)
        or _by_shape(lease, previous)
        or (Kind.UNKNOWN, "nothing in it tells what it is for")
    )


def owner_node(lease: Lease) -> str | None:
    """The name of the Node that owns the Lease."""
    return next((o.name for o in lease.metadata.owner_references or () if o.kind == "Node"), None)


def _by_strategy(lease: Lease) -> Verdict | None:
    if not lease.spec.strategy:
        return None
    return Kind.ELECTION, f"strategy {lease.spec.strategy} is set: coordinated election"


def _by_known_writer(lease: Lease) -> Verdict | None:
    writer = known_writer(lease)
    return (Kind(writer.kind), f"{writer.sign}: {writer.source}") if writer else None


def _by_node_owner(lease: Lease) -> Verdict | None:
    """Kubelets, and other programs that renew or lock on behalf of a Node."""
    node = owner_node(lease)
    if node is None:
        return None
    if lease.spec.acquire_time and lease.holder not in {None, node, lease.metadata.name}:
        return Kind.LOCK, f"owned by Node {node}, but acquired by another"
    if node == lease.metadata.name:  # one shared text for nearly all Leases
        return Kind.HEARTBEAT, "owned by the Node of its name"
    return Kind.HEARTBEAT, f"owned by Node {node}"


def _by_node_namespace(lease: Lease) -> Verdict | None:
    if lease.metadata.namespace != NODE_LEASES:
        return None
    spec = lease.spec
    elected = spec.acquire_time is not None and spec.lease_transitions is not None
    if elected and lease.holder != lease.metadata.name:
        return None
    return Kind.HEARTBEAT, f"in {NODE_LEASES}, where kubelets renew"


def _by_own_name(lease: Lease) -> Verdict | None:
    holder, spec = lease.holder, lease.spec
    if holder is None:
        return None
    names = {holder, pod_of(holder)}
    if lease.metadata.name in names:
        return Kind.HEARTBEAT, "the holder is the Lease's own name"
    owners = {owner.name for owner in lease.metadata.owner_references or ()}
    if names & owners and spec.acquire_time is None and spec.lease_transitions is None:
        return Kind.HEARTBEAT, "the holder is its owner, and it is never acquired"
    return None


def _by_shape(lease: Lease, previous: Kind | None) -> Verdict | None:
    """By which fields are set. A new holder that has not renewed yet makes no election a lock."""
    spec = lease.spec
    renewed, acquired = spec.renew_time, spec.acquire_time
    if lease.holder and (verdict := _by_what_is_missing(spec)):
        return verdict
    if spec.lease_transitions is not None:
        if acquired or renewed:
            return Kind.ELECTION, "leaseTransitions counts its holders"
        return None
    if acquired and renewed and spec.lease_duration_seconds is not None:
        if renewed > acquired or previous is Kind.ELECTION:
            return RENEWED_SINCE
        return Kind.LOCK, "a guess: acquired, and not renewed since"
    return _by_renewal_alone(lease) if renewed and not acquired else None


def _by_what_is_missing(spec: LeaseSpec) -> Verdict | None:
    """What a held Lease would have if others could take it over when its holder stops."""
    if spec.renew_time is None:
        if spec.lease_duration_seconds is None:
            return Kind.LOCK, "a holder without renewTime and duration: it must be given back"
        if spec.acquire_time is not None:
            return Kind.LOCK, "acquired, but never renewed: an elector always renews"
    elif (spec.lease_duration_seconds, spec.acquire_time, spec.lease_transitions) == (None,) * 3:
        return Kind.HEARTBEAT, "renewed without a duration: nobody could take it over"
    return None


def _by_renewal_alone(lease: Lease) -> Verdict | None:
    holder = lease.holder
    if holder is None:
        return Kind.HEARTBEAT, "renewed without ever naming a holder"
    if not lease.metadata.name.endswith((f"-{holder}", f"-{pod_of(holder)}")):
        return None
    if is_uuid(holder):
        return Kind.IDENTITY, "only renewed, and its name ends in the holder, a UUID"
    return Kind.HEARTBEAT, "only renewed, and its name ends in the holder"


ALONE = timedelta(days=7)  # renewed by one holder for so long, it is a heartbeat
_SETTLED = "settled by history: "
OTHER_HOLDER: Verdict = (Kind.ELECTION, f"{_SETTLED}another holder took the same Lease")
MADE_ANEW: Verdict = (Kind.LOCK, f"{_SETTLED}deleted while held, and made anew")
RENEWED_ALONE: Verdict = (
    Kind.HEARTBEAT,
    f"{_SETTLED}one holder alone renewed it for {ALONE.days} d",
)


def keep_settled(guess: Verdict, known: Verdict) -> Verdict:
    """Return what is settled of a Lease, unless the rules now do more than guess."""
    return known if _is_guess(guess) and _is_settled(known) else guess


def after_next_holder(known: Verdict, before: str | None, holder: str | None) -> Verdict:
    """Settle the kind of a Lease that goes from one holder to the next, with the same uid.

    A new process on the same host proves nothing.
    """
    if before is None or holder is None or _host(before) == _host(holder):
        return known
    return OTHER_HOLDER if is_open(known) or known == RENEWED_ALONE else known


def after_deletion(known: Verdict, *, held: bool) -> Verdict | None:
    """Return what the next Lease of this name is if its fields only allow a guess."""
    if _is_settled(known):
        return known
    return MADE_ANEW if held and is_open(known) else None


def is_open(verdict: Verdict) -> bool:
    """Whether history may settle it."""
    return verdict == RENEWED_SINCE


def _is_guess(verdict: Verdict) -> bool:
    return verdict[1].startswith("a guess: ")


def _is_settled(verdict: Verdict) -> bool:
    return verdict[1].startswith(_SETTLED)


def _host(holder: str) -> str:
    return split_holder(holder).host or holder
