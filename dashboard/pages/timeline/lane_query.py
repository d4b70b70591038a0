"""Choose and order the lanes of the timeline, and read them from history."""

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice

import msgspec

from dashboard.charts.lanes import BusyTime
from dashboard.parts.answer_cache import AnswerCache
from dashboard.parts.as_of import NOT_YET, counted_as, created_after, nobody_at, stood
from dashboard.parts.flapping import flappers_of
from dashboard.parts.holdings import KINDS as KINDS_OF_HOLDERS
from dashboard.parts.names import is_held_by
from dashboard.parts.time_range import BY_CHANGES, BY_NAME, TimelineFilter, TimeRange
from leases.actions import audit
from leases.domain.figures import TROUBLE, Span, is_in_trouble, severity
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.terms import Life, PastPhase, PastState, as_of
from leases.domain.watched_times import UnwatchedTime
from leases.history import timeline_lanes as history_lanes
from leases.history.lease_figures import Stretch, read_stretch
from leases.history.states_as_of import (
    State,
    born_later,
    changes_before,
    ended_terms,
    gone_since,
    states_at,
)
from leases.history.timeline_lanes import LaneTotals
from leases.history.watched_spans import blind_between, unwatched_times
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked

USUAL_KINDS = (Kind.ELECTION,)
TROUBLED, NOBODY, CHANGED, QUIET, ABSENT = "trouble", "nobody", "changed", "quiet", "absent"


class LanePlace(msgspec.Struct, frozen=True, gc=False):
    """One lane with its group: a namespace, or one of the groups above."""

    key: ObjectName
    group: str
    flaps: bool = False


class LanePage(msgspec.Struct, frozen=True):
    """One page of `total` lanes, or the last page; `changed` counts lanes with a change."""

    page: list[LanePlace]
    number: int
    total: int
    changed: int


def kinds_of(wanted: TimelineFilter) -> tuple[Kind, ...]:
    return wanted.kinds or (KINDS_OF_HOLDERS if wanted.holder else USUAL_KINDS)


def choose(
    store: Store,
    wanted: TimelineFilter,
    shown: TimeRange,
    *,
    active: Mapping[ObjectName, LaneTotals],
    gone: Collection[ObjectName] = (),
    nobody: Sequence[ObjectName] = (),
    flapping: Collection[ObjectName] = (),
    held: Collection[ObjectName] | None = None,
) -> LanePage:
    """Choose one page. `active` lost or changed their holder in the stretch, `gone` were deleted
    since it began, `nobody` had no holder at a playhead in the past, the longest first, and
    `flapping` flap now. `held` are the Leases of the wanted holder; None if any holder is wanted.
    """
    kinds, wants = kinds_of(wanted), _wants(store, wanted, held)
    searches = bool(wanted.text) or held is not None
    busy = {key: totals for key, totals in active.items() if wants(key)}
    lost = {key for key in (*gone, *busy) if store.get(key) is None and wants(key)}
    every = _by_name(store, kinds, lost, wants if searches else None)
    if wanted.sort == BY_NAME:
        places: Iterator[LanePlace] = (LanePlace(key, key.namespace) for key in every)
    else:
        first, rank = [LanePlace(key, NOBODY) for key in nobody if wants(key)], _longest_gap
        if wanted.sort == BY_CHANGES:
            first, rank = [], _most_changes
        elif shown.follows:
            bad = _troubled_now(store, kinds, wants, flapping)
            first = [LanePlace(key, TROUBLED) for key in bad]
        places = _worst_first(every, first, busy, _not_yet(store, shown), rank)
    if searches:
        found = list(places)
        total, places = len(found), iter(found)
    else:
        counts = store.counts()
        total = sum(sum(counts.get(kind, {}).values()) for kind in kinds) + len(lost)
    number, place = wanted.page_of(total)
    some = islice(places, place.start, place.stop)
    page = [LanePlace(one.key, one.group, one.key in flapping) for one in some]
    return LanePage(page, number, total, len(busy))


def _wants(
    store: Store, wanted: TimelineFilter, held: Collection[ObjectName] | None
) -> Callable[[ObjectName], bool]:
    kinds, text = kinds_of(wanted), wanted.text.casefold()

    def wants(key: ObjectName) -> bool:
        tracked = store.get(key)
        of_kind = tracked is None or tracked.kind in kinds
        named = not text or text in str(key).casefold()
        return of_kind and named and (held is None or key in held)

    return wants


def _by_name(
    store: Store,
    kinds: Collection[Kind],
    lost: Collection[ObjectName],
    wants: Callable[[ObjectName], bool] | None,
) -> Iterator[ObjectName]:
    there = (tracked.key for tracked in store.select(kinds, tuple(Phase)))
    return heapq.merge(filter(wants, there) if wants else there, sorted(lost))


