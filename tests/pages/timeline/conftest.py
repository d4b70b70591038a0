"""A cluster with three Leases, watched for a day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from leases.domain.change import Change
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.watched_times import Connection, ConnectionState
from leases.models import WatchSpan
from tests.support.board import KEY, a_lease, fill
from tests.support.values.change_rows import to_row

OTHER = ObjectName("apps", "other")
FREE = ObjectName("apps", "free")


@pytest.fixture
def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def store(board, now, db):
    """Cluster a, live and watched for a day, with two held elections and one vacant."""
    store = board.clusters["a"].store
    fill(store, a_lease(FREE, holder=None), a_lease(OTHER), a_lease())
    store.connection = Connection(state=ConnectionState.LIVE, since=now)
    WatchSpan.objects.create(
        cluster="a", process="p", since=now - timedelta(days=1), until=now + timedelta(minutes=1)
    )
    return store


@pytest.fixture
def remember(now):
    numbers = iter(range(100000))

    def add(minutes_ago, change, holder=None, *, key=KEY, previous=None, **more):
        at = now - timedelta(minutes=minutes_ago)
        known = {
            "cluster": "a",
            "namespace": key.namespace,
            "name": key.name,
            "uid": f"uid-{key}",
            "kind": Kind.ELECTION,
            "at": at,
            "observed_at": at,
            "holder": holder,
            "previous_holder": previous,
            "resource_version": str(next(numbers)),
        }
        to_row(Change(change=change, **(known | more))).save()

    return add
