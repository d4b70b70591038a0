"""Cut a Lease's life inside a stretch into pieces that never overlap.

A term is cut at its gaps, and at busy times, whose changes were only counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from leases.domain.past.terms import Gap, Life, Term


class BusyTime(msgspec.Struct, frozen=True):
    """A time with so many changes that they were only counted."""

    since: datetime
    until: datetime
    changes: int


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a term, a gap, or `changes` that were only counted; clipped to the stretch.

    `begins`: the term or gap begins here, not before the stretch or before an inner gap. `open`: it
    has no known end.
    """

    since: datetime
    until: datetime
    term: Term | None
    gap: Gap | None
    begins: bool
    open: bool
    changes: int = 0

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()


def pieces(
    life: Life, since: datetime, until: datetime, busy: Iterable[BusyTime] = ()
) -> tuple[Piece, ...]:
    """All pieces between two moments, oldest first; open ones reach `until`."""
    spans = [*_of_gaps(life.gaps)]
    for term in life.terms:
        spans += _of_term(term)
    clipped = (_clipped(span, since, until) for span in spans)
    found = [piece for piece in clipped if piece is not None]
    for one in busy:
        span = _Span(since=one.since, until=one.until, changes=one.changes)
        counted = _clipped(span, since, until)
        if counted is not None:
            found = [part for piece in found for part in _around(piece, counted)]
            found.append(counted)
    return tuple(sorted(found, key=lambda piece: (piece.since, piece.until)))


class _Span(msgspec.Struct, frozen=True, kw_only=True):
    """A piece before it is clipped; `until` None means open."""

    since: datetime
    until: datetime | None
    term: Term | None = None
    gap: Gap | None = None
    begins: bool = True
    changes: int = 0


def _of_gaps(gaps: tuple[Gap, ...]) -> Iterator[_Span]:
    for gap in gaps:
        yield _Span(since=gap.since, until=gap.until, gap=gap)


def _of_term(term: Term) -> Iterator[_Span]:
    """The term's gaps and the parts between them."""
    since, begins = term.since, term.began is not None
    for gap in term.gaps:
        yield _Span(since=since, until=gap.since, term=term, begins=begins)
        yield _Span(since=gap.since, until=gap.until, gap=gap)
        if gap.until is None:
            return
        since, begins = gap.until, False
    yield _Span(since=since, until=term.until, term=term, begins=begins)


def _clipped(span: _Span, since: datetime, until: datetime) -> Piece | None:
    end = until if span.until is None else span.until
    start, end = max(span.since, since), min(end, until)
    if start >= end:
        return None
    return Piece(
        since=start,
        until=end,
        term=span.term,
        gap=span.gap,
        begins=span.begins and span.since >= since,
        open=span.until is None,
        changes=span.changes,
    )


def _around(piece: Piece, counted: Piece) -> Iterator[Piece]:
    """The parts of a piece before and after a busy time."""
    if piece.until <= counted.since or counted.until <= piece.since:
        yield piece
        return
    if piece.since < counted.since:
        yield msgspec.structs.replace(piece, until=counted.since, open=False)
    if counted.until < piece.until:
        yield msgspec.structs.replace(piece, since=counted.until, begins=False)
