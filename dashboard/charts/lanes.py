"""The geometry of lanes: terms, gaps and marks of one Lease or one holder along a scale.

Changes too close together are merged into bands that count them, so a lane has a bounded number of
shapes.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from dashboard.charts.time_axis import WHOLE, Scale, percent
from leases.domain.terms import Gap, Life, Term

LANE_WIDTH = 860.0  # pixels of a lane on a wide screen; a narrower one cuts the label
LETTER = 6.65  # pixels, of 11 px monospace
_PADDING = 15.0
_FEWEST = 3  # letters that are still of use
_END = 6  # letters that stay at the end of a name without a tail: its number, for one


def letters_in(share: float, *, lane_width: float = LANE_WIDTH) -> int:
    """How many letters fit into a bar that has `share` percent of the lane."""
    return int((share / 100 * lane_width - _PADDING) / LETTER)


def fit(host: str, tail: str, share: float, *, lane_width: float = LANE_WIDTH) -> str:
    """The name in a bar that has `share` percent of the lane; "" if too little fits.

    It is cut in the middle: names of one set begin alike and end differently.
    """
    letters, name = letters_in(share, lane_width=lane_width), host + tail
    if len(name) <= letters:
        return name
    end = tail or name[-_END:]
    if letters >= len(end) + 1 + _FEWEST:
        return f"{name[: letters - len(end) - 1]}…{end}"
    return f"…{name[1 - letters :]}" if letters > max(_FEWEST, len(tail.lstrip("-"))) else ""


def fit_around(name: str, other: str, share: float) -> str:
    """The letters of a name from where it differs from another one on; "" if too little fits."""
    letters = letters_in(share)
    pairs = enumerate(zip(name, other, strict=False))
    differs = next((at for at, (a, b) in pairs if a != b), min(len(name), len(other)))
    first = max(0, min(differs - 1, len(name) - letters + 1))
    part = f"…{name[first:]}" if first else name
    if len(part) > letters:
        part = f"{part[: letters - 1]}…"
    return part if letters > _FEWEST else ""


class BusyTime(msgspec.Struct, frozen=True):
    """A time with so many changes that they were only counted."""

    since: datetime
    until: datetime
    changes: int


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a term, a gap, or `changes` that were only counted; clipped to the stretch.

    `begins`: the term or gap begins here, not before the stretch or before an inner gap.
    """

    since: datetime
    until: datetime
    term: Term | None
    gap: Gap | None
    begins: bool
    changes: int = 0


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
        yield msgspec.structs.replace(piece, until=counted.since)
    if counted.until < piece.until:
        yield msgspec.structs.replace(piece, since=counted.until, begins=False)


NARROW = 0.5  # percent; a narrower piece cannot be told from its neighbours
WIDEST = 20.0  # percent of a band: a zoom into it must show more than the lane does
MAX_SHAPES = 48


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A term, a gap, or a band of `changes` merged changes; x and width in percent.

    `edge`: it begins here. `narrow`: it is drawn as a mark of a few pixels. Nobody held it in
    the times of `lost` in a band.
    """

    x: float
    width: float
    since: datetime
    until: datetime
    term: Term | None = None
    gap: Gap | None = None
    changes: int = 0
    lost: tuple[tuple[datetime, datetime], ...] = ()
    holders: tuple[str, ...] = ()
    edge: bool = False
    narrow: bool = False

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
    )


def _band(group: Sequence[_Placed], scale: Scale) -> Shape:
    run = [one.piece for one in group]
    x, end = group[0].x, group[-1].end
    holders = dict.fromkeys(piece.term.holder for piece in run if piece.term is not None)
    return Shape(
        x=percent(x),
        width=percent(min(WHOLE - x, max(NARROW, end - x))),
        since=run[0].since,
        until=run[-1].until,
        changes=_changes(run, scale.since),
        lost=tuple((piece.since, piece.until) for piece in run if piece.gap is not None),
        holders=tuple(holders),
    )


def _changes(run: Sequence[Piece], since: datetime) -> int:
    """Each piece begins with a change, except one that began before the stretch."""
    counted = sum(piece.changes for piece in run)
    shown = [piece for piece in run if not piece.changes]
    return counted + len(shown) - any(piece.since == since for piece in shown[:1])


NARROW_SPELL = 0.5  # percent; closer terms are drawn as one


class Spell(msgspec.Struct, frozen=True, kw_only=True):
    """A time with `terms` terms, of which `edges` are the beginnings; x and width in percent."""

    x: float
    width: float
    since: datetime
    until: datetime
    terms: int
    edges: tuple[float, ...]


def spells(terms: Iterable[tuple[datetime, datetime]], scale: Scale) -> tuple[Spell, ...]:
    """The spells of (since, until) terms inside the scale, oldest first; at most 200."""
    inside = sorted(
        (since, until) for since, until in terms if until > scale.since and since < scale.until
    )
    runs: list[list[tuple[datetime, datetime]]] = []
    end = 0.0
    for since, until in inside:
        x = scale.x(since)
        if runs and x - end < NARROW_SPELL:
            runs[-1].append((since, until))
        else:
            runs.append([(since, until)])
            end = 0.0
        end = max(end, scale.x(until))
    return tuple(_spell(run, scale) for run in runs)


def _spell(run: list[tuple[datetime, datetime]], scale: Scale) -> Spell:
    since, until = run[0][0], max(until for _, until in run)
    x = scale.x(since)
    edges: list[float] = []
    for begun, _ in run:
        edge = scale.x(begun)
        if begun > scale.since and (not edges or edge - edges[-1] >= NARROW_SPELL):
            edges.append(edge)
    return Spell(
        x=percent(x),
        width=percent(max(NARROW_SPELL, scale.x(until) - x)),
        since=since,
        until=until,
        terms=len(run),
        edges=tuple(percent(edge) for edge in edges),
    )