def _troubled_now(
    store: Store,
    kinds: Collection[Kind],
    wants: Callable[[ObjectName], bool],
    flapping: Collection[ObjectName],
) -> list[ObjectName]:
    bad = {
        t.key: t
        for t in store.select(kinds, TROUBLE)
        if is_in_trouble(t.phase, t.kind, excused=t.excused) and wants(t.key)
    }
    bad |= {k: t for k in flapping if (t := store.get(k)) and t.kind in kinds and wants(k)}

    def rank(tracked: Tracked) -> tuple[float, datetime, ObjectName]:
        worst = severity(tracked.phase, flaps=tracked.key in flapping)
        return worst, tracked.trouble_since, tracked.key

    return [tracked.key for tracked in sorted(bad.values(), key=rank)]


def _not_yet(store: Store, shown: TimeRange) -> Callable[[ObjectName], bool]:
    """A test whether a Lease was created after the end of the stretch."""

    def came_later(key: ObjectName) -> bool:
        tracked = None if shown.live else store.get(key)
        created = tracked.lasting.lease.metadata.creation_timestamp if tracked else None
        return created is not None and created > shown.until

    return came_later


def _longest_gap(totals: LaneTotals) -> tuple[float, float]:
    return -totals.leaderless, -totals.handovers


def _most_changes(totals: LaneTotals) -> tuple[float, float]:
    return -totals.handovers, -totals.leaderless


def _worst_first(
    every: Iterable[ObjectName],
    first: Sequence[LanePlace],
    busy: Mapping[ObjectName, LaneTotals],
    came_later: Callable[[ObjectName], bool],
    rank: Callable[[LaneTotals], tuple[float, float]],
) -> Iterator[LanePlace]:
    """First the lanes of `first`; then those that changed, by `rank`; then by name; last, Leases
    that did not exist yet.
    """
    seen = {place.key for place in first}
    ranked = sorted((*rank(totals), key) for key, totals in busy.items() if key not in seen)
    seen.update(busy)
    absent: list[ObjectName] = []

    def quiet() -> Iterator[LanePlace]:
        for key in every:
            if key in seen:
                continue
            if came_later(key):
                absent.append(key)
            else:
                yield LanePlace(key, QUIET)

    def later() -> Iterator[LanePlace]:
        yield from (LanePlace(key, ABSENT) for key in absent)

    return chain(first, (LanePlace(key, CHANGED) for _, _, key in ranked), quiet(), later())


_totals: AnswerCache[dict[ObjectName, history_lanes.LaneTotals]] = AnswerCache(
    fresh=1.0, cost=20.0, most=64
)


class TimelineLane(msgspec.Struct, frozen=True, kw_only=True):
    """One Lease over the stretch; in `busy` times its changes are only counted."""

    place: LanePlace
    life: Life
    busy: tuple[BusyTime, ...]
    changes: int
    phase: str  # how it stands now
    kind: Kind | None
    standing: PastState
    watched: bool
    edits: Sequence[datetime]

    @property
    def key(self) -> ObjectName:
        return self.place.key


class Lanes(msgspec.Struct, frozen=True):
    """One page of lanes, the unwatched times, and whether somebody watched at the playhead."""

    page: list[TimelineLane]
    chosen: LanePage
    blind: Sequence[UnwatchedTime]
    watched: bool
    stands: Counter[str] | None = None  # of all pages, how Leases stood; None: too many to read
    stretch: Stretch | None = None  # as far as it is known; None without lanes
    # Those times from the first change on of what is shown whole, also before the stretch.
    blind_terms: Sequence[Span] = ()


MAX_STANDS = 5000  # Leases whose state at a past instant is read


def _stands(
    store: Store,
    wanted: TimelineFilter,
    shown: TimeRange,
    past: Collection[ObjectName],
    held: Collection[ObjectName] | None,
) -> Counter[str] | None:
    """Count how all wanted Leases stand at the playhead, in words of `counted_as`.

    `past`: those that history knows of the stretch; the store may not have them.
    """
    kinds, wants = kinds_of(wanted), _wants(store, wanted, held)
    living = [one for one in store.select(kinds, tuple(Phase)) if wants(one.key)]
    if shown.follows:
        nobody = (Phase.EXPIRED, Phase.VACANT)
        return Counter(
            counted_as(one.kind, one.phase.value) if one.phase in nobody else "held"
            for one in living
        )
    keys = sorted({*(one.key for one in living), *filter(wants, past)})
    if len(keys) > MAX_STANDS:
        return None
    states = {state.key: state for state in states_at(store.cluster, keys, shown.at)}
    missing = [key for key in keys if key not in states and not store.get(key)]
    later = born_later(store.cluster, missing, shown.at)
    words = Counter(
        counted_as(_kind(store.get(key), state), stood(state.standing))
        for key, state in states.items()
    )
    for key in keys:
        if key not in states:
            absent = key in later or created_after(store.get(key), shown.at)
            words["absent" if absent or key in past else "unknown"] += 1
    return words


