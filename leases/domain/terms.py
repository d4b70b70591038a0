"""Fold the changes of one Lease name into terms and gaps, and its state at an instant.

Spans are half-open: `since` is inside, `until` is not. Within a generation (one uid, from created
to deleted) terms and gaps cover all time without overlap. Between generations there is no Lease:
that is a gap only if it named a holder, and the next one was seen to be created soon after.
The order of changes is right even if their times are not: a change dated before its predecessor,
because our clock was set back, counts at the time of the predecessor.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from operator import attrgetter
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from leases.domain.change import COUNTED_ONCE, REMADE_WITHIN, Change, ChangeType
from leases.domain.lease import ObjectName
from leases.domain.steady_clock import moved, plus, span

# Changes that start a term; `created` only if it names a holder.
STARTS = COUNTED_ONCE | {ChangeType.CREATED}
# How the previous term ended if no change said so.
_ENDED_BY = {
    ChangeType.CREATED: ChangeType.DELETED,
    ChangeType.ACQUIRED: ChangeType.RELEASED,
    ChangeType.TAKEN_OVER: ChangeType.EXPIRED,
    ChangeType.REPLACED: ChangeType.REPLACED,
    ChangeType.RESTARTED: ChangeType.RESTARTED,
    ChangeType.RELEASED: ChangeType.RELEASED,
    ChangeType.DELETED: ChangeType.DELETED,
}


class Gap(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Time in which nobody validly held it."""

    since: datetime
    until: datetime | None  # None: goes on
    # expired, released, created (without holder), deleted (and created anew); None: unknown
    after: ChangeType | None
    holder: str | None  # who held it before
    ended_by: ChangeType | None  # None: goes on
    inferred: bool = False  # its start is inferred
    renewed_at: datetime | None = None  # after an expiry: the last renewal
    vacant_since: datetime | None = None  # when the holder field became empty; None: it did not


