"""Write one transaction: changes of some clusters, each once, and the states they led to.

Records are opaque here: the caller encodes and decodes them.

An observed change beats one that a replica inferred from a list. If a list shows a later write than
the one that made the change, the identities differ; then the time window identifies the inferred
one: the same Lease came to the same holder within it, by a write that is not newer than what the
list shows.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from datetime import datetime
from functools import cache, partial
from itertools import groupby
from typing import Any

import msgspec
from django.db import connection

from leases.domain.change import OF_THE_TERM, Change, ChangeType, identity
from leases.domain.lease import ObjectName, number_of
from leases.domain.steady_clock import EARLIEST
from leases.domain.watched_times import WatchedTime
from leases.history import refused_rows, watched_spans
from leases.history.database import (
    by_index,
    execute_many,
    insert,
    joined,
    moment,
    select,
    to_stored,
    transaction_in_turn,
)
from leases.history.reliability import reopen
from leases.history.rows import WRITTEN, to_values
from leases.models import LeaseRecord, WatchRecord

_INSERT = "INSERT INTO leases_leaserecord (cluster, namespace, name, tracked)"
_REPLACE = "ON CONFLICT (cluster, namespace, name) DO UPDATE SET tracked = excluded.tracked"
_INSERT_PROGRESS = "INSERT INTO leases_watchrecord (cluster, resource_version, watched_until)"
_REPLACE_PROGRESS = (
    "ON CONFLICT (cluster) DO UPDATE SET "
    "resource_version = excluded.resource_version, watched_until = excluded.watched_until"
)
_REACHED = "SELECT cluster, resource_version FROM leases_watchrecord WHERE cluster IN ({})"
_DELETE = "DELETE FROM leases_leaserecord WHERE cluster = %s AND namespace = %s AND name = %s"


class Checkpoint(msgspec.Struct, frozen=True):
    records: Iterable[bytes]  # lazy, read in the thread that loaded them
    resource_version: str
    watched_until: datetime


def load(cluster: str) -> Checkpoint | None:
    """Return the checkpoint; None if this cluster was never watched to the end of a list."""
    watch = WatchRecord.objects.filter(cluster=cluster).first()
    if watch is None:
        return None
    records = LeaseRecord.objects.filter(cluster=cluster).values_list("tracked", flat=True)
    some = map(bytes, records.iterator(chunk_size=1000))
    return Checkpoint(some, watch.resource_version, watch.watched_until)


def reached(clusters: Sequence[str]) -> dict[str, str]:
    """Return up to which version the watch of these clusters is stored."""
    return dict(select(_REACHED.format(", ".join(["%s"] * len(clusters))), clusters))


def save_states(records: Iterable[tuple[str, ObjectName, bytes | None]]) -> None:
    """Store these states by cluster; None deletes a Lease. Runs in the caller's transaction."""
    kept, gone = [], []
    for cluster, key, record in records:
        if record is None:
            gone.append((cluster, key.namespace, key.name))
        else:
            kept.append((cluster, key.namespace, key.name, record))
    insert(_INSERT, kept, _REPLACE)
    execute_many(_DELETE, gone)


def forget_all_but(cluster: str, present: Container[ObjectName]) -> None:
    """Delete the states of all other Leases. Runs in the caller's transaction."""
    names = LeaseRecord.objects.filter(cluster=cluster).values_list("namespace", "name")
    execute_many(_DELETE, [(cluster, *name) for name in names if ObjectName(*name) not in present])


_SETS = ", ".join(f"{column} = excluded.{column}" for column in WRITTEN)
# bulk_create is many times slower and cannot choose between two versions of a change. A take-over
# beats the same write seen as a replacement: only it fits the `expired` that a replica stored.
_INSERT_CHANGE = f"INSERT INTO leases_change ({', '.join(WRITTEN)})"
_SETTLE = f"""
    ON CONFLICT (cluster, namespace, name, identity) DO UPDATE SET {_SETS}
    WHERE leases_change.inferred AND NOT excluded.inferred
    OR leases_change.inferred = excluded.inferred
    AND leases_change.change = 'replaced' AND excluded.change = 'taken_over'
"""
_FORGET = "DELETE FROM leases_change WHERE id = %s"
_LEASE = ("cluster", "namespace", "name")
Name = tuple[Any, ...]  # of a Lease, its uid, the holder that came, and a group
_GROUPS = (tuple(OF_THE_TERM), (ChangeType.RECONFIGURED,))


