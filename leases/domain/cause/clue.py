"""What the Leases themselves say: a clue of each change, and the episodes that clues make up.

Source: k8s.io/kubernetes pkg/controller (ReplicaSets end in the hash of their Pod template, Pods in
five random letters), pkg/controller/statefulset (Pods end in their ordinal).
"""

import re
import zlib
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import lru_cache

import msgspec

from leases.domain.cause.facts import Break
from leases.domain.change import Change, ChangeType, Managers, identity, owner_of
from leases.domain.holder_identity import split_holder
from leases.domain.incident import Cause, Member
from leases.domain.kind import Kind
from leases.domain.lease import Lease, ObjectName
from leases.domain.phase import EMPTY, median, samples
from leases.domain.steady_clock import plus


class LateRenewal(msgspec.Struct, frozen=True, gc=False):
    """A renewal that came within a third of running out: a near miss."""

    key: ObjectName
    at: datetime  # our clock when it came
    seconds: float  # since the renewal before it
    duration_seconds: int  # of the Lease
    holder: str


class OverdueInterval(msgspec.Struct, frozen=True, gc=False):
    """A renewal that was overdue, by our clock."""

    at: datetime
    seconds: float  # since the renewal before it


def late_counts_for(duration_seconds: float) -> float:
    """Return for how many seconds before a loss a late renewal may tell why."""
    return max(150.0, 8 * duration_seconds)


class LateWriter(msgspec.Struct, frozen=True, gc=False):
    """A renewal of any Lease that was overdue, by our clock."""

    key: ObjectName
    holder: str
    at: datetime
    seconds: float  # since the renewal before it
    kind: Kind = Kind.ELECTION


LateAround = tuple[tuple[LateWriter, ...], ...]  # in parts that the changes of minutes share


class Silence(msgspec.Struct, frozen=True, gc=False):
    """A time in which nobody wrote any Lease of the cluster while our watch was open."""

    since: datetime
    until: datetime
    expected: float  # writes, at the usual rate

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()


# Controllers delete these Leases once their node or process is gone.
_CLEANED_UP = (Kind.HEARTBEAT, Kind.IDENTITY)


class Put(msgspec.Struct, frozen=True, gc=False):
    """A person wrote a holder into a Lease, made a Lease that has one, or renewed it by hand."""

    writer: str
    holder: str
    at: datetime
    by: ChangeType


class DurationEdit(msgspec.Struct, frozen=True, gc=False):
    """An edit of leaseDurationSeconds since which nobody renewed the Lease."""

    writer: str  # "" if unknown
    at: datetime
    renewal: datetime  # our clock at the last one, before it
    before: int | None
    after: int | None

    @property
    def would_run_out(self) -> datetime | None:
        """Return when the Lease would have run out without it."""
        return None if self.before is None else plus(self.renewal, timedelta(seconds=self.before))


