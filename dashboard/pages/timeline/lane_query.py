"""Read the lanes of one page of the timeline from history, with the states at the playhead."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from dashboard.charts.lane_pieces import BusyTime
from dashboard.pages.timeline.lane_order import LanePage, LanePlace, choose, kinds_of
from dashboard.parts.kept.answer_cache import AnswerCache
from dashboard.parts.kept.flapping_leases import flappers_of
from dashboard.parts.query.blind_times import NOT_YET, created_after
from dashboard.parts.query.holder_parameter import is_held_by
from dashboard.parts.query.time_range import TimelineFilter, TimeRange
from dashboard.parts.query.without_holder import nobody_at
from leases.actions import audit
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.past.as_of import PastPhase, PastState, as_of
from leases.domain.past.terms import Life
from leases.domain.past.watched_times import UnwatchedTime
from leases.domain.phase import Phase
from leases.history.read import timeline_lanes as history_lanes
from leases.history.read.past_holders import ended_terms
from leases.history.read.states_as_of import State, born_later, gone_since, states_at
from leases.history.write.watched_spans import unwatched_times
from leases.tracking.store import Store

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
    keys = [place.key for place in chosen.page]
    lives = {
        lane.key: lane for lane in history_lanes.lanes(cluster, keys, since=since, until=until)
    }
    states = {state.key: state for state in states_at(cluster, keys, shown.at)}
    edits = audit.done_between(cluster, since, until)
    later = born_later(cluster, [k for k in keys if k not in states and not store.get(k)], shown.at)
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
    return Lanes(page, chosen, blind, watched)


def _changed(
    cluster: str, kinds: tuple[Kind, ...], shown: TimeRange, gone: set[ObjectName]
) -> dict[ObjectName, history_lanes.LaneTotals]:
    """The Leases that changed holder or were deleted in the stretch; `gone`: since it began."""
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
        kind=tracked.kind if tracked else state.kind if state else None,
        standing=standing,
        watched=watched,
        edits=edits,
    )
