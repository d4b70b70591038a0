"""A cluster with three Leases, for the tests of the pages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from leases.domain.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.watched_times import Connection, ConnectionState
from leases.history import change_counts
from leases.tracking.store import Store
from leases.wire.watch_decoding import Applied
from tests.support.board import KEY, a_lease, fill
from tests.support.values.change_rows import to_row

HTMX = {"HX-Request": "true"}


@pytest.fixture(autouse=True)
def nothing_counted():
    """Counts of the past are kept for minutes; the next test has another past."""
    yield
    change_counts._kept.clear()


@pytest.fixture
def store(board):
    """Cluster a, live, with two held elections and one vacant."""
    store = board.clusters["a"].store
    free = ObjectName("apps", "free")
    fill(store, a_lease(free, holder=None), a_lease(ObjectName("apps", "other")), a_lease())
    store.connection = Connection(state=ConnectionState.LIVE, since=datetime.now(UTC))
    return store


def remember(change: ChangeType, *, seconds_ago: float = 60, **more) -> None:
    at = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    known = {
        "cluster": "a",
        "namespace": KEY.namespace,
        "name": KEY.name,
        "uid": "u",
        "kind": Kind.ELECTION,
        "at": at,
        "observed_at": at,
        "resource_version": str(seconds_ago),
    }
    to_row(Change(change=change, **(known | more))).save()


def text_of(response) -> str:
    return response.content.decode()


def released_after_all(store: Store) -> list[str]:
    """One election ran out and was released long after, another was released before that: their
    names, the one without a holder for longer first.
    """
    first, last, now = ObjectName("apps", "first"), ObjectName("apps", "last"), datetime.now(UTC)
    fill(store, a_lease(first), a_lease(last))
    store.turn(now + timedelta(seconds=20))
    writes = ((last, "last-1"), (last, None), (first, None))
    for second, (key, holder) in enumerate(writes, 21):
        moment = now + timedelta(seconds=second)
        written = a_lease(key, holder=holder, version=str(200 + second), now=moment)
        store.follow((Applied(written),), moment)
    return [str(first), str(last)]
