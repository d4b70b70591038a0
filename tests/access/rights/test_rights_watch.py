"""Open rights are checked again and again, and stay while the database does not answer."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import datetime
from types import SimpleNamespace

from asgiref.sync import sync_to_async
from django.db import OperationalError

from dashboard import clock
from dashboard.access import ended_rights
from dashboard.access.ended_rights import PROBLEM, RightsWatch
from dashboard.access.rights import Right, WallRight

RIGHT = WallRight(1, "a")


def watch_of(answers: list[dict[Right, str] | Exception]) -> RightsWatch:
    """A watch whose database gives these answers, one after the other."""

    def find(rights: object, **_now: object) -> dict[Right, str]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return RightsWatch(find)


async def test_open_sockets_stay_open_while_the_database_does_not_answer(caplog):
    ended: list[str] = []
    refused = OperationalError("no route to host")
    watch = watch_of([refused, refused, {}, {RIGHT: "over"}])
    watch.add(RIGHT, ended.append)
    await watch.check()
    assert (ended, watch.problem) == ([], PROBLEM)
    await watch.check()
    said = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(said) == 1, "an outage is one line of the log"
    await watch.check()
    assert watch.problem is None
    await watch.check()
    assert ended == ["over"]


async def test_a_database_that_hangs_is_a_problem_too(monkeypatch):
    watch = watch_of([{}])
    watch.add(RIGHT, str)
    await watch.check()
    assert watch.problem is None
    later = time.monotonic() + ended_rights.LATE_SECONDS + 1
    monkeypatch.setattr(ended_rights.time, "monotonic", lambda: later)
    assert watch.problem == PROBLEM


async def test_the_problem_is_on_every_page(board):
    board.rights = watch_of([OperationalError("no")])
    board.rights.add(RIGHT, str)
    await board.rights.check()
    assert PROBLEM in board.problem("a")


async def test_without_open_rights_no_query_is_made():
    await watch_of([]).check()


async def test_each_grant_ends_once_and_one_that_fails_holds_up_no_other(caplog):
    ended: list[str] = []

    def broken(reason: str) -> None:
        raise ValueError(reason)

    watch = watch_of([{RIGHT: "over"}])
    watch.add(RIGHT, ended.append)
    watch.add(RIGHT, broken)
    kept = watch.add(WallRight(2, "a"), ended.append)
    gone = watch.add(RIGHT, ended.append)
    watch.remove(gone)
    await watch.check()
    assert ended == ["over"]
    assert caplog.messages == ["What is open by an ended right could not be closed"]
    assert list(watch.rights) == [kept.right]
    watch.remove(kept)
    watch.remove(kept)
    assert not watch.rights


async def test_a_flood_of_changes_asks_no_more_than_a_few_times(monkeypatch):
    monkeypatch.setattr(ended_rights, "MIN_SPACING", 3600.0)
    monkeypatch.setattr(ended_rights, "CHECK_SECONDS", 3600.0)
    watch = watch_of([{}])
    watch.add(RIGHT, str)
    running = asyncio.create_task(watch.run())
    await asyncio.sleep(0)
    for _ in range(100):
        await sync_to_async(watch.look_now)()
    while not watch.checks:
        await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert watch.checks == 1


async def test_a_database_that_is_down_is_logged_once_and_so_is_its_return(caplog):
    caplog.set_level("INFO")
    down = [True]

    def find(*_rights: object, now: object) -> dict[Right, str]:
        if down[0]:
            raise OperationalError("no route")
        return {}

    watch = RightsWatch(find)
    watch.add(RIGHT, str)
    for _ in range(3):
        await watch.check()
    assert caplog.messages == [f"{PROBLEM} It says: no route"]
    down[0] = False
    for _ in range(3):
        await watch.check()
    assert caplog.messages[1:] == ["The database says again who may look."]
    assert watch.problem is None
    watch.close()


async def test_without_any_change_rights_are_checked_by_a_timer(monkeypatch):
    monkeypatch.setattr(ended_rights, "CHECK_SECONDS", 0.001)
    monkeypatch.setattr(ended_rights, "MIN_SPACING", 0.0)
    asked: list[tuple[object, ...]] = []

    def find(rights: object, *, now: datetime) -> dict[Right, str]:
        asked.append((rights, now, threading.current_thread().name))
        return {}

    watch = RightsWatch(find)
    watch.add(RIGHT, str)
    before = clock.now()
    async with asyncio.timeout(60):
        running = asyncio.create_task(watch.run())
        while watch.checks < 3:
            await asyncio.sleep(0.001)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    for rights, now, thread in asked:
        assert rights == {RIGHT}
        assert before <= now <= clock.now()
        assert thread.startswith("rights"), "one thread of its own, so one connection"
    watch.close()


async def test_a_first_question_that_hangs_is_a_problem_too(monkeypatch):
    asked, answer = threading.Event(), threading.Event()

    def find(*_rights: object, now: object) -> dict[Right, str]:
        asked.set()
        answer.wait(30)
        return {}

    watch = RightsWatch(find)
    watch.add(RIGHT, str)
    checking = asyncio.create_task(watch.check())
    await asyncio.to_thread(asked.wait, 30)
    began = time.monotonic()
    assert watch.problem is None
    with monkeypatch.context() as patch:
        patch.setattr(ended_rights, "time", SimpleNamespace(monotonic=lambda: began + 11))
        assert watch.problem == PROBLEM
    answer.set()
    await checking
    assert watch.problem is None
    watch.close()


async def test_there_is_no_problem_once_nothing_is_open():
    watch = watch_of([OperationalError("no")])
    grant = watch.add(RIGHT, str)
    await watch.check()
    assert watch.problem == PROBLEM
    watch.remove(grant)
    await watch.check()
    assert watch.problem is None


async def test_a_socket_closed_during_the_query_is_not_ended_again():
    ended: list[str] = []
    watch = RightsWatch(lambda *_, **__: watch.remove(grant) or {RIGHT: "over"})
    grant = watch.add(RIGHT, ended.append)
    await watch.check()
    assert ended == []
    watch.close()
