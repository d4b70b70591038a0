"""A store of one Lease, filled by hand."""

from __future__ import annotations

from typing import Any

from leases.domain.lease import ObjectName
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked, Update
from leases.wire.watch_decoding import Applied, Listed
from tests.support.values.leases import after, lease

KEY = ObjectName("default", "controller")


def words(update: Update | None) -> list[str]:
    return [change.change.value for change in update.changes] if update else []


def put(store: Store, seconds: float, **given: Any) -> Update | None:
    return store.follow((Applied(lease(**given)),), after(seconds))


def known(store: Store) -> Tracked:
    tracked = store.get(KEY)
    assert tracked is not None
    return tracked


def renewing(store: Store, seconds: int, *, version: int = 1) -> int:
    """A holder that renews every 2 s from its creation at noon; returns the last version."""
    for second in range(0, seconds + 1, 2):
        put(store, second, renewed=second, version=version)
        version += 1
    return version - 1


def relisted(store: Store, seconds: float, *leases: Any, version: str = "99") -> Update:
    return store.replace(Listed(tuple(leases), version), after(seconds))
