"""The label and the tooltip of each shape on a lane."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise

import msgspec

from dashboard.charts.lanes import LaneMark, Shape, fit, fit_around, marks
from dashboard.charts.time_axis import Scale, percent
from dashboard.parts.formatting import age, counted, gap_length, listed, when
from dashboard.parts.names import HUES, HolderView, holder_view
from leases.domain.change import Change, ChangeType
from leases.domain.figures import LONG_GAP_SECONDS, Span, held, held_by, watched_seconds, without
from leases.domain.terms import Gap, Life, Term

WHOLLY = ((0.0, 100.0),)  # watched
MARKS = {"edit": "by hand here", "reconfigured": "reconfigured"}
_ENDED = {
    ChangeType.EXPIRED: "it expired",
    ChangeType.RELEASED: "released",
    ChangeType.REPLACED: "replaced while it still held",
    ChangeType.RESTARTED: "acquired anew by itself",
    ChangeType.DELETED: "the Lease was deleted",
}
_AFTER = {
    ChangeType.EXPIRED: "it expired",
    ChangeType.RELEASED: "it was released",
    ChangeType.CREATED: "it was created without one",
    ChangeType.DELETED: "the Lease was deleted, and made anew",
}


class ShapeView(msgspec.Struct, frozen=True, kw_only=True):
    """`what` is "term", "gap" or "band"; times are epoch seconds."""

    what: str
    x: float
    width: float
    since: float
    until: float
    hue: int
    holder: HolderView | None
    label: str
    title: str
    edge: bool
    narrow: bool
    bad: bool
    changes: int
    watched: tuple[tuple[float, float], ...] = ()  # x and width of the parts of a gap, in percent
    vacant: float = 0.0  # when a gap's last holder was no longer named; 0: it still was
    url: str = ""  # of the stretch that shows a band's changes


def lane_role(shapes: Iterable[ShapeView], *, linked: bool = False) -> str:
    """The ARIA role of a lane: links are not found inside an image. `linked`: it has others."""
    return "group" if linked or any(shape.url for shape in shapes) else "img"


class MarkView(msgspec.Struct, frozen=True):
    x: float
    what: str
    title: str


def shape_views(
    shapes: Iterable[Shape],
    now: datetime,
    *,
    zoom: Callable[[datetime, datetime], str],
    end: datetime | None = None,
    blind: Sequence[Span] = (),
) -> tuple[ShapeView, ...]:
    """Add the words to the shapes of a lane. Neighbours differ in hue and in label.

    `zoom` makes the URL that shows the changes of a band; `end` is the last known moment; None
    means now. In the times of `blind` nobody watched: they are no trouble.
    """
    views = [_shape_view(shape, now, zoom, end, blind) for shape in shapes]
    terms = [place for place, view in enumerate(views) if view.holder is not None]
    hues = _hues([views[place].holder for place in terms])
    for before, place in zip([None, *terms], terms, strict=False):
        view = views[place]
        hue = hues[view.holder.identity] if view.holder else 0
        label = view.label if before is None else _unlike(view, views[before])
        if (hue, label) != (view.hue, view.label):
            views[place] = msgspec.structs.replace(view, hue=hue, label=label)
    return tuple(views)


def _hues(holders: Sequence[HolderView | None]) -> dict[str, int]:
    """The hue of each holder of a lane, by identity. The newest has that of the other pages."""
    neighbours: dict[str, set[str]] = {}
    usual = {one.identity: one.hue for one in reversed(holders) if one}
    for one, other in pairwise(holders):
        if one and other and one.identity != other.identity:
            neighbours.setdefault(one.identity, set()).add(other.identity)
            neighbours.setdefault(other.identity, set()).add(one.identity)
    found: dict[str, int] = {}
    for name, hue in usual.items():
        taken = {found[other] for other in neighbours.get(name, ()) if other in found}
        free = ((hue + step - 1) % HUES + 1 for step in range(HUES))
        found[name] = next((one for one in free if one not in taken), hue)
    return found


def _unlike(view: ShapeView, before: ShapeView) -> str:
    """Its label; from where its holder differs from the one before on, if both would read alike."""
    one, other = view.holder, before.holder
    if one is None or other is None or not view.label or view.label != before.label:
        return view.label
    if one.identity == other.identity:
        return view.label
    return fit_around(one.identity, other.identity, view.width)


def _shape_view(
    shape: Shape,
    now: datetime,
    zoom: Callable[[datetime, datetime], str],
    end: datetime | None,
    blind: Sequence[Span],
) -> ShapeView:
    holder = holder_view(shape.term.holder) if shape.term else None
    watched = tuple(_watched(shape, blind)) if shape.gap else ()
    return ShapeView(
        what="term" if shape.term else "gap" if shape.gap else "band",
        x=shape.x,
        width=shape.width,
        since=shape.since.timestamp(),
        until=shape.until.timestamp(),
        hue=holder.hue if holder else 0,
        holder=holder,
        label=_label(shape, holder),
        title=_title(shape, holder, now, end, blind),
        edge=shape.edge,
        narrow=shape.narrow,
        bad=bool(watched) or watched_seconds(shape.lost, blind) >= LONG_GAP_SECONDS,
        changes=shape.changes,
        watched=watched,
        vacant=shape.gap.vacant_since.timestamp() if shape.gap and shape.gap.vacant_since else 0.0,
        url=zoom(shape.since, shape.until) if shape.changes else "",
    )


def mark_view(mark: LaneMark, changes: Sequence[Change], now: datetime) -> MarkView:
    """Add the words to a mark; a single change also names its fields."""
    word = MARKS[mark.what]
    fields = [", ".join(c.fields) for c in changes if c.at == mark.at and mark.what != "edit"]
    if mark.number > 1:
        return MarkView(mark.x, mark.what, f"{word} {mark.number} times from {when(mark.at, now)}")
    what = f"{word}: {fields[0]}" if fields and fields[0] else word
    return MarkView(mark.x, mark.what, f"{what}, {when(mark.at, now)}")


def lane_marks(
    life: Life, edits: Iterable[datetime], scale: Scale, now: datetime
) -> list[MarkView]:
    """The edits and the reconfigurations of a Lease."""
    moments = [(at, "edit") for at in edits]
    moments += [(change.at, "reconfigured") for change in life.reconfigurations]
    return [mark_view(mark, life.reconfigurations, now) for mark in marks(moments, scale)]


def _label(shape: Shape, holder: HolderView | None) -> str:
    if holder is not None:
        return fit(holder.host, holder.tail, shape.width)
    if not shape.changes:
        return ""
    long = fit(counted(shape.changes, "change"), "", shape.width)
    return long if long and "…" not in long else fit(str(shape.changes), "", shape.width)


def _watched(shape: Shape, blind: Sequence[Span]) -> Iterator[tuple[float, float]]:
    """Yield the parts of a gap that somebody watched: only these are trouble."""
    scale = Scale(shape.since, shape.until)
    for since, until in without((shape.since, shape.until), blind):
        x = scale.x(since)
        yield percent(x), percent(scale.x(until) - x)


def gap_seconds(gap: Gap, end: datetime) -> float:
    return ((gap.until or end) - gap.since).total_seconds()


def unwatched_in(gap: Gap, end: datetime, blind: Sequence[Span]) -> float:
    """How much of a gap nobody watched."""
    return held(gap.since, gap.until or end, blind).unwatched


def _title(
    shape: Shape,
    holder: HolderView | None,
    now: datetime,
    end: datetime | None,
    blind: Sequence[Span],
) -> str:
    if shape.term is not None and holder is not None:
        return term_title(shape.term, holder, now, end, blind)
    if shape.gap is not None:
        return gap_title(shape.gap, now, end, blind)
    return band_title(shape, now, blind)


def until_when(until: datetime | None, now: datetime, end: datetime | None) -> str:
    """When a span ended, or up to when it is known to go on."""
    if until is not None:
        return when(until, now)
    return "now" if end is None else f"{when(end, now)} and on"


def term_title(
    term: Term,
    holder: HolderView,
    now: datetime,
    end: datetime | None = None,
    blind: Sequence[Span] = (),
) -> str:
    """`cp-2, 18:05:43 to 03:12:22 (9 h 6 m), it expired`."""
    since = when(term.since, now) if term.began else f"before {when(term.since, now)}"
    lasted = held_by(term, end or now, blind)
    length = age(lasted.watched)
    if lasted.unwatched:
        length = f"{length} watched, {age(lasted.unwatched)} not"
    until = until_when(term.until, now, end)
    bits = [f"{holder.host}{holder.tail}, {since} to {until} ({length})"]
    again = f"expired and recovered {counted(len(term.gaps), 'time')}"
    bits += [again] if term.gaps else []
    bits += [how_ended(term)] if term.ended else []
    bits += [f"{counted(term.missed, 'change')} of holder not seen"] if term.missed else []
    bits += (
        [f"began between {when(term.inferred_since, now)} and {when(term.observed_at, now)}"]
        if term.inferred and term.inferred_since
        else []
    )
    return ", ".join(bits)


def how_ended(term: Term) -> str:
    """Why a term is over, or "" while it lasts."""
    return end_word(term.ended)


def end_word(ended: ChangeType | None) -> str:
    return _ENDED[ended] if ended else ""


def gap_title(
    gap: Gap, now: datetime, end: datetime | None = None, blind: Sequence[Span] = ()
) -> str:
    """`No holder for 19 s, from 03:12:22: it expired`."""
    last = end or now
    length = gap_length(gap_seconds(gap, last), unwatched_in(gap, last, blind))
    why = f": {_AFTER[gap.after]}" if gap.after in _AFTER else ""
    still = "" if gap.until else ", still" if end is None else f", still at {when(end, now)}"
    return f"No holder for {length}{still}, from {when(gap.since, now)}{why}"


def band_title(shape: Shape, now: datetime, blind: Sequence[Span] = ()) -> str:
    """`27 changes among cp-1 and cp-2, 03:12:22 to 03:14:01, 12 s of it without a holder`."""
    span = f"{when(shape.since, now)} to {when(shape.until, now)}"
    seconds = watched_seconds(shape.lost, blind)
    lost = f", {age(seconds)} of it without a holder" if seconds else ""
    names = f" {among(shape)}" if shape.holders else ""
    return f"{counted(shape.changes, 'change')}{names}, {span}{lost}"


def among(shape: Shape) -> str:
    """The holders in a band, as far as they are known."""
    short = [view.short for view in map(holder_view, shape.holders) if view]
    return f"among {listed(short)}" if short else ""
