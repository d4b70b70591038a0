"""The lives of many Leases over a range, for the timeline; bounded, however busy they were."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice, pairwise
from operator import attrgetter

import msgspec
from django.db import connection

from leases.domain.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.terms import Life, fold
from leases.history.change_counts import INSIDE
from leases.history.database import Row, as_asked, asked_table, by_index, moment, select
from leases.history.rows import FIELDS, to_change
from leases.history.states_as_of import changes_at, changes_before
from leases.models import END_A_GAP

CHANGES = 4000  # per answer; each lane has a share, and at least MIN_CHANGES
MIN_CHANGES = 40
PIECES = 1200  # per answer; the busy lanes share them
AT_A_TIME = 400  # changes in memory until they are terms and gaps, which are smaller
TALLIED = 10_000
LOSE_A_HOLDER = (ChangeType.EXPIRED, ChangeType.RELEASED)
MAX_PIECES, MIN_PIECES = 120, 24


Changes = dict[ObjectName, list[Change]]


class BusyPiece(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a busy lane: only its last change is shown."""

    since: datetime
    until: datetime
    changes: int


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """One Lease over a range. Its life begins with the term or gap at the start."""

    key: ObjectName
    life: Life
    changes: int  # in the range
    bands: tuple[BusyPiece, ...] = ()  # where `life` omits changes


class LaneTotals(msgspec.Struct, kw_only=True):
    handovers: int = 0  # how often a holder took it
    leaderless: float = 0.0  # seconds of the gaps that ended in the range


