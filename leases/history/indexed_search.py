"""Choose the indexes for a filter, and read rows from them in order, with bounded work.

A filter becomes one or more streams, each in the order of time. Conditions that the index does not
cover are checked row by row, for at most BUDGET rows. A search for a rare match stops there and
says how far it got.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from itertools import chain, product

import msgspec

from leases.domain.change import ChangeType
from leases.domain.kind import Kind
from leases.history.database import NUL_SYMBOL, Row, by_index, moment, select, to_stored
from leases.history.rows import AT, COLUMNS
from leases.models import INDEXED_HOLDER

BUDGET = 20_000  # rows that one search reads
FEW = 10_000  # this many rows can be sorted, and counted, at once
Position = tuple[datetime, int]  # at and id of a row


class HistoryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which changes to find; an empty field matches all. Times: since <= at < until."""

    change: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    namespace: str | None = None
    lease: str | None = None
    holder: str | None = None
    text: str = ""  # part of namespace/name or of a holder, in any case
    cause: tuple[str, ...] = ()
    inferred: bool | None = None
    since: datetime | None = None
    until: datetime | None = None


Condition = tuple[str, tuple[object, ...]]  # SQL and its parameters
Sql = tuple[str, list[object]]  # a select and its parameters
_INFERRED: Condition = ("inferred", ())


class Stream(msgspec.Struct, frozen=True):
    """Rows from one index in the order of time, and the remaining conditions on them."""

    index: str
    found: tuple[Condition, ...]
    asked: tuple[Condition, ...]


class Taken(msgspec.Struct, frozen=True):
    """Rows in order. `looked_to` is set if the search stopped at its limit."""

    rows: list[Row]
    looked_to: Position | None


def streams(cluster: str, wanted: HistoryFilter) -> list[Stream]:
    """Return the streams for a filter, from the narrowest index that it allows."""
    if wanted.lease is not None:
        if wanted.namespace:
            places = [wanted.namespace]
        else:
            places = _distinct("change_by_lease", "namespace", *_equal(cluster=cluster))
        wheres = [_equal(namespace=place, name=wanted.lease) for place in places]
        return _streams(cluster, wanted, "change_by_lease", wheres, ("namespace", "name"))
    if wanted.holder is not None:
        spelled = _spellings(wanted.holder)
        return [stream for one in spelled for stream in _of_holder(cluster, wanted, one)]
    if wanted.namespace is not None and _few_in(cluster, wanted.namespace):
        wheres = [_equal(namespace=wanted.namespace)]
        return _streams(cluster, wanted, "change_by_lease", wheres, ("namespace",))
    if wanted.cause:
        wheres = [_equal(cause=cause) for cause in wanted.cause]
        return _streams(cluster, wanted, "change_by_cause", wheres, ("cause",))
    if wanted.kind or wanted.change:
        pairs = product(wanted.kind or tuple(Kind), wanted.change or tuple(ChangeType))
        wheres = [_equal(kind=str(kind), change=str(change)) for kind, change in pairs]
        return _streams(cluster, wanted, "change_by_kind", wheres, ("kind", "change"))
    if wanted.inferred:
        return _streams(cluster, wanted, "change_inferred", [(_INFERRED,)], ("inferred",))
    return _streams(cluster, wanted, "change_by_time", [()], ())


def _spellings(holder: str) -> tuple[str, ...]:
    """Return the stored holders that the input may mean.

    People copy spaces around a name, and pages show NUL as its symbol.
    """
    meant = [(name, name.replace(NUL_SYMBOL, "\0")) for name in (holder, holder.strip())]
    return tuple(dict.fromkeys(map(to_stored, chain(*meant))))


def _of_holder(cluster: str, wanted: HistoryFilter, holder: str) -> list[Stream]:
    """Return two streams: what a holder acquired, and what it lost."""
    found: list[Stream] = []
    for name, column in (("holder", "holder"), ("previous", "previous_holder")):
        (equal,) = _equal(**{column: holder})
        where: tuple[Condition, ...]
        # A partial index serves only queries that repeat its condition.
        if len(holder) <= INDEXED_HOLDER:
            where = (equal, (f"LENGTH({column}) <= {INDEXED_HOLDER}", ()))
            found += _streams(cluster, wanted, f"change_by_{name}", [where], (name,))
        else:  # the index has only the start: check the rest on each row
            start = (f"SUBSTR({column}, 1, {INDEXED_HOLDER}) = %s", (holder[:INDEXED_HOLDER],))
            where = ((f"LENGTH({column}) > {INDEXED_HOLDER}", ()), start)
            (stream,) = _streams(cluster, wanted, f"change_by_long_{name}", [where], (name,))
            found.append(msgspec.structs.replace(stream, asked=(equal, *stream.asked)))
    return found


