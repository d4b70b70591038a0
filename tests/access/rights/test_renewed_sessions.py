"""Who changes the own password keeps open what that browser opened, under the session's new key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest
from asgiref.sync import sync_to_async

from dashboard.access import ended_rights
from dashboard.access.ended_rights import RightsWatch
from dashboard.access.rights import Right, UserRight, WallRight

OLD, NEW, OTHER = UserRight(1, "old"), UserRight(1, "new"), UserRight(2, "other")
WALL = WallRight(3, "a")


class Database:
    """Says which rights have ended; notes what it was asked."""

    def __init__(self) -> None:
        self.ended: dict[Right, str] = {}
        self.asked: list[set[Right]] = []

    def find(self, rights: tuple[Right, ...], **_now: object) -> dict[Right, str]:
        self.asked.append(set(rights))
        return {right: reason for right, reason in self.ended.items() if right in rights}


@pytest.fixture
def database() -> Database:
    return Database()


@pytest.fixture
async def watch(database: Database, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RightsWatch]:
    """A watch that runs, and looks only when it is asked to."""
    monkeypatch.setattr(ended_rights, "CHECK_SECONDS", 3600.0)
    one = RightsWatch(database.find)
    running = asyncio.create_task(one.run())
    await asyncio.sleep(0)
    yield one
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    one.close()


def change_key(watch: RightsWatch, session: SimpleNamespace, new: str) -> None:
    """As the view does, in a thread of its own."""
    with watch.renewing(session):
        session.session_key = new


async def test_open_sockets_move_to_the_new_key(watch, database):
    ended: list[str] = []
    moved = [watch.add(OLD, ended.append), watch.add(OLD, ended.append)]
    watch.add(NEW, ended.append)
    watch.add(OTHER, ended.append)
    watch.add(WALL, ended.append)
    await sync_to_async(change_key)(watch, SimpleNamespace(session_key="old"), "new")
    await asyncio.sleep(0)
    assert set(watch.rights) == {NEW, OTHER, WALL}
    database.ended = {OLD: "gone", NEW: "signed out", OTHER: "deleted"}
    watch.remove(moved[0])
    await watch.check()
    assert ended == ["signed out", "signed out", "deleted"]
    assert database.asked[-1] == {NEW, OTHER, WALL}
    assert watch.rights == (WALL,)


async def test_a_new_key_that_nothing_was_open_by_takes_everything_over(watch):
    ended: list[str] = []
    grants = [watch.add(OLD, ended.append) for _ in range(2)]
    await sync_to_async(change_key)(watch, SimpleNamespace(session_key="old"), "new")
    await asyncio.sleep(0)
    assert watch.rights == (NEW,)
    for grant in grants:
        watch.remove(grant)
    assert watch.rights == ()


async def test_a_key_that_stays_leaves_everything_where_it_is(watch):
    grant = watch.add(OLD, str)
    await sync_to_async(change_key)(watch, SimpleNamespace(session_key="old"), "old")
    await asyncio.sleep(0)
    assert watch.rights == (OLD,)
    watch.remove(grant)
    assert watch.rights == ()


async def test_while_the_key_changes_only_that_session_stays_open(watch, database):
    ended: list[str] = []
    for right in (OLD, OTHER, WALL):
        watch.add(right, ended.append)
    database.ended = {OLD: "signed out", OTHER: "deleted", WALL: "revoked"}
    session = SimpleNamespace(session_key="old")
    with watch.renewing(session):
        await watch.check()
        assert ended == ["deleted", "revoked"]
    await asyncio.sleep(0)
    await watch.check()
    assert ended == ["deleted", "revoked", "signed out"]


async def test_an_error_while_the_key_changes_protects_the_session_no_longer(watch, database):
    ended: list[str] = []
    watch.add(OLD, ended.append)
    database.ended = {OLD: "signed out"}
    with (
        pytest.raises(ValueError, match="no password"),
        watch.renewing(SimpleNamespace(session_key="old")),
    ):
        raise ValueError("no password")
    await asyncio.sleep(0)
    await watch.check()
    assert ended == ["signed out"]


async def test_without_a_running_watch_the_protection_ends_with_the_change(database):
    watch = RightsWatch(database.find)
    ended: list[str] = []
    watch.add(OLD, ended.append)
    database.ended = {OLD: "signed out"}
    with watch.renewing(SimpleNamespace(session_key="old")):
        pass
    await watch.check()
    assert ended == ["signed out"]
    watch.close()
