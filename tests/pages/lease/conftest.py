"""A Lease whose overrides follow the database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from django.db import connection

from dashboard.serving.runtime import Runtime
from leases.tracking.tracker import Tracker
from tests.support.board import a_lease, fill


@pytest.fixture
async def followed(board: Runtime) -> AsyncIterator[Runtime]:
    """Cluster a with its Lease, following what is stored of kinds."""
    fill(board.clusters["a"].store, a_lease())
    tracker = Tracker(
        board.clusters["a"].store, [board.publisher.publish], lambda: datetime.now(UTC)
    )
    await board.overrides.follow("a", tracker)
    yield board
    await board.recorder.in_thread(lambda: connection.close())  # of that thread
