"""A cluster with three Leases, watched for a day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from leases.domain.lease import ObjectName
from leases.domain.watched_times import Connection, ConnectionState
from leases.models import WatchSpan
from tests.support.board import a_lease, fill

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