def write_changes(changes: Iterable[Change]) -> None:
    """Insert the changes that are not stored yet. Runs in the caller's transaction."""
    seen: list[Change] = []
    concluded: list[Change] = []
    for change in changes:
        by_window = change.inferred and _group(change)
        (concluded if by_window else seen).append(change)
    _insert(seen)
    _forget_conclusions([change for change in seen if not change.inferred])
    _insert_concluded(concluded)


def _insert(changes: Sequence[Change]) -> None:
    time = cache(connection.ops.adapt_datetimefield_value)  # many changes share one time
    rows = [to_values(change, time) for change in changes]
    while rows:
        # Two versions of one change in one batch are settled in their order.
        first: dict[tuple[str, ...], tuple[Any, ...]] = {}
        later = []
        for row in rows:
            name = (*row[:3], row[-1])
            if first.setdefault(name, row) is not row:
                later.append(row)
        insert(_INSERT_CHANGE, list(first.values()), _SETTLE)
        rows = later


def _group(change: Change) -> tuple[ChangeType, ...]:
    """Return the group of changes of which one write makes at most one, if any."""
    return _group_of(change.change)


def _group_of(word: str) -> tuple[ChangeType, ...]:
    return next((group for group in _GROUPS if word in group), ())


def _insert_concluded(concluded: Iterable[Change]) -> None:
    """Insert those of which no stored change within its time window is the same."""
    for _, found_at_once in groupby(concluded, lambda one: one.observed_at):
        changes = list(found_at_once)
        stored = _stored_within(changes)
        _insert(
            [
                one
                for one in changes
                if not _is_told(one.inferred_since, one.resource_version, stored[_name_of(one)])
            ]
        )


Stored = tuple[datetime, int]  # when it happened, and the version of the write if it was observed


def _is_told(since: datetime | None, version: str, accounts: Iterable[Stored]) -> bool:
    """Whether one of these is what was inferred: it came since then, and is not newer."""
    newest = number_of(version)
    return any((since is None or since < at) and of <= newest for at, of in accounts)


def _stored_within(concluded: Sequence[Change]) -> defaultdict[Name, list[Stored]]:
    """Return the stored changes, by their names, that may be the same as these, which were found
    at one time.
    """
    since = min(one.inferred_since or EARLIEST for one in concluded)
    window = tuple(map(connection.ops.adapt_datetimefield_value, (since, concluded[0].observed_at)))
    found: defaultdict[Name, list[Stored]] = defaultdict(list)
    for group in _GROUPS:
        leases = [_lease_of(one) for one in concluded if _group(one) == group]
        for lease, uid, holder, at, inferred, version in joined(
            list(dict.fromkeys(leases)),
            "uid, COALESCE(holder, ''), at, inferred, resource_version",
            by_index("change_by_lease"),
            _LEASE,
            f"AND at > %s AND at <= %s AND change IN ({', '.join(['%s'] * len(group))})",
            (*window, *group),
        ):
            of = 0 if inferred else number_of(version)
            found[*lease, uid, holder, group].append((moment(at), of))
    return found


def _lease_of(change: Change) -> tuple[str, str, str]:
    return change.cluster, change.namespace, change.name


def _name_of(change: Change) -> Name:
    """Return what two changes of one time have in common if they are the same."""
    return (*_lease_of(change), change.uid, to_stored(change.holder) or "", _group(change))


def _forget_conclusions(seen: Sequence[Change]) -> None:
    """Delete what other replicas inferred about changes that we observed."""
    accounts: defaultdict[Name, list[Stored]] = defaultdict(list)
    for change in filter(_group, seen):
        of = number_of(change.resource_version)
        accounts[_name_of(change)].append((change.at, of))
    if not accounts:
        return
    first = connection.ops.adapt_datetimefield_value(min(change.at for change in seen))
    told = [
        (number,)
        for lease, number, uid, holder, word, since, until, version in joined(
            list(dict.fromkeys(name[: len(_LEASE)] for name in accounts)),
            "id, uid, COALESCE(holder, ''), change, inferred_since, observed_at, resource_version",
            by_index("change_conclusions"),
            _LEASE,
            "AND inferred AND observed_at >= %s",
            (first,),
        )
        if _is_told(
            since and moment(since),
            version,
            (
                one
                for one in accounts.get((*lease, uid, holder, _group_of(word)), ())
                if one[0] <= moment(until)
            ),
        )
    ]
    execute_many(_FORGET, told)