def take(
    stream: Stream, *, after: Position | None, newest_first: bool, limit: int, budget: int
) -> Taken:
    """Return up to `limit` rows after a position, reading at most `budget`."""
    way, beyond = ("DESC", "<") if newest_first else ("ASC", ">")
    conditions = list(stream.found)
    if after is not None:
        conditions.append((f"(at, id) {beyond} (%s, %s)", after))
    where, parameters = _joined(conditions)
    order = f"ORDER BY at {way}, id {way}"
    table = by_index(stream.index)
    if not stream.asked:
        sql = f"SELECT {COLUMNS} FROM {table} WHERE {where} {order} LIMIT {limit}"  # noqa: S608
        return Taken(select(sql, parameters), None)
    asked, more = _joined(stream.asked)
    looked_at = f"SELECT {COLUMNS} FROM {table} WHERE {where} {order} LIMIT {budget}"  # noqa: S608
    rows = select(
        f"SELECT * FROM ({looked_at}) AS looked_at WHERE {asked} LIMIT {limit}",  # noqa: S608
        [*parameters, *more],
    )
    if len(rows) >= limit:
        return Taken(rows, None)
    last = select(
        f"SELECT at, id FROM {table} WHERE {where} {order} LIMIT 1 OFFSET {budget - 1}",  # noqa: S608
        parameters,
    )
    return Taken(rows, (moment(last[0][0]), last[0][1]) if last else None)


AT_ONCE = 200  # streams of one statement; SQLite joins 500 selects


def newest_of(
    streams: Sequence[Stream], *, after: Position | None, limit: int, budget: int
) -> tuple[list[Position], Position | None]:
    """Return the newest positions of all streams after one, up to `limit`, and how far back all of
    them were read; None: as far as was asked. One statement reads many streams, each by its index.
    """
    found: list[Position] = []
    looked_to: list[Position] = []
    for first in range(0, len(streams), AT_ONCE):
        some = streams[first : first + AT_ONCE]
        found += _positions([_newest(one, after, limit, budget) for one in some], limit)
        asked = [one for one in some if one.asked]
        if asked:
            edges = [_beyond(one, after) for one in asked]
            order = f"ORDER BY at DESC, id DESC LIMIT 1 OFFSET {budget - 1}"
            looked_to += _positions([(f"{sql} {order}", values) for sql, values in edges], 1)
    return sorted(found, reverse=True)[:limit], max(looked_to, default=None)


def _beyond(stream: Stream, after: Position | None, columns: str = "at, id") -> Sql:
    conditions = list(stream.found)
    if after is not None:
        conditions.append(("(at, id) < (%s, %s)", after))
    where, values = _joined(conditions)
    return f"SELECT {columns} FROM {by_index(stream.index)} WHERE {where}", values  # noqa: S608


def _newest(stream: Stream, after: Position | None, limit: int, budget: int) -> Sql:
    order = "ORDER BY at DESC, id DESC LIMIT"
    if not stream.asked:
        sql, values = _beyond(stream, after)
        return f"{sql} {order} {limit}", values
    sql, values = _beyond(stream, after, COLUMNS)
    asked, more = _joined(stream.asked)
    looked_at = f"({sql} {order} {budget}) AS looked_at"
    return f"SELECT at, id FROM {looked_at} WHERE {asked} LIMIT {limit}", [*values, *more]  # noqa: S608


def _positions(selects: Sequence[Sql], limit: int) -> list[Position]:
    """The newest of all these."""
    every = " UNION ALL ".join(f"SELECT * FROM ({sql}) AS one" for sql, _ in selects)  # noqa: S608
    rows = select(
        f"SELECT at, id FROM ({every}) AS every ORDER BY at DESC, id DESC LIMIT {limit}",  # noqa: S608
        [value for _, values in selects for value in values],
    )
    return [(moment(at), number) for at, number in rows]


