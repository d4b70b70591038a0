"""Pages that show the same are drawn once, and each of them still gets everything in order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from dashboard import clock
from dashboard.live import shared_pages
from dashboard.live.messages import Show
from dashboard.live.page_reader import PageReader
from dashboard.live.shared_drawings import Drawings
from dashboard.live.shared_pages import OpenPage
from tests.live.page_reader.conftest import OTHER, write
from tests.support.board import KEY

TILES = Show(show={"tile": [str(KEY), str(OTHER)]}, feed=0, jumps=0)


@pytest.fixture
def frames(monkeypatch) -> Iterator[list[dict]]:
    """Each frame as it is drawn, for however many pages."""
    drawn: list[dict] = []
    draw = PageReader.frame

    def noted(self, now):
        frame = draw(self, now)
        if frame is not None:
            drawn.append(frame)
        return frame

    monkeypatch.setattr(PageReader, "frame", noted)
    return drawn


def opened(hub, wall: str | None = "", show: Show = TILES, writes=None) -> OpenPage:
    reader = PageReader(hub, Drawings(), wall=wall)
    page = OpenPage(hub.open_pages, reader, writes)
    hub.join(reader)
    page.show(show)
    return page


async def whole(page: OpenPage) -> dict:
    """Read until it has all that it shows; what the frames said of its tiles."""
    tiles: dict[str, str] = {}
    async with asyncio.timeout(20):
        while "shown" not in (frame := json.loads(await page.next())):
            tiles |= frame.get("html", {}).get("tile", {})
    return tiles | frame.get("html", {}).get("tile", {})


async def told(page: OpenPage, holder: str) -> str | bytes:
    """The first message that names this holder."""
    async with asyncio.timeout(20):
        while holder not in (message := await page.next()):
            pass
    return message


async def test_walls_that_show_the_same_are_drawn_once(hub, frames):
    walls = [opened(hub, f"?key={number}") for number in range(5)]
    for wall in walls:
        assert set(await whole(wall)) == {str(KEY), str(OTHER)}
    assert (len(hub.pages), hub.readers["page"]) == (1, 5)
    write(hub, seconds=1, version="2", holder_identity="cp-2")
    said = {await told(wall, "cp-2") for wall in walls}
    assert len(said) == 1
    assert sum("cp-2" in json.dumps(frame) for frame in frames) == 1
    for wall in walls:
        wall.leave()
    assert not hub.pages
    assert not hub.open_pages.groups


async def test_walls_that_show_something_else_are_not_confused(hub):
    one = opened(hub)
    others = [
        opened(hub, "?kind=heartbeat"),
        opened(hub, None),
        opened(hub, show=Show(show={"tile": [str(OTHER)]}, feed=0, jumps=0)),
        opened(hub, show=Show(show=TILES.show, jumps=0)),
    ]
    for page in (one, *others):
        await whole(page)
    assert len(hub.pages) == 5
    write(hub, seconds=1, version="2", holder_identity="cp-2")
    assert "tile" in json.loads(await told(one, "cp-2"))["html"]
    assert "feed" not in json.loads(await told(others[3], "cp-2"))
    assert "html" not in json.loads(await told(others[2], "cp-2"))
    for page in (one, *others):
        page.leave()


async def test_a_page_that_counts_for_its_own_list_is_drawn_alone(hub):
    listed = Show(show={"row": [str(KEY)]}, jumps=0, query="", listed="x", drawn="x")
    pages = [opened(hub, None, listed) for _ in range(2)]
    for page in pages:
        await whole(page)
    assert len(hub.pages) == 2
    assert not hub.open_pages.groups


async def test_a_wall_that_joins_late_gets_everything_and_then_the_same(hub, frames):
    early = opened(hub)
    await whole(early)
    write(hub, seconds=1, version="2", holder_identity="cp-2")
    late = opened(hub)
    assert "cp-2" in (await whole(late))[str(KEY)]
    assert "cp-2" in await told(early, "cp-2"), "also where the late one made it be drawn"
    frames.clear()
    write(hub, seconds=2, version="3", holder_identity="cp-3")
    async with asyncio.timeout(20):
        while "html" not in (frame := json.loads(said := await late.next())):
            assert "cp-2" not in said, "nothing twice"
    assert "cp-3" in frame["html"]["tile"][str(KEY)]
    assert await told(early, "cp-3") == said
    assert sum("cp-3" in json.dumps(frame) for frame in frames) == 1
    early.leave()
    late.leave()


async def test_a_wall_that_says_anew_what_it_shows_misses_nothing(hub):
    one, other = opened(hub), opened(hub)
    await whole(one)
    await whole(other)
    write(hub, seconds=1, version="2", holder_identity="cp-2")
    await told(other, "cp-2")  # it waits for the other one, too
    one.show(Show(show={"tile": [str(KEY)]}, feed=0, jumps=0))
    write(hub, seconds=2, version="3", holder_identity="cp-3")
    assert "cp-3" not in await told(one, "cp-2"), "in order"
    assert "cp-3" in (await whole(one))[str(KEY)]
    write(hub, seconds=3, version="3", key=OTHER, holder_identity="cp-4")
    assert str(OTHER) in json.loads(await told(other, "cp-4"))["html"]["tile"]
    assert "html" not in json.loads(await told(one, "cp-4"))
    one.leave()
    other.leave()


async def test_a_wall_that_does_not_read_gets_everything_as_it_is_then(hub):
    slow, quick = opened(hub), opened(hub)
    await whole(slow)
    await whole(quick)
    for number in range(2, 4 + shared_pages.MAX_WAITING):
        write(hub, seconds=number, version=str(number), holder_identity=f"cp-{number}-")
        assert f"cp-{number}-" in await told(quick, f"cp-{number}-")
    async with asyncio.timeout(20):
        frame = json.loads(await slow.next())
    newest = f"cp-{3 + shared_pages.MAX_WAITING}-"
    assert newest in frame["html"]["tile"][str(KEY)]
    assert str(OTHER) in frame["html"]["tile"]
    assert frame["refetch"] is True
    assert hub.open_pages.groups, "it did not hold the other one up"
    slow.leave()
    quick.leave()


async def test_a_drawing_that_fails_fails_all_its_pages(hub, monkeypatch):
    pages = [opened(hub), opened(hub)]
    for page in pages:
        await whole(page)

    def failing(*_given: object) -> None:
        raise ValueError("not drawn")

    monkeypatch.setattr(PageReader, "frame", failing)
    write(hub, seconds=1, version="2", holder_identity="cp-2")
    for page in pages:
        with pytest.raises(ValueError, match="not drawn"):
            await told(page, "cp-2")
    assert not hub.pages, "nobody may join them any more"
    assert not hub.open_pages.groups


async def test_a_wall_that_joins_one_that_does_not_read_is_not_left_alone_with_it(hub):
    slow = opened(hub)
    await whole(slow)
    (group,) = hub.open_pages.groups
    for number in range(2, 2 + shared_pages.MAX_WAITING):
        write(hub, seconds=number, version=str(number), holder_identity=f"cp-{number}")
        group.draw(clock.now())
    write(hub, seconds=20, version="20", holder_identity="cp-20")
    late = opened(hub)
    assert "cp-20" in (await whole(late))[str(KEY)]
    assert group not in hub.open_pages.groups, "the slow one left it at this moment"
    write(hub, seconds=21, version="21", holder_identity="cp-21")
    assert "html" in json.loads(await told(late, "cp-21"))
    slow.leave()
    late.leave()


class Line:
    """A socket's end of the line: what is written on it, while it takes any."""

    def __init__(self) -> None:
        self.is_free = True
        self.frames: list[bytes] = []

    def write(self, frame: bytes) -> bool:
        if self.is_free:
            self.frames.append(frame)
        return self.is_free

    def told(self, holder: str) -> bool:
        return any(holder.encode() in frame for frame in self.frames)

    async def hears(self, holder: str) -> None:
        async with asyncio.timeout(20):
            while not self.told(holder):
                await asyncio.sleep(0.01)


