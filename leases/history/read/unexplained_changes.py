"""Changes without a cause, as clues: a process was killed before it wrote their incidents.

History keeps less than the tracker knew: no intervals of renewals, no silences of the cluster, no
managedFields but the name of the writer.
"""

from __future__ import annotations

from datetime import datetime

from leases.domain.cause.clue import Clue
from leases.domain.cause.human_writers import is_human_writer
from leases.domain.cause.incident import Cause
from leases.domain.changes.change import Change, ChangeType
from leases.domain.lease import Lease, LeaseSpec, ObjectMeta
from leases.history.change_row import COLUMNS, to_change
from leases.history.read.find_changes import of_lease
from leases.history.read.raw_select import by_index, select

MOST = 5000  # changes that are looked at, the newest: as many as a casebook judges at once
MOST_EARLIER = 20  # changes of one Lease
_NO_WRITE = (ChangeType.EXPIRED, ChangeType.DELETED)


def unexplained_changes(cluster: str, since: datetime) -> list[Clue]:
    """Return the changes from then on that have no cause, oldest first.

    Those that came before an explained change of the same Lease are innocent: they were judged.
    """
    rows = select(
        f"SELECT identity, {COLUMNS} FROM {by_index('change_by_time')} "  # noqa: S608
        "WHERE cluster = %s AND at >= %s ORDER BY at DESC, id DESC LIMIT %s",
        [cluster, since, MOST],
    )
    explained: set[tuple[str, str]] = set()
    found = []
    for identity, *row in rows:
        change = to_change(tuple(row))
        name = change.namespace, change.name
        if change.cause is not None:
            explained.add(name)
        elif name not in explained:
            found.append(_clue(change, identity))
    return found[::-1]


def _clue(change: Change, identity: str) -> Clue:
    observed_at = change.renewed_at
    before = None
    if change.change is ChangeType.EXPIRED and observed_at is not None:
        lasted = round((change.at - observed_at).total_seconds())
        before = _lease(change, change.previous_holder, duration=lasted)
    after = None if change.change in _NO_WRITE else _lease(change, change.holder)
    return Clue(
        change=change,
        before=before,
        after=after,
        observed_at=observed_at,
        usual_writer=_usual_writer(change),
        stored_as=identity,
    )


def _usual_writer(change: Change) -> str | None:
    """Return who wrote the Lease before a person's program did; that program if nobody is known."""
    if change.writer is None or not is_human_writer(change.writer):
        return None
    earlier = of_lease(change.cluster, change.namespace, change.name, MOST_EARLIER)
    known = (
        one.writer
        for one in earlier
        if one.writer and one.at < change.at and one.cause is not Cause.BY_HAND
    )
    return next(known, change.writer)


def _lease(change: Change, holder: str | None, *, duration: int | None = None) -> Lease:
    meta = ObjectMeta(name=change.name, namespace=change.namespace, uid=change.uid)
    return Lease(meta, LeaseSpec(holder_identity=holder, lease_duration_seconds=duration))