class Batch(msgspec.Struct, frozen=True):
    """Of one cluster, at one instant."""

    cluster: str
    changes: tuple[Change, ...]
    states: tuple[tuple[ObjectName, Any], ...]
    encode: Callable[[Any], bytes]
    resource_version: str | None
    complete: bool  # the queue is empty after this batch
    watched_until: datetime
    process: str
    spans: tuple[WatchedTime, ...]
    went_back: bool  # the cluster was restored from a backup: its versions went back
    present: frozenset[ObjectName] | None = None  # if set: delete the states of all other Leases


Item = tuple[Batch, Any]
# Writes all items of one kind.
Write = Callable[[refused_rows.What, Sequence[Item], Callable[[Sequence[Item]], None]], None]


def write_what_fits(*batches: Batch) -> list[refused_rows.RefusedValue]:
    """Write the batches, each of another cluster, and set refused values aside. Returns the
    refusals.

    Raises errors of the database itself; then nothing of the batches is written.
    """
    try:
        return _write(batches, _all_at_once, ())
    except Exception as error:
        if not refused_rows.is_of_the_value(error):
            raise
    refused: list[refused_rows.RefusedValue] = []

    def write(
        what: refused_rows.What, items: Sequence[Item], part: Callable[[Sequence[Item]], None]
    ) -> None:
        refused_rows.write_all_but_refused(
            items, part, lambda item, error: refused.append(_refused(what, *item, error))
        )

    new = _write(batches, write, refused)
    refused_rows.log(new)
    return new


def _all_at_once(
    _what: refused_rows.What, items: Sequence[Item], write: Callable[[Sequence[Item]], None]
) -> None:
    if items:
        write(items)


def _refused(
    what: refused_rows.What, batch: Batch, item: Any, error: Exception
) -> refused_rows.RefusedValue:
    make = partial(refused_rows.refusal, what, error=error, cluster=batch.cluster)
    if what is refused_rows.What.CHANGE:
        return make(item=item, same=identity(item), key=item)
    if what is refused_rows.What.STATE:
        return make(item=item[1], same="", key=item[0])
    return make(
        item=item, same=f"{batch.process} {item.since}" if what is refused_rows.What.SPAN else ""
    )


def _write(
    batches: Sequence[Batch], write: Write, refused: Sequence[refused_rows.RefusedValue]
) -> list[refused_rows.RefusedValue]:
    """Write one transaction in the recorder's thread. Stored changes are left as they are.

    Each kind of item is written for all clusters at once. Refusals that `write` adds are stored
    too.
    """
    with transaction_in_turn(*(batch.cluster for batch in batches)):
        changes = [(batch, change) for batch in batches for change in batch.changes]
        write(refused_rows.What.CHANGE, changes, _write_changes)
        for batch in batches:
            reopen(batch.cluster, (change.at for change in batch.changes), batch.watched_until)
        spans = [(batch, span) for batch in batches for span in batch.spans]
        write(refused_rows.What.SPAN, spans, _save_spans)
        stored = reached([batch.cluster for batch in batches])
        # Of the others another replica is further and has stored all of this.
        _write_states(
            [one for one in batches if one.went_back or not _is_behind(one, stored)], write
        )
        return refused_rows.set_aside(refused)


def _is_behind(batch: Batch, stored: dict[str, str]) -> bool:
    """Whether more of the cluster's watch is stored than up to the version of this batch."""
    version = stored.get(batch.cluster)
    return version is not None and number_of(batch.resource_version) < number_of(version)


def _write_states(batches: Sequence[Batch], write: Write) -> None:
    states = [(batch, state) for batch in batches for state in batch.states]
    write(refused_rows.What.STATE, states, _save_states)
    for batch in batches:
        if batch.present is not None:
            forget_all_but(batch.cluster, batch.present)
    progress = [
        (batch, batch.resource_version)
        for batch in batches
        if batch.complete and batch.resource_version is not None
    ]
    write(refused_rows.What.PROGRESS, progress, _save_progress)


def _write_changes(items: Sequence[Item]) -> None:
    write_changes([change for _, change in items])


def _save_spans(items: Sequence[Item]) -> None:
    watched_spans.save((batch.cluster, batch.process, span) for batch, span in items)


def _save_states(items: Sequence[Item]) -> None:
    save_states(
        (batch.cluster, key, None if state is None else batch.encode(state))
        for batch, (key, state) in items
    )


def _save_progress(items: Sequence[Item]) -> None:
    time = connection.ops.adapt_datetimefield_value
    rows = [(batch.cluster, version, time(batch.watched_until)) for batch, version in items]
    insert(_INSERT_PROGRESS, rows, _REPLACE_PROGRESS)


def let_go() -> None:
    connection.close()
