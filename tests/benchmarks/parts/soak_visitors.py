"""Pages and walls that come and go: what their browsers request and hear, without drawing."""

from __future__ import annotations

import asyncio
import random
import re
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from urllib.parse import urlsplit

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from tests.benchmarks.parts.storm_load import CLUSTER
from tests.support.open_page import OpenPage

PATHS = (
    "", "leases/", "leases/?kind=election", "leases/?q=pool", "nodes/", "holders/", "history/",
    "incidents/", "timeline/", "reliability/", "history/?format=json",
)  # fmt: skip
FROM_MEMORY = re.compile(r"/c/[^/]+/(?:leases/|wall/)?(?:\?|$)")  # no database is needed
TAGS = re.compile(r"(?s)<(style|svg|nav).*?</\1>|<[^>]*>|\s+")
STAY = (10.0, 60.0)  # seconds for which a visitor stays


class Visitors:
    """So many of each; one that leaves is followed by another."""

    def __init__(self, port: int, session: str, wall: str) -> None:
        self._port = port
        self._session = session
        self._wall = f"http://127.0.0.1:{port}{_path_of(wall)}"
        self._random = random.Random(2)  # noqa: S311 - what they look at is no secret
        self.answers: Counter[int] = Counter()  # 0: the connection was cut
        self.refused: Counter[str] = Counter()  # what should need no database, by status and page
        self.codes: Counter[int] = Counter()  # with which sockets were closed
        self.visits: Counter[str] = Counter()
        self.frames = 0

    async def stay(self, pages: int, walls: int) -> None:
        """Visit until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(pages):
                group.create_task(self._again("pages", self._page))
            for _ in range(walls):
                group.create_task(self._again("walls", self._on_wall))

    async def _again(self, name: str, visit: Callable[[], Awaitable[None]]) -> None:
        while True:
            self.visits[name] += 1
            with suppress(TimeoutError):
                async with asyncio.timeout(self._random.uniform(*STAY)):
                    await visit()

    async def _page(self) -> None:
        base = f"http://127.0.0.1:{self._port}/c/{CLUSTER}/"
        await self._get(base + self._random.choice(PATHS))
        page = OpenPage(self._port, self._session, CLUSTER)
        try:
            await page.run()
        finally:
            self.codes.update(page.codes)
            self.answers[200] += page.fetches

    async def _on_wall(self) -> None:
        text = await self._get(self._wall)
        live = re.search(r'data-live-url="([^"]+)"', text)
        if live is None:
            await asyncio.sleep(1.0)
            return
        url = f"ws://127.0.0.1:{self._port}{live[1]}"
        with suppress(OSError, WebSocketException):
            async with connect(url, compression=None) as socket:
                await socket.send('{"show": {"tile": []}, "feed": 0}')
                async for _ in socket:
                    self.frames += 1
                self.codes[socket.close_code or 1006] += 1

    async def _get(self, url: str) -> str:
        def ask() -> tuple[int, str]:
            request = urllib.request.Request(url, headers={"Cookie": self._session})
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, error.read().decode()
            except OSError:
                return 0, ""

        status, text = await asyncio.to_thread(ask)
        self.answers[status] += 1
        if status == 200:
            return text
        if status and FROM_MEMORY.search(url):
            what = f"{status} {urlsplit(url).path}"
            self.refused[what] += 1
            print(what, TAGS.sub(" ", text)[-600:], flush=True)  # beside what the soak says it does
        return ""

    def failed(self) -> bool:
        """Print what the visitors met; whether any of it is a fault."""
        print(f"visits {dict(self.visits)}; answers by status (0: cut) {dict(self.answers)}; "
              f"sockets closed with {dict(self.codes)}; {self.frames} frames of walls; "
              f"pages from memory that failed: {dict(self.refused) or 0}")  # fmt: skip
        return bool(self.answers[500] or self.refused) or not self.frames


def _path_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"
