"""Count changes: in many equal steps of time, and of each Lease in a stretch.

A question may run for SECONDS, newest steps first. Counts of the past are cached for a while, so
the next question continues where this one stopped.

The newest TALLIED changes are counted, so that a stretch of any length answers at once.
"""

import time
from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from threading import Lock

import msgspec
from django.db import connection

from leases.domain.change import HOLDER_CHANGES, ChangeType
from leases.domain.figures import Span
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.history.database import Row, by_index, moment, select
from leases.history.indexed_search import HistoryFilter, count_between, count_slots, streams
from leases.history.rows import stored_kind
from leases.models import END_A_GAP

SECONDS = 0.15  # that one question may take
BUDGET = 40_000  # rows that one question may read
KEPT = 64  # filters whose counts are kept
KEPT_FOR = 600.0  # seconds; a past change may arrive late, or be deleted
SETTLED = timedelta(minutes=2)  # younger steps are counted each time
# Half a millisecond, because a Julian day is a float and a step may start at a change.
_SLOT = {
    "sqlite": "FLOOR(((julianday(at) - 2440587.5) * 86400.0 + 0.0005) / %s)",
    "postgresql": "FLOOR((EXTRACT(EPOCH FROM at) + 0.0005) / %s)",
}


class _Counted(msgspec.Struct):
    """The cached counts of one filter, by step number since 1970."""

    since: float
    counts: dict[int, int]


_kept: OrderedDict[tuple[str, HistoryFilter, float], _Counted] = OrderedDict()
_lock = Lock()


def density(
    cluster: str,
    wanted: HistoryFilter,
    since: datetime,
    step: timedelta,
    number: int,
    *,
    now: datetime,
) -> list[int | None]:
    """Return the matching changes in each of `number` steps; None: not counted yet.

    `since` must be a whole number of steps after 1970, so that steps do not move with time. The
    filter's own times are ignored.
    """
    wanted = msgspec.structs.replace(wanted, since=None, until=None)
    seconds = step.total_seconds()
    first = round(since.timestamp() / seconds)
    known = _known((cluster, wanted, seconds))
    end = first + number
    settled = min(max(first, int((now - SETTLED).timestamp() / seconds)), end)
    fresh = _count(cluster, wanted, range(settled, end), seconds)
    missing = [place for place in range(first, settled) if place not in known.counts]
    if missing:
        past = _count(cluster, wanted, range(missing[0], missing[-1] + 1), seconds)
        with _lock:
            known.counts.update(past)
    counts = known.counts | fresh
    return [counts.get(place) for place in range(first, end)]


def _known(key: tuple[str, HistoryFilter, float]) -> _Counted:
    with _lock:
        known = _kept.pop(key, None)
        if known is None or time.monotonic() - known.since > KEPT_FOR:
            known = _Counted(time.monotonic(), {})
        _kept[key] = known
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
        return known


def _count(cluster: str, wanted: HistoryFilter, places: range, seconds: float) -> dict[int, int]:
    """Count the newest of these steps, as many as the limits allow."""
    if not places:
        return {}
    sources = streams(cluster, wanted)
    if any(source.asked for source in sources):
        return _count_rows(cluster, wanted, places, seconds)
    end = time.monotonic() + SECONDS
    counts: dict[int, int] = {}
    for place in reversed(places):
        since, until = _moment(place, seconds), _moment(place + 1, seconds)
        counts[place] = count_between(sources, since, until) if sources else 0
        if time.monotonic() > end:
            break
    return counts


def _count_rows(
    cluster: str, wanted: HistoryFilter, places: range, seconds: float
) -> dict[int, int]:
    """Do the same for a filter that no index answers alone, by reading rows."""
    since, until = _moment(places.start, seconds), _moment(places.stop, seconds)
    sources = streams(cluster, msgspec.structs.replace(wanted, since=since, until=until))
    budget = BUDGET // max(1, len(sources))
    counts = dict.fromkeys(places, 0)
    whole = places.start
    for source in sources:
        rows = count_slots(source, _SLOT[connection.vendor], [seconds], budget)
        for place, _, found, _ in rows:
            counts[place] = counts.get(place, 0) + found
        if sum(looked for _, looked, _, _ in rows) >= budget:
            oldest = min(oldest for *_, oldest in rows)
            whole = max(whole, int(oldest.timestamp() / seconds) + 1)
    return {place: count for place, count in counts.items() if place >= whole}