def rows_at(positions: Sequence[Position]) -> list[Row]:
    """Return the rows that are still there, in this order."""
    marks = ", ".join(["%s"] * len(positions))
    sql = f"SELECT {COLUMNS} FROM leases_change WHERE id IN ({marks})"  # noqa: S608
    found = select(sql, [number for _, number in positions]) if positions else []
    return sorted(found, key=position, reverse=True)


def count_of(streams: Sequence[Stream], limit: int) -> tuple[int, bool]:
    """Count the matches of all streams up to `limit`, and say whether that is all of them. Where a
    row has to be looked at, each stream has a share of the rows that are.
    """
    total, share, whole = 0, max(1, limit // max(1, len(streams))), True
    for first in range(0, len(streams), AT_ONCE):
        some = streams[first : first + AT_ONCE]
        if any(one.asked for one in some):
            selects = [_counted(one, share) for one in some]
            rows = select(
                " UNION ALL ".join(sql for sql, _ in selects),
                [value for _, values in selects for value in values],
            )
            total += sum(found or 0 for _, found in rows)
            whole = whole and all(looked < share for looked, _ in rows)
        else:
            selects = [_beyond(one, None, "1 AS one") for one in some]
            every = " UNION ALL ".join(sql for sql, _ in selects)
            total += select(
                f"SELECT COUNT(*) FROM ({every} LIMIT {limit + 1}) AS every",  # noqa: S608
                [value for _, values in selects for value in values],
            )[0][0]
        if total > limit:
            return limit, False
    return total, whole


def _counted(stream: Stream, share: int) -> Sql:
    sql, values = _beyond(stream, None, COLUMNS)
    asked, more = _joined(stream.asked)
    looked_at = f"({sql} ORDER BY at DESC, id DESC LIMIT {share}) AS looked_at"
    counts = f"COUNT(*), SUM(CASE WHEN {asked} THEN 1 ELSE 0 END)"
    return f"SELECT {counts} FROM {looked_at}", [*more, *values]  # noqa: S608


def count(stream: Stream, limit: int) -> tuple[int, bool]:
    """Count matches among the newest rows, and say whether that is all of them."""
    where, parameters = _joined(stream.found)
    asked, more = _joined(stream.asked)
    # If all rows match, their order does not matter.
    columns, order = (COLUMNS, "ORDER BY at DESC, id DESC") if stream.asked else ("id", "")
    looked_at = (
        f"SELECT {columns} FROM {by_index(stream.index)} WHERE {where} "  # noqa: S608
        f"{order} LIMIT {limit + 1}"
    )
    ((looked, found),) = select(
        f"SELECT COUNT(*), SUM(CASE WHEN {asked} THEN 1 ELSE 0 END) "  # noqa: S608
        f"FROM ({looked_at}) AS looked_at",
        [*more, *parameters],
    )
    return min(found or 0, limit), looked <= limit


def count_between(sources: Sequence[Stream], since: datetime, until: datetime) -> int:
    """Count the rows in a time span, for streams without remaining conditions."""
    counts, parameters = [], []
    for source in sources:
        where, given = _joined((*source.found, *_span(since, until)))
        counts.append(f"SELECT COUNT(*) AS number FROM {by_index(source.index)} WHERE {where}")  # noqa: S608
        parameters += given
    sql = f"SELECT SUM(number) FROM ({' UNION ALL '.join(counts)}) AS counted"  # noqa: S608
    return int(select(sql, parameters)[0][0])


def count_slots(
    stream: Stream, slot: str, parameters: Sequence[object], limit: int
) -> list[tuple[int, int, int, datetime]]:
    """Count per slot, which is SQL of `at`: the newest rows read, the matches, and the oldest time.

    Reads at most `limit` rows.
    """
    where, found = _joined(stream.found)
    asked, more = _joined(stream.asked)
    columns = COLUMNS if stream.asked else "at"
    looked_at = (
        f"SELECT {columns} FROM {by_index(stream.index)} WHERE {where} "  # noqa: S608
        f"ORDER BY at DESC, id DESC LIMIT {limit}"
    )
    rows = select(
        f"SELECT {slot} AS slot, COUNT(*), SUM(CASE WHEN {asked} THEN 1 ELSE 0 END), MIN(at) "  # noqa: S608
        f"FROM ({looked_at}) AS looked_at GROUP BY slot",
        [*parameters, *more, *found],
    )
    return [
        (int(place), looked, int(number), moment(oldest)) for place, looked, number, oldest in rows
    ]


def position(row: Row) -> Position:
    """Return the position of a row of COLUMNS."""
    return moment(row[AT]), row[0]


def _equal(**values: object) -> tuple[Condition, ...]:
    return tuple((f"{column} = %s", (value,)) for column, value in values.items())


def _streams(
    cluster: str,
    wanted: HistoryFilter,
    index: str,
    wheres: Sequence[tuple[Condition, ...]],
    answered: tuple[str, ...],
) -> list[Stream]:
    """Return a stream for each of `wheres`; the index has `answered` some of the conditions."""
    span, home = _span(wanted.since, wanted.until), _equal(cluster=cluster)
    conditions = _conditions(wanted)
    asked = tuple(conditions[name] for name in conditions if name not in answered)
    return [Stream(index, (*home, *where, *span), asked) for where in wheres]


def _span(since: datetime | None, until: datetime | None) -> tuple[Condition, ...]:
    ends = (("at >= %s", since), ("at < %s", until))
    return tuple((sql, (moment,)) for sql, moment in ends if moment is not None)


def _conditions(wanted: HistoryFilter) -> dict[str, Condition]:
    """Return each condition of a filter, except time."""
    found: dict[str, Condition] = {}
    if wanted.namespace is not None:
        (found["namespace"],) = _equal(namespace=wanted.namespace)
    if wanted.holder is not None:
        # The second stream skips what the first one has.
        spelled = _spellings(wanted.holder)
        marks = ", ".join(["%s"] * len(spelled))
        found["holder"] = (f"(holder IS NULL OR holder NOT IN ({marks}))", spelled)
    chosen = {"kind": wanted.kind, "change": wanted.change, "cause": wanted.cause}
    for column, words in chosen.items():
        if words:
            marks = ", ".join(["%s"] * len(words))
            found[column] = (f"{column} IN ({marks})", tuple(map(str, words)))
    if wanted.text:
        found["text"] = (_ANYWHERE, (f"%{_escaped(to_stored(wanted.text.lower()))}%",))
    if wanted.inferred is not None:
        found["inferred"] = _INFERRED if wanted.inferred else ("NOT inferred", ())
    return found


# LOWER knows ASCII alone in SQLite; a blank cannot stand in a name.
_ANYWHERE = (
    "LOWER(namespace || '/' || name || ' ' || COALESCE(holder, '') || ' ' || "
    "COALESCE(previous_holder, '')) LIKE %s ESCAPE '!'"
)


def _escaped(text: str) -> str:
    """A text as LIKE finds it and nothing else."""
    return re.sub("([!%_])", r"!\1", text)


def _joined(conditions: Sequence[Condition]) -> tuple[str, list[object]]:
    text = " AND ".join(sql for sql, _ in conditions) or "1 = 1"
    return text, [value for _, values in conditions for value in values]


def _few_in(cluster: str, namespace: str) -> bool:
    everything = _equal(cluster=cluster, namespace=namespace)
    return count(Stream("change_by_lease", everything, ()), FEW)[1]


def stored_clusters() -> list[str]:
    """Return all clusters with changes, by one index step each."""
    return _distinct("change_by_time", "cluster")


def _distinct(index: str, column: str, *home: Condition) -> list[str]:
    table, (where, parameters) = by_index(index), _joined(home)
    rows = select(
        f"WITH RECURSIVE known(word) AS ("  # noqa: S608
        f"SELECT MIN({column}) FROM {table} WHERE {where} "
        f"UNION ALL SELECT (SELECT MIN({column}) FROM {table} "
        f"WHERE {where} AND {column} > known.word) FROM known WHERE known.word IS NOT NULL) "
        f"SELECT word FROM known WHERE word IS NOT NULL",
        [*parameters, *parameters],
    )
    return [row[0] for row in rows]
