"""What is known of one cluster beside others: what is wrong there, the worst in a sentence."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from dashboard.feed import ClusterFeed
from dashboard.parts.formatting import counted, utc, when
from dashboard.parts.incident_line import css_of, incident_line, said_cause
from dashboard.parts.key_figures import Counts, Day, by_phase, day_of, unexcused
from dashboard.parts.names import cluster_path
from leases.domain.incident import Incident
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from leases.domain.watched_times import Connection, ConnectionState
from leases.tracking.tracked_lease import Tracked

FLEET_LIVE_URL = "/live/fleet/"


class Trouble(StrEnum):
    """What is wrong in a cluster, the worst first."""

    INCIDENT = "incident"  # an unplanned one goes on
    NOT_LIVE = "not_live"  # what happens there is not known
    LEASES = "leases"  # some are in trouble; no incident says why
    NONE = "none"


RANKS = {trouble: rank for rank, trouble in enumerate(Trouble)}
SHAPES = {
    ConnectionState.LIVE: "held",
    ConnectionState.CONNECTING: "late",
    ConnectionState.STALE: "expired",
    ConnectionState.REFUSED: "deleted",
    ConnectionState.PAUSED: "untimed",
}
WATCH_WORDS = {
    ConnectionState.LIVE: "live since",
    ConnectionState.CONNECTING: "connecting since",
    ConnectionState.STALE: "stale since",
    ConnectionState.REFUSED: "no access since",
    ConnectionState.PAUSED: "paused since",
}
_GRAVITY = {"expired": 0, "vacant": 1, "late": 2}
# How long a row is true while nothing moves: sums of time grow, and what flaps stops doing so.
LASTS, CALM_LASTS = timedelta(seconds=10), timedelta(seconds=60)
FLAPPING = "flapping"
ROW = "row"  # of what a feed keeps
Stamp = tuple[object, ...]


class FleetRow(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one cluster, as of `as_of`."""

    feed: ClusterFeed
    stamp: Stamp  # differs from the cluster's when something moved since
    lasts: timedelta  # while nothing moves
    cluster: str
    now: datetime
    as_of: datetime
    connection: Connection
    heard_at: datetime | None  # None: it was never read
    known: bool  # whether there is anything to count
    counts: Counts
    excused: Sequence[Tracked]
    numbers: Sequence[int]  # changes of holder per hour
    day: Day
    going_on: Sequence[Incident]  # those that were not planned, the gravest first
    planned: int  # how many others go on
    troubled: dict[str, int]  # Leases in trouble, by word

    @property
    def live(self) -> bool:
        return self.connection.state is ConnectionState.LIVE

    @property
    def trouble(self) -> Trouble:
        if self.connection.state is ConnectionState.PAUSED:
            return Trouble.NONE
        if self.going_on:
            return Trouble.INCIDENT
        if not self.live:
            return Trouble.NOT_LIVE
        return Trouble.LEASES if self.troubled else Trouble.NONE

    def is_current(self, now: datetime) -> bool:
        """Whether it still tells what is known of the cluster."""
        return abs(now - self.now) < self.lasts and self.stamp == _stamp(self.feed, now)


def _stamp(feed: ClusterFeed, now: datetime) -> Stamp:
    """Differs when a row may: read before the row is."""
    told = feed.store.connection.shown(now)
    return (
        feed.moves.number,
        feed.incident_turn,
        told.state,
        told.since,
        told.detail,
        feed.store.synced,
        feed.activity.watched.since,
        len(feed.clock_moves),
        feed.server_version,
        tuple(feed.labels.items()),
        now.hour,  # no row lasts so long that it meets the same hour of another day
    )


def latest_row(feed: ClusterFeed, now: datetime) -> FleetRow:
    """The row that was read last for anybody, while it is current."""
    known: FleetRow | None = feed.drawn.get(ROW)
    if known is None or not known.is_current(now):
        known = feed.drawn[ROW] = fleet_row(feed, now)
    return known


def fleet_row(feed: ClusterFeed, now: datetime) -> FleetRow:
    """Reads counts and sums; no Lease that somebody holds."""
    store, stamp = feed.store, _stamp(feed, now)
    as_of, connection = store.connection.as_of(now), store.connection.shown(now)
    if connection.state is ConnectionState.LIVE:
        watched_since = max(connection.since, feed.activity.watched.since)
        connection = msgspec.structs.replace(connection, since=watched_since)
    counts, excused = store.counts(), store.excused()
    numbers, day = day_of(feed, as_of)
    going_on = feed.going_on()
    shown = sorted((one for one in going_on if one.shown), key=_gravity)
    troubled = _in_trouble(feed, counts, excused, as_of)
    calm = not (shown or troubled) and by_phase(counts, Phase.HELD) == total_of(counts)
    return FleetRow(
        feed=feed,
        stamp=stamp,
        lasts=CALM_LASTS if calm else LASTS,
        cluster=store.cluster,
        now=now,
        as_of=as_of,
        connection=connection,
        heard_at=connection.heard_at or store.heard_at,
        known=store.known,
        counts=counts,
        excused=excused,
        numbers=numbers,
        day=day,
        going_on=shown,
        planned=len(going_on) - len(shown),
        troubled=troubled,
    )


