"""Whether the database answers is asked by a connection of its own."""

from __future__ import annotations

import asyncio
import threading

import pytest

from leases.history.database import Reach

pytestmark = pytest.mark.django_db(transaction=True)


async def test_who_looks_closes_its_connection_when_it_ends():
    looked, closed = threading.Event(), threading.Event()

    class Seen(Reach):
        def answered(self):
            super().answered()
            looked.set()

        def close(self):
            super().close()
            closed.set()

    task = asyncio.create_task(Seen().run())
    assert await asyncio.to_thread(looked.wait, 30)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await asyncio.to_thread(closed.wait, 30)
