"""What goes into one transaction: changes, and the states they led to."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
from django.db import DatabaseError, DataError, connection, transaction

from leases.domain.change import Change
from leases.domain.lease import ObjectName
from leases.domain.watching import Watched
from leases.history import checkpoint, watches
from leases.history.turns import take_turn
from leases.history.writing import write_changes

logger = logging.getLogger(__name__)


class Batch(msgspec.Struct, frozen=True):
    """Of one cluster, as of one instant."""

    cluster: str
    changes: tuple[Change, ...]
    states: tuple[tuple[ObjectName, Any], ...]
    encode: Callable[[Any], bytes]
    resource_version: str | None
    complete: bool  # with this, all that waited is written
    watched_until: datetime
    process: str
    spans: tuple[Watched, ...]
    went_back: bool  # the cluster was restored: its versions count on from an old one


def write_what_fits(batch: Batch) -> None:
    """Write all; where that is more than the database can hold, all but what it refuses."""
    try:
        _write(batch)
    except DataError:
        alone = partial(msgspec.structs.replace, batch, complete=False, spans=())
        parts = [(c.change.value, alone(changes=(c,), states=())) for c in batch.changes]
        parts += [("state", alone(changes=(), states=(state,))) for state in batch.states]
        for what, part in parts:
            try:
                _write(part)
            except DataError as error:
                logger.error("%s: the database refuses a %s: %s", batch.cluster, what, error)
        _write(msgspec.structs.replace(batch, changes=(), states=()))


def _write(batch: Batch) -> None:
    """One transaction, in the recorder's thread. Changes already there are left as they are."""
    try:
        with transaction.atomic():
            take_turn(batch.cluster)
            write_changes(batch.changes)
            watches.save(batch.cluster, batch.process, batch.spans)
            if not batch.went_back and checkpoint.is_behind(batch.cluster, batch.resource_version):
                return  # another replica, further on, remembers all this and more
            checkpoint.save(
                batch.cluster,
                (
                    (key, None if state is None else batch.encode(state))
                    for key, state in batch.states
                ),
            )
            if batch.complete and batch.resource_version is not None:
                checkpoint.save_progress(
                    batch.cluster,
                    resource_version=batch.resource_version,
                    watched_until=batch.watched_until,
                )
    except DatabaseError:
        # SQLite's stays open: on a full disk the last one to close could not be opened again.
        if not connection.is_usable():
            connection.close()
        raise


def let_go() -> None:
    """Close the connection of the thread that runs this."""
    connection.close()
