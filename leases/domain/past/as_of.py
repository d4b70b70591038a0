"""The state of a Lease at an instant, and how long nobody held it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from itertools import chain
from operator import attrgetter
from typing import TypeVar

import msgspec

from leases.domain.changes.change import ChangeType
from leases.domain.past.terms import Gap, Generation, Life, Term, seconds_within

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


def leaderless(life: Life, since: datetime, until: datetime) -> float:
    """Return the seconds of a range in which the Lease existed and nobody validly held it."""
    inner = (gap for term in life.terms for gap in term.gaps)
    return sum(seconds_within(gap, since, until) for gap in chain(life.gaps, inner))


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
