"""A Lease's life inside a stretch of time, cut into pieces that touch and never overlap: a term is
cut where a gap lies in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from leases.domain.terms import Gap, Life, Term


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a term, or a gap. Its times lie inside the stretch.

    `begins` tells whether it begins with what it is a part of: else that began before the stretch,
    or goes on after a gap inside it. `open`: it has not ended, as far as is remembered.
    """

    since: datetime
    until: datetime
    term: Term | None
    gap: Gap | None
    begins: bool
    open: bool

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()


def pieces(life: Life, since: datetime, until: datetime) -> tuple[Piece, ...]:
    """Every piece between two moments, oldest first; what is open goes on to `until`."""
    found = [*_of_gaps(life.gaps)]
    for term in life.terms:
        found += _of_term(term)
    inside = (_clipped(piece, since, until) for piece in found)
    return tuple(sorted((p for p in inside if p is not None), key=lambda p: (p.since, p.until)))


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