class Term(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One holder's unbroken possession. An expiry that recovered is a gap inside it."""

    holder: str
    uid: str
    began: ChangeType | None  # None: before the first stored change, and `since` is that change
    since: datetime
    until: datetime | None  # None: goes on
    ended: ChangeType | None  # released, expired, replaced, restarted, deleted; None: goes on
    gaps: tuple[Gap, ...] = ()  # expiries that recovered
    # Changes of holder that leaseTransitions counts and nobody observed, at its start or in it.
    missed: int = 0
    inferred: bool = False  # its start is inferred
    # The start lies between this and `observed_at`.
    inferred_since: datetime | None = None
    observed_at: datetime  # when we learned of its start
    previous: str | None = None  # who held it before, also if the Lease was deleted in between

    @property
    def parts(self) -> Iterator[tuple[datetime, datetime | None, ChangeType | None]]:
        """Yield the times between its gaps in which it was valid, each with how it ended."""
        since = self.since
        for gap in self.gaps:
            yield since, gap.since, ChangeType.EXPIRED
            if gap.until is None:
                return
            since = gap.until
        yield since, self.until, self.ended

    @property
    def is_handover(self) -> bool:
        """Whether it came from another holder."""
        return self.began is not None and self.previous not in (None, self.holder)


class Generation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    uid: str
    since: datetime
    until: datetime | None  # None: it exists
    born: bool  # `created` was observed: it did not exist before `since`


class Life(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything stored about one Lease name, oldest first."""

    generations: tuple[Generation, ...] = ()
    terms: tuple[Term, ...] = ()
    gaps: tuple[Gap, ...] = ()  # between terms; a term holds those inside it
    reconfigurations: tuple[Change, ...] = ()


def fold(changes: Iterable[Change]) -> Life:
    folding = _Folding()
    for change in changes:
        folding.take(change)
    return folding.life()


class _Folding:
    """The life so far, and what is open at its end: a term, a gap, or neither (no Lease)."""

    def __init__(self) -> None:
        self._generations: list[Generation] = []
        self._terms: list[Term] = []
        self._gaps: list[Gap] = []
        self._reconfigurations: list[Change] = []
        self._uid: str | None = None  # of the Lease that exists
        self._dead: set[str] = set()
        self._term: Term | None = None
        self._gap: Gap | None = None  # with an open term: it expired and may recover
        self._now: datetime | None = None
        self._last_holder: str | None = None
        self._death: Gap | None = None  # between the last two generations, if it was a gap

    def take(self, change: Change) -> None:
        if change.uid in self._dead:
            return
        at = change.at if self._now is None else max(change.at, self._now)
        self._now = at
        self._in_generation(change, at)
        kind = change.change
        if kind is ChangeType.RECONFIGURED:
            self._reconfigurations.append(change)
        if kind is ChangeType.DELETED:
            self._end(change, at)
            self._die(at, change.previous_holder)
        elif kind is ChangeType.RELEASED or (kind in STARTS and change.holder is None):
            self._end(change, at)
            self._close_death(change, at)
            self._vacate(change, at, holder=change.previous_holder)
        elif kind in STARTS:
            self._run_out_unseen(change, at)
            self._end(change, at)
            self._close_gap(at, kind)
            self._close_death(change, at)
            self._open(change, at, began=kind, missed=change.missed)
        elif kind is ChangeType.EXPIRED:
            # A holder whose end is known already may expire later than that.
            if self._term is None or self._term.holder == change.holder:
                self._vacate(change, at, holder=change.holder)
        else:
            self._go_on(change, at)

    def life(self) -> Life:
        """Return the life so far. Open spans stay open."""
        terms, gaps = list(self._terms), list(self._gaps)
        if self._term is not None:
            terms.append(self._expired_term() if self._gap is not None else self._term)
        if self._gap is not None:
            gaps.append(self._gap)
        return Life(
            generations=tuple(self._generations),
            terms=tuple(terms),
            gaps=tuple(gaps),
            reconfigurations=tuple(self._reconfigurations),
        )

    def _in_generation(self, change: Change, at: datetime) -> None:
        """Switch to the generation of this change. The one before it was deleted by then."""
        if self._uid == change.uid:
            return
        if self._uid is not None:
            holder = self._term.holder if self._term is not None else None
            self._end(change, at, ended=ChangeType.DELETED)
            self._die(at, holder)
        if change.change is ChangeType.DELETED:
            return
        self._uid = change.uid
        born = change.change is ChangeType.CREATED and not change.inferred
        self._generations.append(Generation(uid=change.uid, since=at, until=None, born=born))

    def _die(self, at: datetime, holder: str | None) -> None:
        lost = None if self._gap is None else self._gap.renewed_at or self._gap.since
        self._close_gap(at, ChangeType.DELETED)
        self._last_holder, self._death = holder, None
        if holder is not None:
            self._death = Gap(
                since=at,
                until=None,
                after=ChangeType.DELETED,
                holder=holder,
                ended_by=None,
                renewed_at=lost,
            )
        if self._uid is not None:
            self._dead.add(self._uid)
            self._uid = None
            self._generations[-1] = replace(self._generations[-1], until=at)

    def _open(
        self, change: Change, at: datetime, *, began: ChangeType | None, missed: int = 0
    ) -> None:
        assert change.holder is not None  # noqa: S101 - the callers have looked
        told = None if change.change is ChangeType.CREATED else change.previous_holder
        previous, self._last_holder = told or self._last_holder, change.holder
        self._term = Term(
            holder=change.holder,
            uid=change.uid,
            began=began,
            since=at,
            until=None,
            ended=None,
            missed=missed,
            inferred=change.inferred,
            inferred_since=change.inferred_since,
            observed_at=change.observed_at,
            previous=previous,
        )

    def _end(self, change: Change, at: datetime, *, ended: ChangeType | None = None) -> None:
        """End the open term, if any: at its expiry if it expired, else by this change."""
        if self._term is None:
            return
        if self._gap is not None:
            self._terms.append(self._expired_term())
        else:
            unseen = 0 if change.change in STARTS else change.missed
            term = replace(
                self._term,
                until=at,
                ended=ended or _ENDED_BY[change.change],
                missed=self._term.missed + unseen,
            )
            self._terms.append(term)
        self._term = None

    def _run_out_unseen(self, change: Change, at: datetime) -> None:
        """Begin the gap that a take-over ended where nobody saw its beginning."""
        lost = change.gap_seconds if change.change is ChangeType.TAKEN_OVER else None
        if lost and self._term is not None and self._gap is None:
            self._gap = Gap(
                since=max(self._term.since, plus(at, -timedelta(seconds=lost))),
                until=None,
                after=ChangeType.EXPIRED,
                holder=self._term.holder,
                ended_by=None,
                inferred=True,
            )

    def _expired_term(self) -> Term:
        assert self._term is not None and self._gap is not None  # noqa: S101, PT018
        return replace(self._term, until=self._gap.since, ended=ChangeType.EXPIRED)

    def _vacate(self, change: Change, at: datetime, *, holder: str | None) -> None:
        """Start a gap, or continue the open one."""
        self._last_holder = holder or self._last_holder
        vacant_since = at if change.holder is None else None
        if self._gap is not None:
            if self._gap.vacant_since is None:
                self._gap = replace(self._gap, vacant_since=vacant_since)
            return
        self._gap = Gap(
            since=at,
            until=None,
            after=None if change.change is ChangeType.RECONFIGURED else change.change,
            holder=holder,
            ended_by=None,
            inferred=change.inferred,
            renewed_at=change.renewed_at,
            vacant_since=vacant_since,
        )

    def _go_on(self, change: Change, at: datetime) -> None:
        """Recovered or reconfigured: the term continues, or this is the first stored change."""
        term = self._term
        if term is None:
            self._join(change, at)
            return
        if change.change is ChangeType.RECOVERED and self._gap is not None:
            inner = _closed(self._gap, at, change.change)
            term = replace(term, gaps=(*term.gaps, inner))
            self._gap = None
        self._term = replace(term, missed=term.missed + change.missed)

    def _join(self, change: Change, at: datetime) -> None:
        """Start in the middle: earlier changes are not stored."""
        if change.change is ChangeType.RECOVERED:
            self._close_gap(at, change.change)
        if self._gap is not None:
            return
        if change.holder is None:
            self._vacate(change, at, holder=None)
        else:
            self._open(change, at, began=None)

    def _close_death(self, change: Change, at: datetime) -> None:
        """A Lease that was deleted while it named a holder was created anew."""
        death, self._death = self._death, None
        if death is None or change.inferred or not timedelta(0) < at - death.since <= REMADE_WITHIN:
            return
        self._gaps.append(_closed(death, at, change.change))

    def _close_gap(self, at: datetime, by: ChangeType) -> None:
        gap, self._gap = self._gap, None
        if gap is not None and gap.since < at:
            self._gaps.append(_closed(gap, at, by))


def _closed(gap: Gap, at: datetime, by: ChangeType) -> Gap:
    return replace(gap, until=at, ended_by=by)


S = TypeVar("S", Gap, Term, Generation)


class PastPhase(StrEnum):
    """The phase of a Lease in the past. Changes do not include renewals, so none is late."""

    HELD = "held"
    EXPIRED = "expired"
    VACANT = "vacant"
    DELETED = "deleted"  # there was no such Lease
    UNKNOWN = "unknown"  # before its first stored change


class PastState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    exists: bool
    holder: str | None = None  # also if expired: it still names its holder
    phase: PastPhase
    # Start of the term, gap or absence; None: before what we remember
    since: datetime | None = None
    term: Term | None = None  # the current term; if expired, the one that expired


def as_of(life: Life, at: datetime) -> PastState:
    """Return the state at that instant, including what happened exactly then."""
    generation = _last(life.generations, at)
    if generation is None:
        first = life.generations[0] if life.generations else None
        certain = first is not None and first.born
        return PastState(exists=False, phase=PastPhase.DELETED if certain else PastPhase.UNKNOWN)
    if generation.until is not None and generation.until <= at:
        return PastState(exists=False, phase=PastPhase.DELETED, since=generation.until)
    term, gap = _last(life.terms, at), _last(life.gaps, at)
    if term is not None and (term.until is None or at < term.until):
        inner = _last(term.gaps, at)
        if inner is not None and _goes_on(inner, at):
            return _in_gap(inner, term, at)
        since = None if term.began is None else term.since
        return PastState(
            exists=True, holder=term.holder, phase=PastPhase.HELD, since=since, term=term
        )
    if gap is not None and _goes_on(gap, at):
        expired = term is not None and term.until == gap.since and term.ended is ChangeType.EXPIRED
        return _in_gap(gap, term if expired else None, at)
    return PastState(exists=True, phase=PastPhase.UNKNOWN)


def _in_gap(gap: Gap, term: Term | None, at: datetime) -> PastState:
    if gap.vacant_since is not None and gap.vacant_since <= at:
        since = None if gap.after is None else gap.vacant_since
        return PastState(exists=True, phase=PastPhase.VACANT, since=since)
    return PastState(
        exists=True, holder=gap.holder, phase=PastPhase.EXPIRED, since=gap.since, term=term
    )


def _last(spans: Sequence[S], at: datetime) -> S | None:
    """Return the last span that had begun by then."""
    index = bisect_right(spans, at, key=attrgetter("since"))
    return spans[index - 1] if index else None


def _goes_on(gap: Gap, at: datetime) -> bool:
    return gap.until is None or at < gap.until


class LeaseGap(msgspec.Struct, frozen=True, gc=False):
    """A gap of one Lease; `held_since`: when the holder came whose term it follows."""

    key: ObjectName
    gap: Gap
    held_since: datetime | None
    may_be_vacant: bool = False  # an admin says so now


_MAX_TAIL = 4  # what began a term or a gap, and what became of it


class FollowedChange(msgspec.Struct, frozen=True, gc=False):
    """What a change ended and began in the life of a Lease."""

    gaps: Sequence[LeaseGap]  # those that it ended
    handover: bool  # another holder came with it


class GapFollower:
    """Finds the gaps and hand-overs of many Leases as their changes come; keeps those changes since
    each holder came.
    """

    def __init__(self) -> None:
        self._tails: dict[ObjectName, list[Change]] = {}

    def restore(self, before: Mapping[ObjectName, list[Change]]) -> None:
        """Begin after these changes, which define the state of each Lease."""
        self._tails = dict(before)

    def follow(self, change: Change) -> list[LeaseGap]:
        """Return the gaps that a change ended."""
        return list(self.step(change).gaps)

    def step(self, change: Change) -> FollowedChange:
        """Follow a change."""
        key = ObjectName(change.namespace, change.name)
        tail = self._tails.get(key) or _lost_before(change)
        life = fold([*tail, change])
        gaps = _with_holders(life)
        if tail and tail[-1].at == change.at:  # what that one ended is told
            told = _with_holders(fold(tail))
            gaps = [one for one in gaps if one not in told]
        came = change.change in STARTS and change.holder is not None
        if came or change.change is ChangeType.DELETED:
            self._tails[key] = [change]
        elif change.change is ChangeType.RECOVERED:
            self._tails[key] = [one for one in tail if one.change in STARTS]
        elif change.change is not ChangeType.RECONFIGURED:
            self._tails[key] = [*tail, change][-_MAX_TAIL:]
        return FollowedChange(
            [LeaseGap(key, gap, since) for gap, since in gaps if gap.until == change.at],
            handover=came and any(one.is_handover for one in life.terms[-1:] if one.until is None),
        )

    def drop(self, key: ObjectName) -> None:
        self._tails.pop(key, None)

    def forget(self, now: datetime) -> None:
        """Drop the Leases that were deleted for good."""
        self._tails = {
            key: tail
            for key, tail in self._tails.items()
            if tail and (tail[-1].change is not ChangeType.DELETED or _fresh(tail[-1], now))
        }

    def clock_jumped(self, by: timedelta) -> None:
        self._tails = {
            key: [moved_change(one, by) for one in tail] for key, tail in self._tails.items()
        }


def _with_holders(life: Life) -> list[tuple[Gap, datetime | None]]:
    """The gaps of a life, each with the time since when the holder before it had held the Lease."""
    gaps = [(gap, life.terms[0].since if life.terms else None) for gap in life.gaps]
    return gaps + [(gap, term.since) for term in life.terms for gap in term.gaps]


def _fresh(deleted: Change, now: datetime) -> bool:
    return now - deleted.at <= REMADE_WITHIN


def _lost_before(change: Change) -> list[Change]:
    """Make the loss of a holder that a change ended, where nothing before it is known."""
    if not change.gap_seconds or change.change is ChangeType.CREATED:
        return []
    expired = change.change is not ChangeType.ACQUIRED
    holder = change.previous_holder or change.holder
    lost = replace(
        change,
        change=ChangeType.EXPIRED if expired else ChangeType.RELEASED,
        at=plus(change.at, -span(change.gap_seconds)),
        holder=holder if expired else None,
        previous_holder=holder,
        inferred=False,
        gap_seconds=None,
    )
    return [lost]


def moved_change(change: Change, by: timedelta) -> Change:
    """Return a change by the clock after a jump."""
    return replace(change, at=moved(change.at, by), observed_at=moved(change.observed_at, by))
