"""When a wall link was last used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError

from dashboard import clock
from dashboard.access import links
from dashboard.access.known_rights import WallRight
from dashboard.access.links import LinkUse
from dashboard.board import running_board
from leases.models import WallLink
from tests.access.wall.one_link import link, opened

pytestmark = pytest.mark.django_db(transaction=True)

T0 = datetime(2026, 11, 20, 12, tzinfo=UTC)
Write = Callable[[], int]


class Database:
    """Writes as the runtime does, or fails; counts the tries."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.meanwhile: Callable[[], None] = lambda: None
        self.tries = 0

    async def __call__(self, write: Write) -> int:
        self.tries += 1
        if self.error is not None:
            self.meanwhile()
            raise self.error
        return await sync_to_async(write)()


def used_at() -> dict[str, datetime | None]:
    return dict(WallLink.objects.values_list("name", "last_used_at"))


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Callable[[datetime], None]:
    """Sets the clock."""
    return lambda moment: monkeypatch.setattr(clock, "now", lambda: moment)


def made(*names: str) -> list[WallRight]:
    return [WallRight(link(name)[0].pk, "a") for name in names]


async def test_each_link_that_was_used_gets_the_time_of_the_write(board, now):
    one, _, shown = await sync_to_async(made)("one", "unused", "shown")
    open_now: set[WallRight] = set()
    database = Database()
    use = LinkUse(database, lambda: open_now)
    use.note(one)
    use.note(one)
    now(T0)
    await use.write()
    assert await sync_to_async(used_at)() == {"one": T0, "unused": None, "shown": None}
    await use.write()
    assert database.tries == 1, "nothing new, nothing written"
    open_now.add(shown)
    now(T0 + timedelta(minutes=1))
    await use.write()
    later = T0 + timedelta(minutes=1)
    assert await sync_to_async(used_at)() == {"one": T0, "unused": None, "shown": later}


async def test_uses_of_a_failed_write_are_written_with_the_next(board, now, caplog):
    caplog.set_level("INFO")
    one, two = await sync_to_async(made)("one", "two")
    database = Database()
    use = LinkUse(database, set)
    use.note(one)
    database.error, database.meanwhile = OperationalError("disk full"), lambda: use.note(two)
    await use.write()
    (line,) = caplog.messages
    assert line == "When wall links were used cannot be written just now: disk full"
    database.error = None
    now(T0)
    await use.write()
    assert await sync_to_async(used_at)() == {"one": T0, "two": T0}


async def test_an_error_that_is_not_of_the_database_is_raised_and_loses_no_use(board, now):
    (one,) = await sync_to_async(made)("one")
    database = Database()
    use = LinkUse(database, set)
    use.note(one)
    database.error = KeyError("a defect")
    with pytest.raises(KeyError):
        await use.write()
    database.error = None
    now(T0)
    await use.write()
    assert await sync_to_async(used_at)() == {"one": T0}


async def test_uses_are_written_again_and_again(monkeypatch):
    monkeypatch.setattr(links, "WRITE_SECONDS", 0.001)
    written: list[Write] = []

    async def in_thread(write: Write) -> int:
        written.append(write)
        return 1

    async with asyncio.timeout(60):
        running = asyncio.create_task(LinkUse(in_thread, lambda: {WallRight(1, "a")}).run())
        while len(written) < 2:
            await asyncio.sleep(0.001)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_opening_a_wall_notes_its_use(board):
    one, token = link()
    opened(token)
    opened("nonsense")
    assert running_board().link_use._used == {WallRight(one.pk, "a")}
