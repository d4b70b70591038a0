"""One Lease's lane: terms, gaps and marks as shapes along a scale.

Where changes come too thick to be drawn one by one they are merged into bands that say how many,
so a lane has a bounded number of shapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from dashboard.charts.pieces import Busy, Piece, pieces
from dashboard.charts.scale import WHOLE, Scale, percent
from leases.domain.terms import Gap, Life, Term

NARROW = 0.5  # percent; a narrower piece cannot be told from its neighbours on a wide screen
MOST_SHAPES = 48


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A term, a gap, or a band of `changes` merged ones; x and width in percent.

    `edge`: it begins here. `narrow`: drawn as a mark of a few pixels. Of a band `gaps` is the
    number of gaps in it, and `gap_seconds` the time without a holder.
    """

    x: float
    width: float
    since: datetime
    until: datetime
    term: Term | None = None
    gap: Gap | None = None
    changes: int = 0
    gaps: int = 0
    gap_seconds: float = 0.0
    holders: tuple[str, ...] = ()
    edge: bool = False
    narrow: bool = False
    open: bool = False

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()


class Fog(msgspec.Struct, frozen=True):
    """Time in which nobody was watching: what happened then is not known."""

    x: float
    width: float
    since: datetime
    until: datetime


class Mark(msgspec.Struct, frozen=True):
    """Something that happened at a moment, `number` times so close that one mark stands for all."""

    x: float
    at: datetime
    what: str
    number: int = 1


def shapes(
    life: Life, scale: Scale, *, busy: Iterable[Busy] = (), most: int = MOST_SHAPES
) -> tuple[Shape, ...]:
    """What to draw of a life, oldest first; never more than `most`, however much happened."""
    found = pieces(life, scale.since, scale.until, busy)
    narrow = NARROW
    drawn = _merged(found, scale, narrow)
    while len(drawn) > most:
        narrow *= 2
        drawn = _merged(found, scale, narrow)
    return tuple(drawn)


def fog(spans: Iterable[tuple[datetime, datetime]], scale: Scale) -> tuple[Fog, ...]:
    """The spans inside the scale; those too close to be told apart are drawn as one."""
    found: list[Fog] = []
    for since, until in sorted(spans):
        if until <= scale.since or since >= scale.until:
            continue
        x, end = scale.x(since), scale.x(until)
        last = found[-1] if found else None
        if last is not None and x - (last.x + last.width) < NARROW:
            end = max(end, last.x + last.width)
            found[-1] = Fog(last.x, percent(end - last.x), last.since, max(until, last.until))
        else:
            found.append(Fog(percent(x), percent(end - x), since, until))
    return tuple(found)


def marks(moments: Iterable[tuple[datetime, str]], scale: Scale) -> tuple[Mark, ...]:
    """One mark where the same thing happened closer together than can be seen."""
    found: list[Mark] = []
    inside = (moment for moment in moments if scale.since <= moment[0] <= scale.until)
    for at, what in sorted(inside):
        x = percent(scale.x(at))
        last = found[-1] if found else None
        if last is not None and last.what == what and x - last.x < NARROW:
            found[-1] = Mark(last.x, last.at, what, last.number + 1)
        else:
            found.append(Mark(x, at, what))
    return tuple(found)


def _merged(found: Sequence[Piece], scale: Scale, narrow: float) -> list[Shape]:
    drawn: list[Shape] = []
    run: list[Piece] = []
    for piece in found:
        if run and scale.x(piece.since) - scale.x(run[-1].until) >= narrow:
            drawn += _drawn(run, scale)
            run = []
        if piece.changes or scale.x(piece.until) - scale.x(piece.since) < narrow:
            run.append(piece)
        else:
            drawn += [*_drawn(run, scale), _shape(piece, scale)]
            run = []
    return [*drawn, *_drawn(run, scale)]


def _drawn(run: Sequence[Piece], scale: Scale) -> list[Shape]:
    """Narrow pieces side by side: one or two are marks of their own, more are a band."""
    if len(run) > 2 or any(piece.changes for piece in run):
        return [_band(run, scale)]
    return [_shape(piece, scale) for piece in run]


def _shape(piece: Piece, scale: Scale) -> Shape:
    x = scale.x(piece.since)
    width = scale.x(piece.until) - x
    return Shape(
        x=percent(x),
        width=percent(width),
        since=piece.since,
        until=piece.until,
        term=piece.term,
        gap=piece.gap,
        edge=piece.begins,
        narrow=width < NARROW,
        open=piece.open,
    )


def _band(run: Sequence[Piece], scale: Scale) -> Shape:
    x = scale.x(run[0].since)
    gaps = [piece for piece in run if piece.gap is not None]
    holders = dict.fromkeys(piece.term.holder for piece in run if piece.term is not None)
    return Shape(
        x=percent(x),
        width=percent(min(WHOLE - x, max(NARROW, scale.x(run[-1].until) - x))),
        since=run[0].since,
        until=run[-1].until,
        changes=_changes(run, scale.since),
        gaps=len(gaps),
        gap_seconds=sum(piece.seconds for piece in gaps),
        holders=tuple(holders),
    )


def _changes(run: Sequence[Piece], since: datetime) -> int:
    """Each piece begins with a change, but not one that was there before the stretch."""
    counted = sum(piece.changes for piece in run)
    told = [piece for piece in run if not piece.changes]
    return counted + len(told) - any(piece.since == since for piece in told[:1])