def _moment(place: int, seconds: float) -> datetime:
    return datetime.fromtimestamp(place * seconds, UTC)


TALLIED = 40_000
MAX_BLIND = 100  # times that nobody watched, the longest ones, whose changes are left out
# Seconds without a holder that a change ended, without those before the stretch.
INSIDE = {
    "sqlite": "MIN(gap_seconds, (julianday(at) - julianday(%s)) * 86400.0)",
    # LEAST ignores a null, and would count the time since the stretch began.
    "postgresql": "CASE WHEN gap_seconds IS NOT NULL THEN "
    "LEAST(gap_seconds, EXTRACT(EPOCH FROM (at - CAST(%s AS timestamptz)))) END",
}
_LOST = (ChangeType.EXPIRED.value, ChangeType.RELEASED.value)
_NOT_LOST = (*END_A_GAP, ChangeType.CREATED.value, ChangeType.DELETED.value)


class LeaseTotals(msgspec.Struct, frozen=True, gc=False):
    """The changes of one Lease in a stretch; `gap_seconds` without a holder."""

    key: ObjectName
    kind: Kind
    changes: int  # of the times that somebody watched, as of hand-overs
    handovers: int  # how often another holder took it
    gap_seconds: float
    regained: bool  # a change says that it was held, or did not exist


class StretchTotals(msgspec.Struct, frozen=True):
    """`counted_from` is set if older changes of the stretch were not counted."""

    leases: list[LeaseTotals]
    counted_from: datetime | None


def stretch_totals(
    cluster: str,
    kinds: Sequence[Kind],
    *,
    since: datetime,
    until: datetime,
    blind: Sequence[Span] = (),
) -> StretchTotals:
    """Count from `since` to before `until`; no kinds mean all. Nobody watched in `blind`."""
    where = "cluster = %s AND at >= %s AND at < %s"
    marks = ", ".join(["%s"] * len(kinds))
    words = [kind.value for kind in kinds]
    longest = sorted(blind, key=lambda span: span[0] - span[1])[:MAX_BLIND]
    seen = "".join([" AND NOT at BETWEEN %s AND %s"] * len(longest))
    newest = (
        f"SELECT namespace, name, kind, change, at, gap_seconds, "  # noqa: S608
        f"CASE WHEN TRUE{seen} THEN 1 ELSE 0 END AS seen FROM {by_index('change_by_time')} "
        f"WHERE {where} {f'AND kind IN ({marks})' if kinds else ''} "
        f"ORDER BY at DESC, id DESC LIMIT {TALLIED}"
    )
    rows = select(
        f"SELECT namespace, name, MAX(kind), SUM(seen), "  # noqa: S608
        f"SUM(CASE WHEN change IN {_words(HOLDER_CHANGES)} THEN seen ELSE 0 END), "
        f"SUM(CASE WHEN change IN {END_A_GAP} THEN {INSIDE[connection.vendor]} ELSE 0 END), "
        f"MAX(CASE WHEN change IN {_LOST} THEN at END), "
        f"MAX(CASE WHEN change IN {_NOT_LOST} THEN at END), COUNT(*), MIN(at) "
        f"FROM ({newest}) AS newest GROUP BY namespace, name",
        [since, *chain.from_iterable(longest), cluster, since, until, *words],
    )
    whole = sum(row[-2] for row in rows) < TALLIED
    oldest = None if whole else min(moment(row[-1]) for row in rows)
    return StretchTotals([_totals(row, until) for row in rows], oldest)


def _totals(row: Row, until: datetime) -> LeaseTotals:
    namespace, name, kind, changes, handovers, gap_seconds, lost, held, *_ = row
    gap = float(gap_seconds or 0.0)
    if lost is not None and (held is None or moment(held) < moment(lost)):
        gap += (until - moment(lost)).total_seconds()
    return LeaseTotals(
        key=ObjectName(namespace, name),
        kind=stored_kind(kind),
        changes=changes,
        handovers=handovers,
        gap_seconds=gap,
        regained=held is not None,
    )


def _words(changes: Sequence[ChangeType]) -> str:
    return str(tuple(change.value for change in changes))
