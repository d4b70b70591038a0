"""The key figures of a cluster: each has a number, its parts, and a link to the list it counts.

Only Leases that somebody holds are good news; no Leases, no holders and no connection are neutral.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from urllib.parse import urlencode

import msgspec
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard.charts.bars import unwatched_hours
from dashboard.feed import ClusterFeed
from dashboard.parts.formatting import age, counted, percent, thousands
from dashboard.parts.names import cluster_path
from leases.domain.change import HOLDER_CHANGES
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.watched_times import ConnectionState, UnwatchedTime
from leases.history.activity import HOUR, HOURS, Activity, WatchedLately
from leases.tracking.observation import open_gap
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked
from leases.wire.microtime import format_microtime


class Measure(msgspec.Struct, frozen=True):
    """Which figure an element shows, of what, and over which time.

    The page carries it, so that a reader, or a test, can compare it with the same figure elsewhere.
    """

    figure: str
    of: str  # `election`, `namespace:x`, `lease:x/y`; empty: everything
    since: datetime
    until: datetime

    def __str__(self) -> str:
        return self.__html__()

    def __html__(self) -> SafeString:
        """The attributes of the element whose text is the figure."""
        span = f"{format_microtime(self.since)}/{format_microtime(self.until)}"
        return format_html(
            'data-measure="{}" data-of="{}" data-span="{}"', self.figure, self.of, span
        )


def lease_measures(key: ObjectName, since: datetime, until: datetime) -> dict[str, Measure]:
    """The figures of one Lease, for its row or page."""
    of = (
        f"lease:{key}"
        if key.name
        else f"namespace:{key.namespace}"
        if key.namespace
        else "election"
    )
    return {
        name: Measure(name, of, since, until)
        for name in ("unheld", "handovers", "failovers", "unwatched", "held", "changes")
    }


class WatchedDay(msgspec.Struct, frozen=True):
    """`since` is when watching began, if within the day; `blind` are the unwatched times."""

    since: datetime | None
    blind: tuple[UnwatchedTime, ...]
    never: bool
    start: datetime
    until: datetime

    @property
    def spans(self) -> list[tuple[datetime, datetime]]:
        return [(span.since, span.until) for span in self.blind]

    @property
    def _lost(self) -> float:
        """Unwatched seconds since watching began."""
        return sum(span.seconds for span in self.blind if span.ended is not None)

    def caption(self, of: str) -> str:
        """A caption with the watched time: "of elections, since 10:14"."""
        if self.never:
            return "not watched"
        since = f"since {self.since:%H:%M}" if self.since else ""
        lost = f"{age(self._lost)} not watched" if self._lost else ""
        return ", ".join(filter(None, (of, since, lost)))

    @property
    def span(self) -> str:
        """The counted time: "24 h", or less."""
        return "not watched" if self.never else self.caption("" if self.since else "24 h")


def watched_day(watched: WatchedLately, now: datetime) -> WatchedDay:
    """Sum up the running hour and the 23 before it."""
    start = now.replace(minute=0, second=0, microsecond=0) - (HOURS - 1) * HOUR
    blind = watched.unwatched(start, now)
    watched_seconds = (now - start).total_seconds() - sum(span.seconds for span in blind)
    never = bool(blind) and watched_seconds < 1.0
    since = blind[0].until if blind and blind[0].ended is None and not never else None
    return WatchedDay(since, blind, never, start, now)


def unwatched_by_hour(watched: WatchedLately, now: datetime) -> list[str]:
    """How much of each of these hours nobody watched, as `unwatched_hours` says it."""
    return unwatched_hours(watched_day(watched, now).spans, now, hours=HOURS)


Counts = Mapping[Kind, Mapping[Phase, int]]

KIND_WORDS = {
    Kind.ELECTION: ("election", "elections"),
    Kind.HEARTBEAT: ("heartbeat", "heartbeats"),
    Kind.IDENTITY: ("identity", "identities"),
    Kind.LOCK: ("lock", "locks"),
    Kind.UNKNOWN: ("of unknown kind", "of unknown kind"),
}
NAMED_KINDS = 2  # kinds that a caption names


UNKNOWN = (("?", ""),)


class Kpi(msgspec.Struct, frozen=True, kw_only=True):
    """`value` is numbers with their units; a live frame replaces it and `detail` under `figure`."""

    label: str
    value: tuple[tuple[str, str], ...]
    detail: str
    url: str
    phase: str = ""
    bad: bool = False
    figure: str = ""
    measure: Measure | None = None


class Day(msgspec.Struct, frozen=True):
    """The last 24 h of all elections: changes of holder, and seconds without a holder."""

    changes: int
    gap_seconds: float
    watched: WatchedDay


def of_kind(number: int, kind: Kind) -> str:
    return counted(number, *KIND_WORDS[kind])


def by_phase(counts: Counts, phase: Phase) -> int:
    return sum(phases.get(phase, 0) for phases in counts.values())


def last_day(changes: int, activity: Activity, elections: Iterable[Tracked], now: datetime) -> Day:
    """Sum up a day: its changes of holder, its gaps, and the gaps that are still open."""
    watched = watched_day(activity.watched, now)
    open_gaps = filter(None, map(open_gap, elections))
    return Day(changes, activity.unheld.seconds(now, open_gaps), watched)


NOBODY_HOLDS = (Phase.EXPIRED, Phase.VACANT)


def day_of(feed: ClusterFeed, now: datetime) -> tuple[list[int], Day]:
    """The last day of a cluster's elections: changes of holder per hour, and their figures.

    Reads no Lease that somebody holds: it has no gap that goes on.
    """
    numbers = feed.activity.of_kind(Kind.ELECTION, HOLDER_CHANGES, now)
    unheld = feed.store.select((Kind.ELECTION,), NOBODY_HOLDS)
    return numbers, last_day(sum(numbers), feed.activity, unheld, now)


def with_elections(counts: Counts, elections: Iterable[Tracked]) -> Counts:
    """Replace the elections by those of a list, so that both show the same numbers."""
    return {**counts, Kind.ELECTION: Counter(lease.phase for lease in elections)}


def unexcused(counts: Counts, excused: Iterable[Tracked]) -> dict[Phase, int]:
    """Count the Leases of each phase, but for those that nobody need hold."""
    without = Counter(one.phase for one in excused)
    return {phase: max(0, by_phase(counts, phase) - without[phase]) for phase in Phase}


def counted_kpis(cluster: str, counts: Counts, excused: Sequence[Tracked] = ()) -> tuple[Kpi, ...]:
    """All Leases and each phase; the phases add up to all."""
    total = sum(sum(phases.values()) for phases in counts.values())
    elections = sum(counts.get(Kind.ELECTION, {}).values())
    leases = cluster_path("leases", cluster)
    first = Kpi(
        label="Leases",
        value=((thousands(total), ""),),
        detail=of_kind(elections, Kind.ELECTION),
        url=leases,
        figure="total",
    )
    return (first, *(_phase(leases, counts, phase, total, excused) for phase in Phase))


def kpis(
    cluster: str,
    counts: Counts,
    day: Day,
    *,
    known: bool = True,
    excused: Sequence[Tracked] = (),
) -> tuple[Kpi, ...]:
    """The strip, from left to right. Without `known`, no list was read yet."""
    now = counted_kpis(cluster, counts, excused)
    return (*(now if known else map(unread, now)), *lately_kpis(cluster, day))


def lately_kpis(cluster: str, day: Day) -> tuple[Kpi, Kpi]:
    """Changes of holder and time without one, of elections in the last 24 h."""
    history = cluster_path("history", cluster)
    holder_changes = "&".join(f"change={change.value}" for change in HOLDER_CHANGES)
    start, end = day.watched.start, day.watched.until
    blank = day.watched.never and not (day.changes or day.gap_seconds)
    unheld = _units(age(day.gap_seconds)) if day.gap_seconds else (("0", "s"),)
    return (
        Kpi(
            label="Holder changes, 24 h",
            value=UNKNOWN if blank else ((thousands(day.changes), ""),),
            detail=day.watched.caption("of elections"),
            url=f"{history}?kind=election&{holder_changes}",
            measure=Measure("holder-changes", "election", start, end),
        ),
        Kpi(
            label="Without holder, 24 h",
            value=UNKNOWN if blank else unheld,
            detail=day.watched.caption("elections, summed"),
            url=f"{history}?kind=election&change=expired&change=released",
            measure=Measure("unheld", "election", start, end),
        ),
    )


def unread(kpi: Kpi) -> Kpi:
    """The figure of a cluster whose list was not read yet: unknown, not zero."""
    return msgspec.structs.replace(
        kpi, value=UNKNOWN, detail="not read yet", phase="", figure="", bad=False
    )


def _phase(
    leases: str, counts: Counts, phase: Phase, total: int, excused: Sequence[Tracked]
) -> Kpi:
    number = by_phase(counts, phase)
    without = Counter(one.kind for one in excused if one.phase is phase)
    left = {kind: phases.get(phase, 0) - without[kind] for kind, phases in counts.items()}
    bad = sum(left.values()) > 0 and phase in (Phase.LATE, Phase.EXPIRED)
    if phase is Phase.VACANT:  # a vacant lock is only free
        bad = left.get(Kind.ELECTION, 0) > 0
    abandoned = sum(one.abandoned for one in excused if one.phase is phase)
    return Kpi(
        label=phase.value.capitalize(),
        value=((thousands(number), ""),),
        detail=_share_of(number, total)
        if phase is Phase.HELD
        else _made_of(counts, phase, abandoned),
        url=f"{leases}?{urlencode({'phase': phase.value})}",
        phase=phase.value if total else "",
        bad=bad,
        figure=phase.value,
    )


def _share_of(number: int, total: int) -> str:
    return percent(number, total) if total else "none yet"


def _made_of(counts: Counts, phase: Phase, abandoned: int) -> str:
    """`3 elections, 2 locks`; where some are abandoned, how many."""
    numbers = {kind: phases.get(phase, 0) for kind, phases in counts.items()}
    if abandoned:
        every = sum(numbers.values())
        return "all abandoned" if abandoned == every else f"{abandoned:,} of them abandoned"
    largest = sorted(((n, k) for k, n in numbers.items() if n), key=lambda pair: -pair[0])
    more = sum(n for n, _ in largest[NAMED_KINDS:])
    said = ", ".join(of_kind(n, k) for n, k in largest[:NAMED_KINDS]) or "none"
    return f"{said} and {thousands(more)} more" if more else said


def _units(text: str) -> tuple[tuple[str, str], ...]:
    words = text.split()
    return tuple(zip(words[::2], words[1::2], strict=True))


_HELD = (Phase.HELD, Phase.UNTIMED)
_WORDS = {Kind.HEARTBEAT: "in time"}


class Calm(msgspec.Struct, frozen=True):
    """The text of one empty panel. `css` is a state only where the news is good."""

    title: str
    text: str
    icon: str
    css: str = ""


def calm(
    store: Store,
    counts: Counts,
    *,
    kinds: Sequence[Kind] = tuple(Kind),
    title: str = "Nothing needs attention",
) -> Calm:
    """`title` is the good news; `counts` are the numbers that the page shows beside it."""
    connection = store.connection
    if connection.state is ConnectionState.REFUSED:
        return Calm("No access", connection.detail, "i-unplug")
    if connection.state is ConnectionState.PAUSED:
        return Calm("Paused", connection.detail, "i-unplug")
    if connection.state is not ConnectionState.LIVE:
        usual = "There is no connection to the cluster yet, so its Leases are not known."
        return Calm("Not connected", connection.detail or usual, "i-unplug")
    looked = {kind: counts.get(kind, {}) for kind in kinds}
    total = sum(sum(phases.values()) for phases in looked.values())
    if not total:
        return _nothing_there(store.cluster, counts, kinds)
    held = {kind: sum(phases.get(one, 0) for one in _HELD) for kind, phases in looked.items()}
    if not any(held.values()):
        vacant = sum(phases.get(Phase.VACANT, 0) for phases in looked.values())
        what = counted(total, "Lease")
        return Calm("Nobody holds any of them", f"{what}, {vacant:,} vacant.", "st-vacant")
    return Calm(title, _looked_at(held, total), "st-held", "is-held")


def _nothing_there(cluster: str, counts: Counts, kinds: Sequence[Kind]) -> Calm:
    if not sum(sum(phases.values()) for phases in counts.values()):
        text = "The list is complete and empty."
        return Calm(f"There are no Leases in {cluster}", text, "st-vacant")
    if len(kinds) == 1:
        many = KIND_WORDS[kinds[0]][1]
        return Calm(f"There are no {many}", f"No Lease in {cluster} is one.", "st-vacant")
    return Calm("No other Leases", "There is nothing else to watch.", "st-vacant")


def _looked_at(held: Mapping[Kind, int], total: int) -> str:
    """`12 elections held and 3,000 heartbeats in time. 3,020 Leases are watched.`"""
    largest = sorted(held, key=lambda kind: (kind is not Kind.ELECTION, -held[kind]))
    said = [f"{of_kind(held[kind], kind)} {_WORDS.get(kind, 'held')}" for kind in largest]
    shown = [words for words, kind in zip(said, largest, strict=True) if held[kind]][:2]
    return f"{' and '.join(shown)}. {total:,} {'Lease is' if total == 1 else 'Leases are'} watched."
