"""Write one transaction: changes, and the states they led to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

import msgspec
from django.db import connection

from leases.domain.changes.change import Change
from leases.domain.changes.change_identity import identity
from leases.domain.lease import ObjectName
from leases.domain.past.watched_times import WatchedTime
from leases.history.refused_rows import (
    RefusedValue,
    What,
    is_of_the_value,
    log,
    refusal,
    set_aside,
    write_all_but_refused,
)
from leases.history.reliability.progress import reopen
from leases.history.write import checkpoint, watched_spans
from leases.history.write.insert_changes import write_changes
from leases.history.write.replica_lock import transaction_in_turn

T = TypeVar("T")
Write = Callable[[What, Sequence[Any], Callable[[Sequence[Any]], None]], None]


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


def write_what_fits(batch: Batch) -> list[RefusedValue]:
    """Write the batch, and set refused values aside. Returns the refusals.

    Raises errors of the database itself; then nothing of the batch is written.
    """
    try:
        return _write(batch, _all_at_once, ())
    except Exception as error:
        if not is_of_the_value(error):
            raise
    refused: list[RefusedValue] = []

    def write(what: What, items: Sequence[T], part: Callable[[Sequence[T]], None]) -> None:
        write_all_but_refused(
            items, part, lambda item, error: refused.append(_refused(batch, what, item, error))
        )

    new = _write(batch, write, refused)
    log(new)
    return new


def _all_at_once(_what: What, items: Sequence[T], write: Callable[[Sequence[T]], None]) -> None:
    if items:
        write(items)


def _refused(batch: Batch, what: What, item: Any, error: Exception) -> RefusedValue:
    make = partial(refusal, what, error=error, cluster=batch.cluster)
    if what is What.CHANGE:
        try:
            same = identity(item)
        except ValueError:
            same = ascii(item)
        return make(item=item, same=same, key=item)
    if what is What.STATE:
        return make(item=item[1], same="", key=item[0])
    return make(item=item, same=f"{batch.process} {item.since}" if what is What.SPAN else "")


def _write(batch: Batch, write: Write, refused: Sequence[RefusedValue]) -> list[RefusedValue]:
    """Write one transaction in the recorder's thread. Stored changes are left as they are.

    `write` writes all items of one kind; refusals that it adds are stored too.
    """
    with transaction_in_turn(batch.cluster):
        write(What.CHANGE, batch.changes, write_changes)
        reopen(batch.cluster, (change.at for change in batch.changes), batch.watched_until)
        write(What.SPAN, batch.spans, partial(watched_spans.save, batch.cluster, batch.process))
        if batch.went_back or not checkpoint.is_behind(batch.cluster, batch.resource_version):
            _write_states(batch, write)
        # Otherwise another replica is further and has stored all of this.
        return set_aside(refused)


def _write_states(batch: Batch, write: Write) -> None:
    def save(states: Sequence[tuple[ObjectName, Any]]) -> None:
        encode = batch.encode
        encoded = ((key, None if state is None else encode(state)) for key, state in states)
        checkpoint.save(batch.cluster, encoded)

    def save_progress(versions: Sequence[str]) -> None:
        checkpoint.save_progress(
            batch.cluster, resource_version=versions[0], watched_until=batch.watched_until
        )

    write(What.STATE, batch.states, save)
    if batch.present is not None:
        checkpoint.forget_all_but(batch.cluster, batch.present)
    if batch.complete and batch.resource_version is not None:
        write(What.PROGRESS, (batch.resource_version,), save_progress)


def let_go() -> None:
    connection.close()