class Clue(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One change with what was known of its Lease just before."""

    change: Change
    before: Lease | None = None  # None: nothing was known of it
    after: Lease | None = None  # None: no write caused the change, or it was deleted
    observed_at: datetime | None = None  # our clock at the last renewal before
    held_since: datetime | None = None  # of the holder before
    renewals_seen: int = 0
    intervals: bytes = EMPTY  # the last few of the holder before, by its clock
    lags: bytes = EMPTY  # receipt minus renewTime, the last few of the holder before
    overdue: tuple[OverdueInterval, ...] = ()  # the last renewals that came late, oldest first
    managers: Managers = ()  # of the Lease after the change
    silences: tuple[Silence, ...] = ()  # of the whole cluster, lately
    late_around: LateAround = ()  # of the whole cluster, lately
    elections: int = 0  # of the whole cluster, counted where there are late ones
    usual_writer: str | None = None  # who wrote its last acquisition, if the casebook knows
    put: Put | None = None  # where a person wrote its holder and nobody renewed it
    edit: DurationEdit | None = None  # where one came after the last renewal
    by_person: bool = False  # a person wrote it, with a program for people or a form of ours
    stored: Member | None = None  # where its key in history is known

    @property
    def key(self) -> ObjectName:
        return ObjectName(self.change.namespace, self.change.name)

    @property
    def identity(self) -> str:
        """The change's key in history."""
        return self.member.identity

    @property
    def member(self) -> Member:
        return self.stored or Member(self.key, identity(self.change))

    @property
    def own_cause(self) -> Cause | None:
        """Its cause, whatever began the incident that it belongs to; None: that of the incident."""
        if self.by_person:
            return Cause.BY_HAND
        change = self.change
        if change.change is not ChangeType.DELETED or change.kind in _CLEANED_UP:
            return None
        return Cause.UNWATCHED if change.inferred else Cause.DELETED

    @property
    def cadence_seconds(self) -> float | None:
        return median(self.intervals)

    @property
    def skew_seconds(self) -> float | None:
        """How far the clock of the holder before is behind ours."""
        return median(self.lags)

    @property
    def renew_intervals(self) -> list[float]:
        """The last intervals between renewals of the holder before, oldest first, in seconds."""
        return samples(self.intervals)


# kubectl names itself after its command (kubectl-edit); dashboards, scripts and curl leave the
# first word of their User-Agent.
_is_human = re.compile(
    r"kubectl(-.*)?|oc(-.*)?|k9s|lens.*|openlens.*|freelens.*|node-fetch|headlamp.*|octant.*|rancher"
    r"|dashboard|kubernetes-dashboard.*|mozilla|curl|wget|httpie|python-requests.*|python-httpx.*"
    r"|python-urllib.*|leaseboard.*|terraform.*|helm|ansible.*",
    re.IGNORECASE,
).fullmatch


FORM_WRITER = "leaseboard"  # the field manager of our own forms


def is_human_writer(manager: str) -> bool:
    """Whether people use a program with this field manager."""
    return bool(_is_human(manager))


_SAFE = "[bcdfghjklmnpqrstvwxz2456789]"
_of_deployment = re.compile(rf"(.+)-({_SAFE}{{6,10}}|[0-9]{{8,10}})-{_SAFE}{{5}}").fullmatch
_of_set = re.compile(rf"(.+)-{_SAFE}{{5}}").fullmatch
_with_ordinal = re.compile(r"(.+)-([0-9]+)").fullmatch


class Contender(msgspec.Struct, frozen=True):
    """`template` is the hash of its ReplicaSet; `ordinal` may be a StatefulSet's, or a node's."""

    identity: str
    host: str
    workload: str
    template: str = ""
    ordinal: str = ""

    @property
    def is_pod(self) -> bool:
        """Whether the host can only be a Pod."""
        return bool(self.template)

    @property
    def has_suffix(self) -> bool:
        """Whether the identity names one process, and not only its host."""
        return split_holder(self.identity).suffix is not None


@lru_cache(512)  # each restart makes a new name, and few ask for old ones
def contender(identity: str | None) -> Contender | None:
    """Read an identity; None: nobody."""
    if not identity:
        return None
    host = split_holder(identity).host or identity
    if match := _of_deployment(host):
        return Contender(identity, host, match[1], template=match[2])
    if match := _with_ordinal(host):
        return Contender(identity, host, match[1], ordinal=match[2])
    if match := _of_set(host):
        return Contender(identity, host, match[1])
    return Contender(identity, host, host)


# The managers that kubectl and Leaseboard give themselves: no elector writes under them.
is_of_a_person = re.compile(
    r"kubectl(-(annotate|apply|autoscale|client-side-apply|create|edit|label|patch|replace|set"
    r"|taint))?|leaseboard",
).fullmatch
IN_AN_EDITOR = "kubectl-edit"
OFTEN = 5  # renewals: a script that renews with kubectl is a holder like any other

_TERM = frozenset(
    {ChangeType.ACQUIRED, ChangeType.RELEASED, ChangeType.REPLACED, ChangeType.TAKEN_OVER}
)


def foreign_writer(clue: Clue) -> str | None:
    """Return the field manager of a write that was not the holder's own; None: it was, or no
    write caused the change.
    """
    change, after = clue.change, clue.after
    writer = change.writer
    if writer is None or after is None or change.change is ChangeType.CREATED:
        return None
    usual = usual_writer(clue)
    if writer == FORM_WRITER:
        return writer
    if is_human_writer(writer):
        renews = usual == writer and (clue.renewals_seen >= OFTEN or not is_of_a_person(writer))
        return None if renews else writer
    if change.change not in _TERM or usual in (None, writer):
        return None
    return writer if _is_odd(clue) else None


def is_renewed_by_hand(managers: Managers) -> bool:
    """Whether a person wrote the present renewTime, and not the holder. A script that took the
    Lease with kubectl renews it with kubectl.
    """
    writer = owner_of("spec.renewTime", managers)
    if writer is None or not is_of_a_person(writer):
        return False
    holder = owner_of("spec.holderIdentity", managers)
    by_script = holder is not None and is_of_a_person(holder)
    return writer in (FORM_WRITER, IN_AN_EDITOR) or not by_script


def _is_odd(clue: Clue) -> bool:
    """Whether no elector writes like this: the times stay, somebody else releases, or a valid
    holder is replaced by what is no Pod of its workload.
    """
    change = clue.change
    if not _moved_times(clue):
        return True
    if change.change is ChangeType.RELEASED:
        return clue.usual_writer is not None
    before, after = contender(change.previous_holder), contender(change.holder)
    if change.change is not ChangeType.REPLACED or before is None or after is None:
        return False
    return before.workload != after.workload and _was_in_time(clue)


def _was_in_time(clue: Clue) -> bool:
    """Whether the holder had renewed at its usual rhythm."""
    usual = clue.cadence_seconds
    if usual is None or clue.observed_at is None:
        return False
    return (clue.change.at - clue.observed_at).total_seconds() <= 1.5 * usual + 1.0


def usual_writer(clue: Clue) -> str | None:
    """Return the manager that renews the Lease, as far as its managedFields still show."""
    if clue.usual_writer:
        return clue.usual_writer
    renews = owner_of("spec.renewTime", clue.managers)
    if renews is not None and renews != clue.change.writer:
        return renews
    others = [one.name for one in clue.managers if one.name != clue.change.writer]
    if any(not is_human_writer(name) for name in others):
        return next(name for name in others if not is_human_writer(name))
    return None if others else renews


def _moved_times(clue: Clue) -> bool:
    before, after = clue.before, clue.after
    if before is None or after is None:
        return True
    return (before.spec.renew_time, before.spec.acquire_time) != (
        after.spec.renew_time,
        after.spec.acquire_time,
    )


_GAPS = frozenset({ChangeType.EXPIRED, ChangeType.RELEASED, ChangeType.DELETED})
_OPENING = _GAPS | {ChangeType.REPLACED, ChangeType.TAKEN_OVER, ChangeType.RESTARTED}
# A contender may count on a shorter duration than the Lease has: that replaces a silent holder.
_AFTER_SILENCE = frozenset({ChangeType.EXPIRED, ChangeType.RESTARTED, ChangeType.REPLACED})
FOLLOWS = timedelta(seconds=60)  # an edit is taken back, a preferred holder takes over
RENEWED = timedelta(milliseconds=500)


class _Packed(Change, frozen=True, kw_only=True, array_like=True, gc=False):
    """The change of a clue whose episode rests."""

    heard_at: datetime | None = None
    by_person: bool = False


_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[_Packed]).decode


