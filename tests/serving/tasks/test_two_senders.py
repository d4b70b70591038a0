"""Two replicas could send each message: one does, and the other one if that is killed meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connections
from msgspec.structs import replace

from dashboard.access.kept_secrets import seal
from dashboard.serving.tasks import notifications
from dashboard.serving.tasks.notifications import Notifications
from leases.domain.notify import Target
from leases.history.deliveries import CLAIM
from leases.models import Notification
from tests.support.receiving import HttpReceiver, http_receiver
from tests.support.values.changes import T0, a_change
from tests.support.values.incident_rows import incident_with
from tests.support.values.receivers import a_receiver, record

pytestmark = pytest.mark.django_db(transaction=True)

OPEN = incident_with(a_change(1), ended=None, settled=False)
MANY = 12


@pytest.fixture(autouse=True)
def looks_often(monkeypatch):
    monkeypatch.setattr(notifications, "LOOK_SECONDS", 0.01)


class Sender:
    """The task that sends, with a database connection of its own, as in another process."""

    def __init__(self, process: str, clock: Callable[[], datetime]) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._killed = False
        sending = Notifications(self._in_thread, ["a"], process, clock)
        self._task = asyncio.create_task(sending.run())

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        if self._killed:
            raise OperationalError("A killed process reaches no database.")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def end(self, *, killed: bool = False) -> None:
        self._killed = killed
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._killed = False
        await self._in_thread(connections.close_all)
        self._thread.shutdown()


@asynccontextmanager
async def sender(process: str, clock: Callable[[], datetime] = lambda: T0) -> AsyncIterator[Sender]:
    one = Sender(process, clock)
    try:
        yield one
    finally:
        await one.end()


async def all_sent(number: int) -> None:
    sent = Notification.objects.filter(state=Notification.SENT)
    async with asyncio.timeout(60):
        while await sync_to_async(sent.count)() < number:
            await asyncio.sleep(0.01)


async def test_each_message_comes_once_though_both_look_for_it():
    async with http_receiver() as receiver, sender("one"), sender("other"):
        for name in ("ops", "security"):
            target = seal(Target(url=f"{receiver.url}/{name}"))
            await sync_to_async(a_receiver)(name, sealed=target)
        await sync_to_async(record)(*(replace(OPEN, id=f"incident-{n}") for n in range(MANY)))
        await all_sent(2 * MANY)
    came = [(post.path, post.json["messages"][0]["incident"]) for post in receiver.received]
    assert sorted(came) == sorted(
        (f"/{name}", f"incident-{n}") for name in ("ops", "security") for n in range(MANY)
    )
    assert len({post.headers["Leaseboard-Delivery"] for post in receiver.received}) == 2 * MANY


async def hanging_delivery(receiver: HttpReceiver) -> Sender:
    """A sender whose delivery the receiver does not answer."""
    await sync_to_async(a_receiver)(sealed=seal(Target(url=receiver.url)))
    await sync_to_async(record)(OPEN)
    receiver.go.clear()
    one = Sender("one", lambda: T0)
    while not receiver.received:
        await asyncio.sleep(0.01)
    return one


def assert_came_again(receiver: HttpReceiver) -> None:
    first, again = receiver.received
    assert first.headers["Leaseboard-Delivery"] == again.headers["Leaseboard-Delivery"]
    assert first.json == again.json


async def test_what_a_killed_sender_had_claimed_comes_again_under_its_id():
    ends, looks = T0 + CLAIM, list[datetime]()
    now = ends - timedelta(seconds=1)

    def clock() -> datetime:
        looks.append(now)
        return now

    async with http_receiver() as receiver, asyncio.timeout(60):
        killed = await hanging_delivery(receiver)
        await killed.end(killed=True)
        receiver.go.set()
        async with sender("other", clock):
            while len(looks) < 5:
                await asyncio.sleep(0.01)
            assert len(receiver.received) == 1
            now = ends
            await all_sent(1)
    assert_came_again(receiver)


async def test_a_sender_that_is_stopped_gives_its_claims_back():
    async with http_receiver() as receiver, asyncio.timeout(60):
        stopped = await hanging_delivery(receiver)
        await stopped.end()
        receiver.go.set()
        async with sender("other"):
            await all_sent(1)
    assert_came_again(receiver)
