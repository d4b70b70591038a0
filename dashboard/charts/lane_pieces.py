"""Cut a Lease's life inside a stretch into pieces, at its gaps and at busy times."""

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


class _Stretch(msgspec.Struct, frozen=True):
    since: datetime
    until: datetime

    def piece(
        self,
        since: datetime,
        until: datetime | None,
        *,
        term: Term | None = None,
        gap: Gap | None = None,
        begins: bool = True,
        changes: int = 0,
    ) -> Iterator[Piece]:
        """The part of a span inside the stretch; `until` None means open."""
        start = max(since, self.since)
        end = self.until if until is None else min(until, self.until)
        if start < end:
            yield Piece(
                since=start,
                until=end,
                term=term,
                gap=gap,
                begins=begins and since >= self.since,
                open=until is None,
                changes=changes,
            )

    def of_term(self, term: Term) -> Iterator[Piece]:
        """The term's gaps and the parts between them."""
        since, begins = term.since, term.began is not None
        for gap in term.gaps:
            yield from self.piece(since, gap.since, term=term, begins=begins)
            yield from self.piece(gap.since, gap.until, gap=gap)
            if gap.until is None:
                return
            since, begins = gap.until, False
        yield from self.piece(since, term.until, term=term, begins=begins)


def pieces(
    life: Life, since: datetime, until: datetime, busy: Iterable[BusyTime] = ()
) -> tuple[Piece, ...]:
    """All pieces between two moments, oldest first; open ones reach `until`."""
    stretch = _Stretch(since, until)
    found = [piece for gap in life.gaps for piece in stretch.piece(gap.since, gap.until, gap=gap)]
    found += [piece for term in life.terms for piece in stretch.of_term(term)]
    for one in busy:
        for counted in stretch.piece(one.since, one.until, changes=one.changes):
            found = [part for piece in found for part in _around(piece, counted)]
            found.append(counted)
    return tuple(sorted(found, key=lambda piece: (piece.since, piece.until)))


def _around(piece: Piece, counted: Piece) -> Iterator[Piece]:
    """The parts of a piece before and after a busy time."""
    if piece.until <= counted.since or counted.until <= piece.since:
        yield piece
        return
    if piece.since < counted.since:
        yield msgspec.structs.replace(piece, until=counted.since, open=False)
    if counted.until < piece.until:
        yield msgspec.structs.replace(piece, since=counted.until, begins=False)
