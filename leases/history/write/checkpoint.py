"""The last known state of each Lease, written in one transaction with the changes that led to it.

Records are opaque here: the caller encodes and decodes them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from datetime import datetime

import msgspec
from django.db import connection

from leases.domain.lease import ObjectName, number_of
from leases.history.read.raw_select import select
from leases.history.write.bulk_insert import execute_many, insert
from leases.models import LeaseRecord, WatchRecord

_INSERT = "INSERT INTO leases_leaserecord (cluster, namespace, name, tracked)"
_REPLACE = "ON CONFLICT (cluster, namespace, name) DO UPDATE SET tracked = excluded.tracked"
_PROGRESS = (
    "INSERT INTO leases_watchrecord (cluster, resource_version, watched_until) "
    "VALUES (%s, %s, %s) ON CONFLICT (cluster) DO UPDATE SET "
    "resource_version = excluded.resource_version, watched_until = excluded.watched_until"
)
_REACHED = "SELECT resource_version FROM leases_watchrecord WHERE cluster = %s"
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


def is_behind(cluster: str, resource_version: str | None) -> bool:
    """Whether more of the cluster's watch is stored than up to this version."""
    reached = select(_REACHED, [cluster])
    return bool(reached) and number_of(resource_version) < number_of(reached[0][0])


def save(cluster: str, records: Iterable[tuple[ObjectName, bytes | None]]) -> None:
    """Store these states; None deletes a Lease. Runs in the caller's transaction."""
    kept, gone = [], []
    for key, record in records:
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


def save_progress(cluster: str, *, resource_version: str, watched_until: datetime) -> None:
    """Store how far the watch of this cluster is written."""
    until = connection.ops.adapt_datetimefield_value(watched_until)
    with connection.cursor() as cursor:
        cursor.execute(_PROGRESS, [cluster, resource_version, until])