def lanes(
    cluster: str,
    keys: Sequence[ObjectName],
    *,
    since: datetime,
    until: datetime,
    counted: bool = True,
    before: Changes | None = None,
) -> list[Lane]:
    """Return a lane for each of `keys` that existed in the range, in their order.

    Without `counted` there are no bands, which is faster. `before`: as `changes_before` has them.
    """
    before = changes_before(cluster, keys, since) if before is None else before
    numbers = dict(zip(keys, _numbers(cluster, [(key, since, until) for key in keys]), strict=True))
    full = max(MIN_CHANGES, CHANGES // max(1, len(keys)))
    busy = [key for key, number in numbers.items() if number > full]
    others = [key for key, number in numbers.items() if 0 < number <= full]
    pieces = min(MAX_PIECES, max(MIN_PIECES, PIECES // max(1, len(busy))))
    edges = [since + (until - since) * step / pieces for step in range(pieces + 1)]
    bands = _bands(cluster, busy, edges) if counted and busy else {}
    lives = {key: fold(changes) for key, changes in before.items() if not numbers[key]}
    for some in _in_parts(busy, dict.fromkeys(busy, pieces)):
        lives |= _folded(before, _at_edges(cluster, some, edges))
    for some in _in_parts(others, numbers):
        lives |= _folded(before, _changes(cluster, some, since, until))
    return [
        Lane(key=key, life=lives[key], changes=number, bands=bands.get(key, ()))
        for key, number in numbers.items()
        if key in lives
    ]


def _folded(before: Changes, changes: Changes) -> dict[ObjectName, Life]:
    return {key: fold([*before.get(key, ()), *some]) for key, some in changes.items()}


def _in_parts(
    keys: Iterable[ObjectName], numbers: Mapping[ObjectName, int]
) -> Iterator[list[ObjectName]]:
    """The Leases whose changes one statement reads, AT_A_TIME and a few."""
    some, total = [], 0
    for key in keys:
        some.append(key)
        total += numbers[key]
        if total >= AT_A_TIME:
            yield some
            some, total = [], 0
    if some:
        yield some


def totals(
    cluster: str, kinds: Sequence[Kind], *, since: datetime, until: datetime
) -> dict[ObjectName, LaneTotals]:
    """Return the Leases of these kinds that lost their holder or came to one in the range.

    Of each kind only the newest TALLIED changes that came to a holder are read, and so many of each
    way to lose one.
    """
    newest = (
        f"SELECT namespace, name, change, gap_seconds FROM {by_index('change_ends_gap')} "  # noqa: S608
        f"WHERE cluster = %s AND kind = %s AND at >= %s AND at < %s AND change IN {END_A_GAP} "
        f"ORDER BY at DESC LIMIT {TALLIED}"
    )
    found: dict[ObjectName, LaneTotals] = {}
    for kind in kinds:
        rows = select(
            f"SELECT namespace, name, SUM(CASE WHEN change = %s THEN 0 ELSE 1 END), "  # noqa: S608
            f"SUM(gap_seconds) FROM ({newest}) AS newest GROUP BY namespace, name",
            [ChangeType.RECOVERED.value, cluster, kind.value, since, until],
        )
        for namespace, name, handovers, seconds in rows:
            known = found.setdefault(ObjectName(namespace, name), LaneTotals())
            known.handovers += handovers
            known.leaderless += seconds or 0.0
        for key in _losers(cluster, kind, since, until):
            found.setdefault(key, LaneTotals())
    return found


def _losers(cluster: str, kind: Kind, since: datetime, until: datetime) -> Iterator[ObjectName]:
    """Yield the Leases that lost their holder in the range, whether or not one came since."""
    newest = (
        f"SELECT namespace, name FROM {by_index('change_by_kind')} "  # noqa: S608
        f"WHERE cluster = %s AND kind = %s AND change = %s AND at >= %s AND at < %s "
        f"ORDER BY at DESC, id DESC LIMIT {TALLIED}"
    )
    for change in LOSE_A_HOLDER:
        rows = select(
            f"SELECT DISTINCT namespace, name FROM ({newest}) AS newest",  # noqa: S608
            [cluster, kind.value, change.value, since, until],
        )
        yield from (ObjectName(*row) for row in rows)


class LostLease(msgspec.Struct, frozen=True, kw_only=True):
    """One Lease that lost its holder in a stretch, or was without one at its beginning."""

    key: ObjectName
    times: int  # that it was lost
    gap_seconds: float  # without a holder, inside the stretch


class Losses(msgspec.Struct, frozen=True):
    """Those of one cluster, the longest time without a holder first; `whole`: all were read."""

    leases: list[LostLease]
    whole: bool = True


READ = 20_000  # changes of each sort, of all clusters together
FEWEST = 100  # of each cluster
AT_ONCE = 200  # selects of one statement; SQLite joins 500
Place = tuple[str, ObjectName]


class _Sums:
    """What was read of several clusters, by Lease."""

    def __init__(self) -> None:
        self.times: Counter[Place] = Counter()
        self.gaps: dict[Place, float] = {}
        self.busy: set[str] = set()  # of these clusters only the newest changes were read

    def add_gap(self, place: Place, seconds: float) -> None:
        self.gaps[place] = self.gaps.get(place, 0.0) + seconds


def lost_between(
    clusters: Sequence[str], kinds: Sequence[Kind], since: datetime, until: datetime
) -> dict[str, Losses]:
    """Return the Leases that lost their holder in the stretch, by cluster.

    Of a busy cluster only its newest changes are read.
    """
    sums, share = _Sums(), max(FEWEST, READ // max(1, len(clusters)))
    for kind in kinds:
        _sum_up(sums, clusters, kind, since, until, share)
    found: dict[str, list[LostLease]] = {}
    for place in {*sums.times, *(one for one, seconds in sums.gaps.items() if seconds > 0)}:
        cluster, key = place
        seconds = sums.gaps.get(place, 0.0)
        one = LostLease(key=key, times=sums.times[place], gap_seconds=seconds)
        found.setdefault(cluster, []).append(one)
    for some in found.values():
        some.sort(key=lambda one: (-one.gap_seconds, -one.times, one.key))
    return {name: Losses(some, name not in sums.busy) for name, some in found.items()}


def _sum_up(
    sums: _Sums,
    clusters: Sequence[str],
    kind: Kind,
    since: datetime,
    until: datetime,
    share: int,
) -> None:
    """Add the Leases of one kind, of each cluster the newest `share` changes of each sort."""
    lost_at: dict[Place, datetime] = {}
    read: Counter[str] = Counter()
    for place, number, at in _lost(clusters, kind, since, until, share):
        sums.times[place] += number
        read[place[0]] += number
        lost_at[place] = max(at, lost_at.get(place, at))
    sums.busy.update(name for name, number in read.items() if number >= share)
    read.clear()
    oldest: dict[str, datetime] = {}  # from when on it is known who came to a holder
    for place, seconds, first, last, number in _regained(clusters, kind, since, until, share):
        sums.add_gap(place, seconds)
        read[place[0]] += number
        oldest[place[0]] = min(first, oldest.get(place[0], first))
        if place in lost_at and last >= lost_at[place]:
            del lost_at[place]
    cut = {name for name, number in read.items() if number >= share}
    sums.busy |= cut
    for place, at in lost_at.items():  # nobody holds it since
        if place[0] not in cut or at >= oldest[place[0]]:
            sums.add_gap(place, (until - at).total_seconds())


_IN = "cluster = %s AND kind = %s AND at >= %s AND at < %s"


def _lost(
    clusters: Sequence[str], kind: Kind, since: datetime, until: datetime, share: int
) -> Iterator[tuple[Place, int, datetime]]:
    each = (
        f"SELECT cluster, namespace, name, at FROM {by_index('change_by_kind')} "  # noqa: S608
        f"WHERE {_IN} AND change = %s ORDER BY at DESC, id DESC LIMIT {share}"
    )
    given = [
        (cluster, kind.value, since, until, change.value)
        for cluster in clusters
        for change in LOSE_A_HOLDER
    ]
    for cluster, namespace, name, number, at in _grouped(each, "COUNT(*), MAX(at)", given):
        yield (cluster, ObjectName(namespace, name)), number, moment(at)


def _regained(
    clusters: Sequence[str], kind: Kind, since: datetime, until: datetime, share: int
) -> Iterator[tuple[Place, float, datetime, datetime, int]]:
    each = (
        "SELECT cluster, namespace, name, at, gap_seconds "  # noqa: S608
        f"FROM {by_index('change_ends_gap')} "
        f"WHERE {_IN} AND change IN {END_A_GAP} ORDER BY at DESC LIMIT {share}"
    )
    given = [(cluster, kind.value, since, until) for cluster in clusters]
    figures = f"SUM({INSIDE[connection.vendor]}), MIN(at), MAX(at), COUNT(*)"
    for cluster, namespace, name, seconds, *ends, number in _grouped(each, figures, given, [since]):
        first, last = map(moment, ends)
        yield (cluster, ObjectName(namespace, name)), seconds or 0.0, first, last, number


def _grouped(
    each: str,
    figures: str,
    given: Sequence[tuple[object, ...]],
    before: Sequence[object] = (),
) -> Iterator[Row]:
    """The figures of each Lease, over one select for each of `given`."""
    for first in range(0, len(given), AT_ONCE):
        some = given[first : first + AT_ONCE]
        every = " UNION ALL ".join([f"SELECT * FROM ({each}) AS one"] * len(some))  # noqa: S608
        yield from select(
            f"SELECT cluster, namespace, name, {figures} FROM ({every}) AS every "  # noqa: S608
            "GROUP BY cluster, namespace, name",
            [*before, *(value for values in some for value in values)],
        )


_IN_STRETCH = (
    "cluster = %s AND leases_change.namespace = asked.namespace "
    "AND leases_change.name = asked.name AND at > asked.since AND at <= asked.until"
)
LeaseRange = tuple[ObjectName, datetime, datetime]  # a Lease, after a time, up to another


def _numbers(cluster: str, asked: Sequence[LeaseRange]) -> list[int]:
    """Return how many changes each Lease has after a time, up to another."""
    sql = (
        f"SELECT asked.number, (SELECT COUNT(*) FROM {by_index('change_by_lease')} "  # noqa: S608
        f"WHERE {_IN_STRETCH}) FROM {asked_table('since', 'until')}"
    )
    rows = select(sql, [cluster, as_asked(range(len(asked)), asked)])
    found = {int(number): count for number, count in rows}
    return [found[number] for number in range(len(asked))]


def _changes(cluster: str, keys: Sequence[ObjectName], since: datetime, until: datetime) -> Changes:
    """Return the changes of each Lease, oldest first."""
    columns = ", ".join(f"leases_change.{field}" for field in FIELDS)
    sql = (
        f"SELECT {columns}, asked.number FROM {asked_table('since', 'until')} "  # noqa: S608
        f"CROSS JOIN {by_index('change_by_lease')} WHERE {_IN_STRETCH} ORDER BY at, id"
    )
    found: Changes = {key: [] for key in keys}
    asked = as_asked(range(len(keys)), [(key, since, until) for key in keys])
    for row in select(sql, [asked, cluster]):
        found[keys[int(row[-1])]].append(to_change(row[:-1]))
    return found


def _at_edges(cluster: str, busy: Sequence[ObjectName], edges: Sequence[datetime]) -> Changes:
    """Return the changes that define each busy lane at the end of each piece."""
    ends = edges[1:]
    parts = iter(changes_at(cluster, [(key, edge) for key in busy for edge in ends]))
    found = {}
    for key in busy:
        here = [change for part in islice(parts, len(ends)) for change in part]
        once = {(one.at, one.change, one.uid): one for one in here if one.at > edges[0]}
        found[key] = sorted(once.values(), key=attrgetter("at"))
    return found


def _bands(
    cluster: str, busy: Sequence[ObjectName], edges: Sequence[datetime]
) -> dict[ObjectName, tuple[BusyPiece, ...]]:
    """Count the changes in each piece that has any."""
    asked = [(key, *piece) for key in busy for piece in pairwise(edges)]
    found: dict[ObjectName, list[BusyPiece]] = {key: [] for key in busy}
    for (key, start, end), number in zip(asked, _numbers(cluster, asked), strict=True):
        if number:
            found[key].append(BusyPiece(since=start, until=end, changes=number))
    return {key: tuple(pieces) for key, pieces in found.items()}
