"""An incident: changes of one cause, with what we concluded and from what."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from leases.domain.kind import Kind
from leases.domain.lease import ObjectName


class Cause(StrEnum):
    """Why a Lease changed. The value is the word in JSON, CSS, URLs and metrics."""

    GRACEFUL_STOP = "graceful_stop"
    ROLLOUT = "rollout"  # to a Pod of another ReplicaSet, or of a new revision of a StatefulSet
    RESTART_IN_PLACE = "restart_in_place"  # the same Pod with a new process
    CRASH = "crash"
    CRASH_LOOP = "crash_loop"  # its container ends again and again, and waits to be started
    OOM_KILLED = "oom_killed"
    EVICTED = "evicted"
    NODE_DOWN = "node_down"
    DRAIN = "drain"
    API_OUTAGE = "api_outage"
    API_SLOW = "api_slow"
    STARVED = "starved"  # the renewals came ever later before the Lease was lost
    PARTITION = "partition"  # the holder came back and still took itself for the holder
    BY_HAND = "by_hand"
    DELETED = "deleted"
    SCALED_DOWN = "scaled_down"
    CLOCK_SKEW = "clock_skew"
    PREFERRED_HOLDER = "preferred_holder"
    FLAPPING = "flapping"
    UNWATCHED = "unwatched"  # it happened while nobody watched, and nothing dated tells why
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


class Source(StrEnum):
    """Where evidence was read."""

    LEASES = "leases"
    PODS = "pods"
    NODES = "nodes"
    EVENTS = "events"


class Evidence(msgspec.Struct, frozen=True, gc=False):
    """One sentence that a person can check, with its numbers."""

    sentence: str
    source: Source


class Member(msgspec.Struct, frozen=True, gc=False):
    """One change that belongs to an incident. `identity` is the change's key in history."""

    lease: ObjectName
    identity: str


class Unlisted(msgspec.Struct, frozen=True):
    """Changes of an incident that are too many to list: of heartbeats, in that time, by which they
    ran out or came back, and which belong to no other incident.
    """

    since: datetime
    until: datetime
    leases: int
    changes: int
    without: int  # Leases of them that nobody holds

    def counts(self, kind: Kind, at: datetime) -> bool:
        """Whether a change of that kind of Lease, at that moment, may be one of them."""
        return kind is Kind.HEARTBEAT and self.since <= at <= self.until


class Standing(StrEnum):
    """Whether an incident was meant, and whether it left a Lease without a holder for too long."""

    UNPLANNED = "unplanned"
    PLANNED = "planned"
    OVERRAN = "overran"  # planned; a Lease had no holder for longer than its duration
    REMARK = "remark"  # labels or annotations alone: no incident, only the cause of a change


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one incident. `id` follows from its first change: every replica finds it."""

    id: str
    cluster: str
    cause: Cause
    confidence: Confidence
    sentence: str
    began: datetime
    ended: datetime | None  # None while it goes on
    leases: tuple[ObjectName, ...]
    hosts: tuple[str, ...] = ()
    writer: str | None = None  # the field manager, of BY_HAND
    # The longest time without a holder; `going_on.so_far` adds what goes on.
    worst_gap_seconds: float | None = None
    unheld_since: datetime | None = None  # of the Lease that waits longest, while it does
    evidence: tuple[Evidence, ...] = ()
    without: tuple[Source, ...] = ()  # what could not be read: it is missing from the evidence
    members: tuple[Member, ...] = ()
    # Of the members that have a cause of their own, as a person's write after a crash.
    own_causes: tuple[tuple[Member, Cause], ...] = ()
    unlisted: Unlisted | None = None  # beside `leases` and `members`
    standing: Standing = Standing.UNPLANNED
    settled: bool = False  # later evidence no longer changes the cause
    # Set if it is withdrawn: the incident that its changes belong to now. It has no members then.
    part_of: str | None = None

    @property
    def lease_count(self) -> int:
        return len(self.leases) + (0 if self.unlisted is None else self.unlisted.leases)

    @property
    def change_count(self) -> int:
        return len(self.members) + (0 if self.unlisted is None else self.unlisted.changes)

    @property
    def causes(self) -> dict[Member, Cause]:
        """The cause of each member."""
        return dict.fromkeys(self.members, self.cause) | dict(self.own_causes)

    @property
    def still_open(self) -> set[ObjectName]:
        """The Leases that it leaves without a holder.

        An identity has the word of its change after the uid; `term` is also a release, which stands
        alone as long as nobody has acquired.
        """
        if self.ended is not None:
            return set()
        words: dict[ObjectName, list[str]] = {}
        for member in self.members:
            words.setdefault(member.lease, []).append(f"{member.identity} ".split(" ")[1])
        return {key for key, seen in words.items() if seen[-1] == "expired" or seen == ["term"]}

    @property
    def explained(self) -> Collection[ObjectName]:
        """The Leases of which it says why nobody holds them, if nobody does: somebody may have held
        one of its Leases meanwhile, and lost it for another reason.
        """
        goes_on = self.cause is Cause.FLAPPING or len(self.leases) == 1
        return self.leases if goes_on else self.still_open

    @property
    def planned(self) -> bool:
        """Whether somebody meant it, or a controller did its work."""
        return self.standing is not Standing.UNPLANNED

    @property
    def shown(self) -> bool:
        """Whether lists and messages have it where nobody asked for all."""
        return self.standing in (Standing.UNPLANNED, Standing.OVERRAN)


AT_THE_SAME_TIME = timedelta(seconds=60)


class ElsewhereIncident(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown of an incident beside that of another cluster."""

    cluster: str
    id: str
    cause: Cause
    began: datetime
    sentence: str
    hosts: tuple[str, ...] = ()


def at_the_same_time(
    incident: Incident, others: Sequence[ElsewhereIncident]
) -> list[ElsewhereIncident]:
    """Return those of other clusters that began within 60 s of this one and have its cause.

    That is all it tells: the time, and what was found out of each one alone. It does not tell that
    one thing caused both, not even where both name a host of the same name: many clusters have a
    cp-1. `hosts` are left to the names that both have. An unknown cause is like another unknown
    one, because nothing but the time is told of them. What was planned and went well coincides with
    nothing.
    """
    mine = set(incident.hosts)
    return [
        msgspec.structs.replace(one, hosts=tuple(host for host in one.hosts if host in mine))
        for one in sorted(others, key=lambda one: (one.cluster, one.began, one.id))
        if incident.shown
        and one.cluster != incident.cluster
        and one.cause is incident.cause
        and abs(one.began - incident.began) <= AT_THE_SAME_TIME
    ]
