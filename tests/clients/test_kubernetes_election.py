"""The official Python client's elections: one holds, dies, and the other takes over in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.clients.presence import imported
from tests.clients.somebody import Somebody
from tests.support.processes import wait_for
from tests.support.programs.contender import contending

pytestmark = pytest.mark.clients
NAME = "election"
TIMES = {"lease_duration": 2, "renew_deadline": 1.5, "retry_period": 1}


def holder_in(somebody: Somebody) -> str | None:
    answer = somebody.client.call("GET", f"{somebody.leases}/{NAME}")
    return answer.json["spec"].get("holderIdentity") if answer.status == 200 else None


def test_the_other_process_takes_over_when_one_is_killed(
    secure: Path, namespace: str, somebody: Somebody
) -> None:
    imported("kubernetes.leaderelection.leaderelection")
    run = partial(contending, secure, namespace, NAME, duration=2, deadline=1.5)
    with run("first") as first:
        wait_for(lambda: holder_in(somebody) == "first", what="the first to hold it")
        with run("second"):
            first.kill()
            wait_for(lambda: holder_in(somebody) == "second", what="the second to take over")
    spec = somebody.read(NAME)["spec"]
    assert spec["leaseDurationSeconds"] == TIMES["lease_duration"]
    assert spec["renewTime"] >= spec["acquireTime"]


class Contender:
    """One contender in this event loop; `acting` is set once it holds."""

    def __init__(self, connection: Any, namespace: str, identity: str) -> None:
        election = imported("kubernetes.aio.leaderelection.leaderelection")
        settings = imported("kubernetes.aio.leaderelection.electionconfig")
        lock = imported("kubernetes.aio.leaderelection.resourcelock.leaselock")
        self.acting = asyncio.Event()
        self.identity = identity
        self._election = election.LeaderElection(
            settings.Config(
                lock.LeaseLock(NAME, namespace, identity, connection),
                onstarted_leading=self._act,
                onstopped_leading=None,
                **TIMES,
            )
        )
        self.task = asyncio.create_task(self._election.run())

    async def _act(self) -> None:
        self.acting.set()

    async def die(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@pytest.fixture
async def connections(secure: Path, plain: Path) -> AsyncIterator[list[Any]]:
    config = imported("kubernetes.aio.config")
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(await config.new_client_from_config(str(path)))
            for path in (secure, plain)
        ]


async def test_a_task_over_http_takes_over_from_one_over_https(
    connections: list[Any], namespace: str, somebody: Somebody
) -> None:
    # The Lease exists, because this client's own create sends a parameter that it then refuses.
    somebody.create(NAME, "")
    async with asyncio.timeout(60):
        first = Contender(connections[0], namespace, "first")
        await first.acting.wait()
        assert holder_in(somebody) == "first"
        second = Contender(connections[1], namespace, "second")
        await first.die()
        await second.acting.wait()
        assert holder_in(somebody) == "second"
        await second.die()