def packed(clues: Iterable[Clue]) -> bytes:
    """Keep what is told of clues of one Lease as bytes, which take less memory.

    Their members are kept beside them: an incident holds the same ones.
    """
    blank = ("cluster", "namespace", "name", "uid", "resource_version", "own_identity")
    return _pack([
        _Packed(
            **msgspec.structs.asdict(one.change)
            | dict.fromkeys(blank, "")
            | {"heard_at": one.observed_at, "by_person": one.by_person}
        )
        for one in clues
    ])  # fmt: skip


ZIPPED_TOGETHER = 16  # one alone is no smaller
_ZIPPED = b"\x78"  # how zlib begins, and msgpack no list


def zipped(kept: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Compress the last parts that are not compressed yet, once there are enough of them."""
    done = max((at for at, one in enumerate(kept, 1) if one.startswith(_ZIPPED)), default=0)
    if len(kept) - done < ZIPPED_TOGETHER:
        return kept
    together = _pack([one for part in kept[done:] for one in _unpack(part)])
    return (*kept[:done], zlib.compress(together))


def unpacked(kept: Iterable[bytes], members: Iterable[Member]) -> list[Clue]:
    parts = (zlib.decompress(one) if one.startswith(_ZIPPED) else one for one in kept)
    rows = [one for part in parts for one in _unpack(part)]
    return [_clue_of(one, member) for one, member in zip(rows, members, strict=True)]


def _clue_of(one: _Packed, member: Member) -> Clue:
    key = member.lease
    change = msgspec.structs.replace(
        one, namespace=key.namespace, name=key.name, own_identity=member.identity
    )
    return Clue(change=change, observed_at=one.heard_at, by_person=one.by_person, stored=member)


class Episode:
    """One Lease, and what happened to it. `open`: nobody holds it yet."""

    __slots__ = (
        "_clues", "_hosts", "_is_plain", "_members", "at", "cut_at", "duration", "end",
        "is_cut_off", "key", "kind", "loser", "losses", "lost_at", "open", "opening", "rhythm",
        "slowest", "stays_away", "waited_out",
    )  # fmt: skip

    def __init__(self, clue: Clue, waited_out: Break | None = None) -> None:
        """`waited_out`: nobody could write in that time; the clue ended a wait that was older."""
        self.key = clue.key
        self.waited_out = waited_out
        self._clues: list[Clue] | tuple[bytes, ...] = [clue]
        self._members: tuple[Member, ...] = ()  # of its clues, once it rests
        self._hosts: tuple[str, ...] = ()  # of those who lost it later
        self._is_plain = False  # its changes alone tell how it went
        self.losses = 1  # that it stands for
        self.open = clue.change.change in _GAPS
        self.cut_at: datetime | None = None  # what came after does not tell why it was lost
        self.end: Clue | None = None  # of what was cut: it is held again, or gone
        self.stays_away = False  # after an outage, when others are long back
        self.is_cut_off = False  # at `cut_at` began what tells how it went on
        self._begin()

    @property
    def clues(self) -> list[Clue]:
        kept = self._clues
        return kept if isinstance(kept, list) else unpacked(kept, self._members)

    @property
    def first(self) -> Clue:
        return self.clues[0]

    @property
    def rests(self) -> bool:
        """Whether it is judged for good."""
        return isinstance(self._clues, tuple)

    def rest(self) -> None:
        """Keep what is told of it, not what it was judged by: that is most of its memory."""
        clues = self.clues
        self._members = tuple(one.stored or Member(self.key, one.identity) for one in clues)
        self._clues = (packed(clues),)
        apart = self.waited_out or self.end or self.is_cut_off or self.stays_away or self.open
        put = self.opening is ChangeType.ACQUIRED or clues[0].own_cause is not None
        self._is_plain = not (apart or put or self.kind is Kind.HEARTBEAT)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of those who lost the Lease, each once."""
        first = () if self.loser is None else (self.loser.host,)
        return tuple(dict.fromkeys((*first, *self._hosts)))

    @property
    def kept(self) -> tuple[tuple[bytes, ...], tuple[Member, ...]] | None:
        """What is kept of it, if it rests, and nothing but its changes tells how it went."""
        if isinstance(self._clues, list) or not self._is_plain:
            return None
        return self._clues, self._members

    def take_over(self, later: "Episode") -> bool:
        """Stand for the next loss of the Lease too, where that is possible."""
        mine, its = self.kept, later.kept
        if mine is None or its is None:
            return False
        self._clues, self._members = zipped((*mine[0], *its[0])), (*mine[1], *its[1])
        self._hosts = tuple(dict.fromkeys((*self._hosts, *later.hosts)))
        self.losses += later.losses
        return True

    def begin_with(self, birth: Clue) -> None:
        """Let an earlier change begin it."""
        self.clues.insert(0, birth)
        self._begin()

    def _begin(self) -> None:
        """Read the first change once: the rules look at it again and again."""
        first = self.first
        change = first.change
        self.opening = change.change
        self.at = change.at
        self.kind = change.kind
        # Who held it before.
        it_goes_on = change.change in (ChangeType.RESTARTED, ChangeType.RECONFIGURED)
        self.loser = contender(change.holder if it_goes_on else change.previous_holder)
        # Whoever is put where nobody is brings the duration of what is lost later.
        held = first.after if self.opening is ChangeType.ACQUIRED else first.before
        lasted = None if held is None else held.spec.lease_duration_seconds
        self.duration = float(lasted or 15)
        # Seconds between the renewals of the holder, or a good guess.
        intervals, guess = first.renew_intervals, max(1.0, self.duration / 3)
        self.rhythm = max(0.1, min(intervals)) if intervals else guess
        self.slowest = max(intervals, default=guess)
        self.lost_at = self._lost_at()

    def _lost_at(self) -> datetime:
        """Return when the holder was last seen alive."""
        first = self.first
        unseen = first.change.inferred and self.opening is ChangeType.TAKEN_OVER
        if first.observed_at is None or not (unseen or self.opening in _AFTER_SILENCE):
            return self.at
        if first.edit is not None:
            return first.edit.renewal
        silent = (self.at - first.observed_at).total_seconds()
        if self.opening is ChangeType.REPLACED and silent <= 1.5 * self.rhythm + 1.0:
            return self.at
        return first.observed_at

    @property
    def last(self) -> Clue:
        return self.clues[-1]

    @property
    def all_clues(self) -> list[Clue]:
        """The clues, and what ended it after a time that nobody can tell about."""
        return self.clues if self.end is None else [*self.clues, self.end]

    @property
    def ended_at(self) -> datetime | None:
        """When it was over: nobody is without a Lease that was deleted."""
        if self.end is not None:
            return self.end.change.at
        if self.is_cut_off:
            return self.cut_at
        over = not self.open or self.last.change.change is ChangeType.DELETED
        return self.last.change.at if over else None

    def waits(self) -> Iterator[tuple[datetime, datetime | None]]:
        """Yield the times without a holder that no later holder ended: nobody waits for a lock."""
        since: datetime | None = None
        for clue in () if self.kind is Kind.LOCK else self.clues:
            change = clue.change
            if change.change is ChangeType.DELETED:
                if since is not None:
                    yield since, change.at
                since = None
            elif change.change in _GAPS:
                since = since or change.at
            elif change.change is not ChangeType.RECONFIGURED:
                since = None
        if since is not None:
            yield since, self.ended_at

    @property
    def unheld_since(self) -> datetime | None:
        """Since when nobody holds it, while that goes on."""
        return next((since for since, until in self.waits() if until is None), None)

    @property
    def winner(self) -> Contender | None:
        """Who holds it now, if anybody: an edit that made it count as held again proves nobody."""
        last = self.last
        edited = last.by_person and last.change.change is ChangeType.RECOVERED
        return None if self.open or edited else contender(last.change.holder)

    @property
    def costly(self) -> list[Change]:
        """The changes that ended a time without a holder which it began itself: whoever was put
        where nobody was ended that of another one.
        """
        put = self.opening is ChangeType.ACQUIRED or self.waited_out is not None
        return [one.change for one in (self.all_clues[1:] if put else self.all_clues)]

    def happened(self, *types: ChangeType) -> bool:
        return any(clue.change.change in types for clue in self.clues)

    def takes(self, clue: Clue) -> bool:
        """Whether a later change of the Lease belongs to this."""
        change = clue.change.change
        if change is ChangeType.RECONFIGURED:
            return self._reverts(clue)
        if self.open:
            return True
        if self.opening is ChangeType.RECONFIGURED:
            return self._prefers() and clue.change.at - self.at <= FOLLOWS
        return self._ends_theft(clue)

    def cut_off(self, at: datetime) -> None:
        """Let it end at that moment, without its last clue: nobody held the Lease yet."""
        if self.end is None:
            self.clues.pop()
        self.end, self.cut_at, self.is_cut_off, self.open = None, at, True, True

    def add(self, clue: Clue) -> None:
        self.clues.append(clue)
        change = clue.change.change
        if change is not ChangeType.RECONFIGURED:
            self.open = change in _GAPS

    def _prefers(self) -> bool:
        return "preferredHolder" in self.first.change.fields

    @property
    def only_edits(self) -> bool:
        """Whether it began with an edit that takes the Lease from nobody."""
        return self.opening is ChangeType.RECONFIGURED and not self._prefers()

    def _reverts(self, clue: Clue) -> bool:
        """Whether a holder puts its own configuration back, or the coordinator its choice."""
        return (
            self.opening is ChangeType.RECONFIGURED
            and clue.change.at - self.at <= FOLLOWS
            and bool(set(clue.change.fields) & set(self.first.change.fields))
            and (foreign_writer(clue) is None or self._prefers())
        )

    def _ends_theft(self, clue: Clue) -> bool:
        """Whether somebody loses it to its users who was put there and never renewed."""
        if clue.change.change is ChangeType.DELETED or foreign_writer(clue) is not None:
            return False  # another write of a person
        thief = self.last.change
        put = self.opening in (ChangeType.REPLACED, ChangeType.TAKEN_OVER) or self.happened(
            ChangeType.ACQUIRED
        )
        if not put or clue.change.previous_holder != thief.holder or clue.observed_at is None:
            return False
        by_hand = foreign_writer(self.last) is not None
        never_renewed = clue.observed_at - thief.at <= RENEWED
        return by_hand and never_renewed


def opens(clue: Clue) -> bool:
    """Whether a change starts an episode, if no other one takes it."""
    change = clue.change
    if change.change is ChangeType.RELEASED and change.kind is Kind.LOCK:
        return foreign_writer(clue) is not None  # a lock is there to be given back
    if change.change in _OPENING:
        return True
    if change.change is ChangeType.RECONFIGURED:
        return "preferredHolder" in change.fields or foreign_writer(clue) is not None
    return change.change is ChangeType.ACQUIRED and foreign_writer(clue) is not None