def read_lanes(store: Store, wanted: TimelineFilter, shown: TimeRange, now: datetime) -> Lanes:
    """Read the wanted lanes from history and the store."""
    cluster, kinds = store.cluster, kinds_of(wanted)
    since, until = shown.since, shown.until
    gone = gone_since(cluster, since, kinds)
    active = _changed(cluster, kinds, shown, gone)
    blind = unwatched_times(cluster, since=since, until=until, now=now)
    watched = not any(_covers(span, shown) for span in blind)
    nobody = () if shown.follows or not watched else nobody_at(store, kinds, gone, shown.at)
    flappers = flappers_of(cluster, store.connection.as_of(now)) if shown.follows else ()
    held = _held_by(store, wanted, since)
    chosen = choose(
        store, wanted, shown, active=active, gone=gone, nobody=nobody, flapping=flappers, held=held
    )
    stands = _stands(store, wanted, shown, {*gone, *active}, held)
    found = _read_page(store, chosen, shown, now, blind)
    return msgspec.structs.replace(found, stands=stands)


def lost_lanes(
    store: Store, keys: Sequence[ObjectName], total: int, shown: TimeRange, now: datetime
) -> Lanes:
    """Read the lanes of these Leases, which are some of `total` that lost their holder."""
    blind = unwatched_times(store.cluster, since=shown.since, until=shown.until, now=now)
    chosen = LanePage([LanePlace(key, CHANGED) for key in keys], 1, total, total)
    return _read_page(store, chosen, shown, now, blind)


def _read_page(
    store: Store,
    chosen: LanePage,
    shown: TimeRange,
    now: datetime,
    blind: Sequence[UnwatchedTime],
) -> Lanes:
    """`blind`: what nobody watched of the stretch."""
    cluster, since, until = store.cluster, shown.since, shown.until
    watched = not any(_covers(span, shown) for span in blind)
    keys = [place.key for place in chosen.page]
    known = max(since, min(until, store.connection.as_of(now)))
    stretch = read_stretch(
        cluster, since=since, until=known, now=now, abandoned_after=store.abandoned_after
    )
    states = {state.key: state for state in states_at(cluster, keys, shown.at)}
    edits = audit.done_between(cluster, since, until)
    later = born_later(cluster, [k for k in keys if k not in states and not store.get(k)], shown.at)
    before = changes_before(cluster, keys, since)
    first = min([since, *(change.at for changes in before.values() for change in changes)])
    blind_terms = blind_between(cluster, since=first, until=until, now=now)
    # Last, because it is large, and other pages read theirs while this one waits for the database.
    found = history_lanes.lanes(cluster, keys, since=since, until=until, before=before)
    lives = {lane.key: lane for lane in found}
    page = [
        _lane(
            store,
            place,
            lives.get(place.key) or history_lanes.Lane(key=place.key, life=Life(), changes=0),
            states.get(place.key),
            shown.at,
            later=place.key in later,
            watched=watched,
            edits=edits.get(place.key, ()),
        )
        for place in chosen.page
    ]
    return Lanes(page, chosen, blind, watched, None, stretch, blind_terms)


def _changed(
    cluster: str, kinds: tuple[Kind, ...], shown: TimeRange, gone: set[ObjectName]
) -> dict[ObjectName, history_lanes.LaneTotals]:
    """The Leases that lost or changed their holder in the stretch.

    `gone`: those deleted since it began.
    """
    since, until = shown.since, shown.until
    # A live stretch moves on, but the order of lanes may lag a little behind.
    stretch = (since if shown.is_young else shown.length) if shown.live else (since, until)
    totals = _totals.get(
        (cluster, kinds, stretch),
        lambda: history_lanes.totals(cluster, kinds, since=since, until=until),
    )
    deleted = gone if shown.live else gone_since(cluster, since, kinds, until)
    return {key: history_lanes.LaneTotals() for key in deleted} | totals


def _held_by(store: Store, wanted: TimelineFilter, since: datetime) -> set[ObjectName] | None:
    """The Leases that the wanted holder holds, and those of its terms that ended since then."""
    if not wanted.holder:
        return None
    is_wanted, kinds = is_held_by(wanted.holder), kinds_of(wanted)
    living = store.select(kinds, tuple(Phase))
    held = {one.key for one in living if one.holder is not None and is_wanted(one.holder)}
    past = ended_terms(store.cluster, kinds, since).ended
    return held.union(term.key for term in past if is_wanted(term.holder))


def _covers(span: UnwatchedTime, shown: TimeRange) -> bool:
    """Whether the playhead is in the span, or at the end of both."""
    return span.since <= shown.at < span.until or shown.at == span.until == shown.until


def _kind(tracked: Tracked | None, state: State | None) -> Kind | None:
    return tracked.kind if tracked else state.kind if state else None


def _lane(
    store: Store,
    place: LanePlace,
    lane: history_lanes.Lane,
    state: State | None,
    at: datetime,
    *,
    later: bool,
    watched: bool,
    edits: Sequence[datetime],
) -> TimelineLane:
    tracked = store.get(place.key)
    standing = state.standing if state else as_of(lane.life, at)
    if standing.phase is PastPhase.UNKNOWN and (later or created_after(tracked, at)):
        standing = NOT_YET
    return TimelineLane(
        place=place,
        life=lane.life,
        busy=tuple(BusyTime(b.since, b.until, b.changes) for b in lane.bands if b.changes > 1),
        changes=lane.changes,
        phase=tracked.phase.value if tracked else "deleted",
        kind=_kind(tracked, state),
        standing=standing,
        watched=watched,
        edits=edits,
    )