async def test_sockets_that_wait_get_the_same_frame_without_a_turn_each(hub):
    lines = [Line(), Line()]
    walls = [opened(hub, writes=line.write) for line in lines]
    for wall in walls:
        await whole(wall)
    reading = [asyncio.create_task(told(wall, "cp-4")) for wall in walls]
    await asyncio.sleep(0)
    for number in (2, 3):
        write(hub, seconds=number, version=str(number), holder_identity=f"cp-{number}")
        for line in lines:
            await line.hears(f"cp-{number}")
    assert lines[0].frames == lines[1].frames
    fin_and_text, size = lines[0].frames[-1][:2]
    assert (fin_and_text, size & 128) == (0x81, 0), "a server masks nothing"
    lines[0].is_free = False
    write(hub, seconds=4, version="4", holder_identity="cp-4")
    assert b"cp-4" in (await reading[0]).encode(), "it waits its turn"
    await lines[1].hears("cp-4")
    lines[0].is_free = True
    write(hub, seconds=5, version="5", holder_identity="cp-5")
    await lines[1].hears("cp-5")
    assert "cp-5" in await told(walls[0], "cp-5"), "it had not asked for more: in order"
    assert not lines[0].told("cp-5")
    reading[1].cancel()
    for wall in walls:
        wall.leave()
