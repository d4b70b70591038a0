"""Insert changes as rows, each once, however many replicas report it.

An observed change beats one that a replica inferred from a list. If a list shows a later write than
the one that made the change, the identities differ; then the time window identifies the inferred
one: the same Lease came to the same holder within it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from django.db import connection
from django.db.models import Q

from leases import models
from leases.domain.changes.change import Change, ChangeType
from leases.domain.changes.change_identity import OF_THE_TERM
from leases.history.change_row import WRITTEN, to_values
from leases.history.database_text import to_stored
from leases.history.write.bulk_insert import execute_many, insert

_SETS = ", ".join(f"{column} = excluded.{column}" for column in WRITTEN)
# bulk_create is many times slower and cannot choose between two versions of a change. A take-over
# beats the same write seen as a replacement: only it fits the `expired` that a replica stored.
_INSERT = f"INSERT INTO leases_change ({', '.join(WRITTEN)})"
_SETTLE = f"""
    ON CONFLICT (cluster, namespace, name, identity) DO UPDATE SET {_SETS}
    WHERE leases_change.inferred AND NOT excluded.inferred
    OR leases_change.inferred = excluded.inferred
    AND leases_change.change = 'replaced' AND excluded.change = 'taken_over'
"""
_FORGET = """
    DELETE FROM leases_change
    WHERE cluster = %s AND namespace = %s AND name = %s AND uid = %s AND inferred
    AND COALESCE(holder, '') = %s AND observed_at >= %s
    AND (inferred_since IS NULL OR inferred_since < %s) AND change IN ({})
"""
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
    for change in concluded:
        if not _is_recorded(change):
            _insert([change])


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
        insert(_INSERT, list(first.values()), _SETTLE)
        rows = later


def _group(change: Change) -> tuple[ChangeType, ...]:
    """Return the group of changes of which one write makes at most one, if any."""
    return next((group for group in _GROUPS if change.change in group), ())


def _is_recorded(concluded: Change) -> bool:
    """Whether a stored change within its time window is the same as this inferred one."""
    after = Q() if concluded.inferred_since is None else Q(at__gt=concluded.inferred_since)
    return models.ChangeRecord.objects.filter(
        after,
        at__lte=concluded.observed_at,
        cluster=concluded.cluster,
        namespace=concluded.namespace,
        name=concluded.name,
        uid=concluded.uid,
        change__in=_group(concluded),
        holder__isnull=concluded.holder is None,
        **({} if concluded.holder is None else {"holder": to_stored(concluded.holder)}),
    ).exists()


def _forget_conclusions(seen: Iterable[Change]) -> None:
    """Delete what other replicas inferred about changes that we observed."""
    time = connection.ops.adapt_datetimefield_value
    for group in _GROUPS:
        windows = [
            (change.cluster, change.namespace, change.name, change.uid,
             to_stored(change.holder) or "", time(change.at), time(change.at), *group)
            for change in seen if change.change in group
        ]  # fmt: skip
        execute_many(_FORGET.format(", ".join(["%s"] * len(group))), windows)
