"""A Lease's life inside a stretch of time, cut into pieces that touch and never overlap: a term is
cut where a gap lies in it, and where so much happened that it was only counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from leases.domain.past.terms import Gap, Life, Term


class BusyTime(msgspec.Struct, frozen=True):
    """Time in which so many changes happened that they were only counted."""

    since: datetime
    until: datetime
    changes: int


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a term, a gap, or `changes` that were only counted. Its times lie inside the
    stretch.

    `begins` tells whether it begins with what it is a part of: else that began before the stretch,
    or goes on after a gap inside it. `open`: it has not ended, as far as is remembered.
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
    """Every piece between two moments, oldest first; what is open goes on to `until`."""
    spans = [*_of_gaps(life.gaps)]
    for term in life.terms:
        spans += _of_term(term)
    clipped = (_clipped(span, since, until) for span in spans)
    found = [piece for piece in clipped if piece is not None]
    for one in busy:
        counted = _counted(one, since, until)
        if counted is not None:
            found = [part for piece in found for part in _around(piece, counted)]
            found.append(counted)
    return tuple(sorted(found, key=lambda piece: (piece.since, piece.until)))


class _Span(msgspec.Struct, frozen=True, kw_only=True):
    """A piece before it is cut to the stretch; no `until`: it goes on."""

    since: datetime
    until: datetime | None
    term: Term | None = None
    gap: Gap | None = None
    begins: bool = True


def _of_gaps(gaps: tuple[Gap, ...]) -> Iterator[_Span]:
    for gap in gaps:
        yield _Span(since=gap.since, until=gap.until, gap=gap)


def _of_term(term: Term) -> Iterator[_Span]:
    """What lies between its gaps, and the gaps."""
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
    )


def _counted(busy: BusyTime, since: datetime, until: datetime) -> Piece | None:
    start, end = max(busy.since, since), min(busy.until, until)
    if start >= end:
        return None
    return Piece(
        since=start,
        until=end,
        term=None,
        gap=None,
        begins=busy.since >= since,
        open=False,
        changes=busy.changes,
    )


def _around(piece: Piece, counted: Piece) -> Iterator[Piece]:
    """What is left of a piece beside time that was only counted."""
    if piece.until <= counted.since or counted.until <= piece.since:
        yield piece
        return
    if piece.since < counted.since:
        yield msgspec.structs.replace(piece, until=counted.since, open=False)
    if counted.until < piece.until:
        yield msgspec.structs.replace(piece, since=counted.until, begins=False)