def _gravity(incident: Incident) -> tuple[bool, int, int, datetime, str]:
    """A key for sorting: those first that leave a Lease without a holder now, then the largest."""
    rank = _GRAVITY.get(css_of(incident), len(_GRAVITY))
    waits = incident.unheld_since is not None
    return not waits, rank, -incident.lease_count, incident.began, incident.id


def _in_trouble(
    feed: ClusterFeed, counts: Counts, excused: Sequence[Tracked], as_of: datetime
) -> dict[str, int]:
    left = unexcused(counts, excused)
    free = sum(one.kind is Kind.ELECTION and one.phase is Phase.VACANT for one in excused)
    numbers = {
        Phase.EXPIRED.value: left[Phase.EXPIRED],
        Phase.VACANT.value: counts.get(Kind.ELECTION, {}).get(Phase.VACANT, 0) - free,
        FLAPPING: len(feed.flappers.at(as_of)),
        Phase.LATE.value: left[Phase.LATE],
        "not understood": len(feed.store.not_understood()),
    }
    return {word: number for word, number in numbers.items() if number > 0}


def worst_first(row: FleetRow) -> tuple[int, tuple[bool, int, int] | tuple[()], int, int, str]:
    gravest = _gravity(row.going_on[0])[:3] if row.going_on else ()
    worst = min((_GRAVITY.get(word, 3) for word in row.troubled), default=len(_GRAVITY))
    return RANKS[row.trouble], gravest, worst, -len(row.going_on), row.cluster


class CellView(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster in brief. Equal views have one drawing, so they have no age."""

    name: str
    url: str
    rank: int
    live: bool
    css: str
    sentence: str
    short: str
    sentence_url: str = ""
    note: str = ""
    icon: str = ""
    near: str = ""  # a moment near to the times in the sentence


def cell_view(row: FleetRow) -> CellView:
    name = row.cluster
    return CellView(
        name=name,
        url=cluster_path("overview", name),
        rank=RANKS[row.trouble],
        live=row.live,
        **_worst(row),
    )


def _worst(row: FleetRow) -> dict[str, str]:
    """The worst thing in a sentence; `short` says it in a cell."""
    if row.live:
        return _gravest(row) if row.going_on else _worst_of_leases(row)
    watch, known = row.connection, known_at(row)
    told = {
        "sentence": known or "Not read yet.",
        "note": watch.detail,
        "css": SHAPES[watch.state],
        "short": f"{WATCH_WORDS[watch.state]} {when(watch.since, row.now)}",
    }
    if row.trouble is not Trouble.INCIDENT:
        return told
    gravest = _gravest(row)
    note = " ".join(filter(None, (known, f"{gravest['note']}.", watch.detail)))
    return gravest | {"note": note, "css": told["css"]}


def known_at(row: FleetRow) -> str:
    """Up to when a cluster is known that is not live; "" if it was never read."""
    return f"Shows what was known at {when(row.heard_at, row.now)}." if row.heard_at else ""


def _gravest(row: FleetRow) -> dict[str, str]:
    first = row.going_on[0]
    line = incident_line(first, row.as_of, row.feed.care())
    told = (said_cause(first), f"since {line.moment}", line.care)
    return {
        "sentence": line.sentence,
        "near": utc(first.began),
        "sentence_url": line.url,
        "note": "; ".join(filter(None, told)),
        "icon": line.cause.icon,
        "css": line.css or Phase.EXPIRED.value,
        "short": counted(len(row.going_on), "incident"),
    }


def _worst_of_leases(row: FleetRow) -> dict[str, str]:
    if row.troubled:
        words = ", ".join(_said(number, word) for word, number in row.troubled.items())
        worst = next(iter(row.troubled))
        return {
            "sentence": f"{words}; {_planned(row.planned)}.",
            "sentence_url": f"{cluster_path('leases', row.cluster)}?sort=state",
            "css": {FLAPPING: "late", "not understood": "unknown"}.get(worst, worst),
            "short": words,
        }
    total = total_of(row.counts)
    if not total:
        said = "There are no Leases"
        return {"sentence": f"{said}.", "css": Phase.VACANT.value, "short": said.lower()}
    return {
        "sentence": "No Lease is in trouble.",
        "css": Phase.HELD.value,
        "short": counted(total, "Lease"),
    }


def _said(number: int, word: str) -> str:
    """A vacant lock is only free: without the kind, the figure beside it would seem to differ."""
    return counted(number, "vacant election") if word == Phase.VACANT else f"{number:,} {word}"


def _planned(number: int) -> str:
    if not number:
        return "no incident goes on"
    return f"only {counted(number, 'planned incident')} {'go' if number > 1 else 'goes'} on"


def total_of(counts: Counts) -> int:
    return sum(sum(phases.values()) for phases in counts.values())
