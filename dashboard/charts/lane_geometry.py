"""Draw one Lease's lane: terms, gaps and marks as shapes along a scale.

Changes too close together are merged into bands that count them, so a lane has a bounded number of
shapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from dashboard.charts.lane_pieces import BusyTime, Piece, pieces
from dashboard.charts.time_scale import WHOLE, Scale, percent
from leases.domain.past.terms import Gap, Life, Term

NARROW = 0.5  # percent; a narrower piece cannot be told from its neighbours
WIDEST = 20.0  # percent of a band: a zoom into it must show more than the lane does
MAX_SHAPES = 48


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A term, a gap, or a band of `changes` merged changes; x and width in percent.

    `edge`: it begins here. `narrow`: it is drawn as a mark of a few pixels. A band has `gaps` gaps
    with `gap_seconds` without a holder.
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
    x: float
    width: float
    since: datetime
    until: datetime


class LaneMark(msgspec.Struct, frozen=True):
    """Something that happened at a moment; one mark may stand for `number` close ones."""

    x: float
    at: datetime
    what: str
    number: int = 1


def shapes(
    life: Life, scale: Scale, *, busy: Iterable[BusyTime] = (), most: int = MAX_SHAPES
) -> tuple[Shape, ...]:
    placed = [
        _Placed(piece, scale.x(piece.since), scale.x(piece.until))
        for piece in pieces(life, scale.since, scale.until, busy)
    ]
    narrow = NARROW
    groups = _groups(placed, narrow)
    while len(groups) > most:
        narrow *= 2
        groups = _groups(placed, narrow)
    return tuple(_band(group, scale) if _merged(group) else _shape(group[0]) for group in groups)


def fog(spans: Iterable[tuple[datetime, datetime]], scale: Scale) -> tuple[Fog, ...]:
    """The spans inside the scale; spans too close together become one."""
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


def marks(moments: Iterable[tuple[datetime, str]], scale: Scale) -> tuple[LaneMark, ...]:
    """The marks inside the scale; equal marks too close together become one."""
    found: list[LaneMark] = []
    inside = (moment for moment in moments if scale.since <= moment[0] <= scale.until)
    for at, what in sorted(inside):
        x = percent(scale.x(at))
        last = found[-1] if found else None
        if last is not None and last.what == what and x - last.x < NARROW:
            found[-1] = LaneMark(last.x, last.at, what, last.number + 1)
        else:
            found.append(LaneMark(x, at, what))
    return tuple(found)


class _Placed(NamedTuple):
    piece: Piece
    x: float
    end: float


def _groups(placed: Sequence[_Placed], narrow: float) -> list[list[_Placed]]:
    """Group pieces into shapes: a piece alone, or narrow ones side by side."""
    groups: list[list[_Placed]] = []
    run: list[_Placed] = []
    for one in placed:
        if run and (one.x - run[-1].end >= narrow or one.end - run[0].x > WIDEST):
            groups += _drawn(run)
            run = []
        if one.piece.changes or one.end - one.x < narrow:
            run.append(one)
        else:
            groups += [*_drawn(run), [one]]
            run = []
    return [*groups, *_drawn(run)]


def _drawn(run: list[_Placed]) -> list[list[_Placed]]:
    """One or two narrow pieces stay alone; more become a band."""
    return [run] if _merged(run) else [[one] for one in run]


def _merged(group: Sequence[_Placed]) -> bool:
    return len(group) > 2 or any(one.piece.changes for one in group)


def _shape(placed: _Placed) -> Shape:
    piece = placed.piece
    width = placed.end - placed.x
    return Shape(
        x=percent(placed.x),
        width=percent(width),
        since=piece.since,
        until=piece.until,
        term=piece.term,
        gap=piece.gap,
        edge=piece.begins,
        narrow=width < NARROW,
        open=piece.open,
    )


def _band(group: Sequence[_Placed], scale: Scale) -> Shape:
    run = [one.piece for one in group]
    x, end = group[0].x, group[-1].end
    gaps = [piece for piece in run if piece.gap is not None]
    holders = dict.fromkeys(piece.term.holder for piece in run if piece.term is not None)
    return Shape(
        x=percent(x),
        width=percent(min(WHOLE - x, max(NARROW, end - x))),
        since=run[0].since,
        until=run[-1].until,
        changes=_changes(run, scale.since),
        gaps=len(gaps),
        gap_seconds=sum(piece.seconds for piece in gaps),
        holders=tuple(holders),
    )


def _changes(run: Sequence[Piece], since: datetime) -> int:
    """Each piece begins with a change, except one that began before the stretch."""
    counted = sum(piece.changes for piece in run)
    shown = [piece for piece in run if not piece.changes]
    return counted + len(shown) - any(piece.since == since for piece in shown[:1])
