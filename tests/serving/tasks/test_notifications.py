"""The task that sends: it tries again until a failing receiver takes the message, and counts."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial

import pytest
from aiohttp import web
from asgiref.sync import sync_to_async
from django.db import OperationalError
from msgspec.structs import replace

from dashboard.access.kept_secrets import CannotUnseal, seal, unseal
from dashboard.serving.tasks import notifications
from dashboard.serving.tasks.notifications import Notifications
from leases.domain.notify import Stage, Target, message_of
from leases.history import deliveries, outbox
from leases.models import Notification, Receiver
from tests.support.receiving import http_receiver
from tests.support.recording import in_thread
from tests.support.values.changes import T0, a_change
from tests.support.values.incident_rows import incident_with
from tests.support.values.receivers import a_receiver, record

pytestmark = pytest.mark.django_db(transaction=True)

A_TEST = message_of(incident_with(a_change(2)), Stage.TEST, receiver=1, step=0, last=None)
OPEN = incident_with(a_change(1), ended=None, settled=False)


@pytest.fixture
def clock(monkeypatch):
    """An hour passes at each look."""
    monkeypatch.setattr(notifications, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(deliveries, "GIVE_UP", timedelta(days=365))
    hours = iter(range(10_000))
    return lambda: T0 + timedelta(hours=next(hours))


async def sent(task: Notifications) -> None:
    """Run the task until no message waits."""

    def waits() -> bool:
        return Notification.objects.filter(state="waiting").exists()

    running = asyncio.create_task(task.run())
    async with asyncio.timeout(60):
        while await sync_to_async(waits)() and not running.done():
            await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_message_comes_at_least_once_under_one_id(clock, settings, caplog):
    settings.LEASEBOARD = settings.LEASEBOARD.__class__(url="https://leases.example.com")
    answers = [web.Response(status=500), web.Response(status=404)]
    async with http_receiver(*answers) as receiver:
        target = Target(url=f"{receiver.url}/C4NARY", secret="a secret that signs")
        await sync_to_async(a_receiver)(sealed=seal(target))
        await sync_to_async(record)(OPEN)
        task = Notifications(in_thread, ["a"], "one", clock)
        failing = [OperationalError("disk I/O error")]

        async def broken_once(work):
            if failing:
                raise failing.pop()
            return await in_thread(work)

        task._in_thread = broken_once
        await sent(task)
    assert len({one.headers["Leaseboard-Delivery"] for one in receiver.received}) == 1
    assert len(receiver.received) == 3
    [message] = receiver.received[0].json["messages"]
    assert message["url"] == "https://leases.example.com/c/a/incidents/one/"
    assert task.outcomes == {("webhook", "failed"): 2, ("webhook", "sent"): 1}
    assert "It answered 404 Not Found." in caplog.text
    assert "C4NARY" not in caplog.text
    stored = await sync_to_async(Receiver.objects.get)()
    assert (stored.failures, stored.last_error) == (0, "")
    assert "C4NARY" not in stored.sealed


def test_with_nobody_to_tell_a_look_is_one_query(django_assert_num_queries):
    task = Notifications(in_thread, ["a"], "one", lambda: T0)
    with django_assert_num_queries(1):
        assert task._claim(T0, set()) == ()
    record(OPEN)
    outbox.acknowledge("a", "one", who="ada", at=T0)
    task._claim(T0, set())
    assert task.care.taken["a", "one"].who == "ada"
    outbox.take_back(OPEN, at=T0)
    task._claim(T0, set())
    assert task.care.taken == {}


async def test_a_cluster_hears_what_people_do_about_its_incidents(clock):
    await sync_to_async(record)(OPEN)
    task, told = Notifications(in_thread, ["a"], "one", clock), list[str]()
    task.cared = told.append
    await task._look()
    assert told == []
    for who in ("ada", "olga"):
        take = partial(outbox.acknowledge, "a", "one", who=who, at=T0, take_over=True)
        await sync_to_async(take)()
        await task._look()
        await task._look()
    assert told == ["a"] * 2
    await sync_to_async(outbox.take_back)(OPEN, at=T0)
    await task._look()
    assert told == ["a"] * 3


async def test_an_unexpected_error_of_one_receiver_is_no_end_of_the_task(
    clock, caplog, monkeypatch
):
    def broken(*_given, **_named):
        raise ZeroDivisionError("a secret of the mail")

    monkeypatch.setattr(notifications, "send_mail", broken)
    async with http_receiver() as receiver:
        await sync_to_async(a_receiver)("mail", sort="email", sealed=seal(Target()))
        await sync_to_async(a_receiver)("hook", sealed=seal(Target(url=receiver.url)))
        await sync_to_async(record)(OPEN)
        task = Notifications(in_thread, ["a"], "one", clock)
        async with asyncio.timeout(60):
            running = asyncio.create_task(task.run())
            while not (receiver.received and task.failing):
                await asyncio.sleep(0.01)
        assert not running.done()
        assert [one.name for one in task.failing] == ["mail"]
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert "failed on an unexpected error" in caplog.text


async def test_alertmanager_is_reminded_of_what_goes_on_in_watched_clusters(clock):
    async with http_receiver() as receiver:
        target = Target(url=receiver.url)
        await sync_to_async(a_receiver)(sort="alertmanager", sealed=seal(target))
        await sync_to_async(record)(OPEN)
        await sync_to_async(record)(replace(OPEN, cluster="watched no more", id="two"))
        running = asyncio.create_task(Notifications(in_thread, ["a"], "one", clock).run())
        async with asyncio.timeout(60):
            while len(receiver.received) < 5:
                await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    told = [alert["labels"]["incident"] for one in receiver.received for alert in one.json]
    assert sorted(told[:2]) == ["one", "two"]
    assert set(told[2:]) == {"one"}


@pytest.mark.parametrize("known", ["https://leases.example.com", ""])
async def test_a_message_links_to_where_the_admin_came_from_unless_an_address_is_set(
    clock, settings, known
):
    settings.LEASEBOARD = settings.LEASEBOARD.__class__(url=known)
    async with http_receiver() as receiver:
        sealed = seal(Target(url=receiver.url))
        one = await sync_to_async(a_receiver)(sealed=sealed, address="http://board:8000")
        await sync_to_async(record)(OPEN)
        await sync_to_async(deliveries.queue_test)(one.pk, A_TEST, T0)
        await sync_to_async(outbox.acknowledge)("a", "one", who="ada", at=T0)
        task = Notifications(in_thread, ["a"], "one", clock)
        await sent(task)
    assert task.care.taken["a", "one"].who == "ada"
    urls = {row["url"] for sending in receiver.received for row in sending.json["messages"]}
    base = known or "http://board:8000"
    log = f"{base}/notifications/log/?receiver={one.pk}"
    assert urls == {f"{base}/c/a/incidents/one/", log}


def test_another_secret_key_reads_no_target(settings):
    sealed = seal(Target(url="https://example.com/a"))
    assert unseal(sealed).url == "https://example.com/a"
    settings.SECRET_KEY = "another key of thirty-two characters"
    with pytest.raises(CannotUnseal, match="LEASEBOARD_SECRET_KEY"):
        unseal(sealed)
