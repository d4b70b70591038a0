"""An overview without a browser: fetches its feed, follows its socket, resumes as the page does."""

from __future__ import annotations

import asyncio
import json
import re
import time
import urllib.request
from contextlib import suppress
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from tests.support.processes import Server
from tests.support.signing_in import cookies, signed_in

SPACING = 1.0  # seconds between two fetches
RECONNECT = 0.2
LINE = re.compile(r'data-id="(\w+)" [^>]*data-of="([^"]+)"')


def session_of(server: Server) -> str:
    """The cookie of the session of a browser that has used the printed link."""
    kept = cookies(signed_in(server), server)
    return next(
        f"{one['name']}={one['value']}" for one in kept if one["name"].startswith("sessionid_")
    )


class OpenPage:
    """`lines` are the Leases in the feed as drawn now; `codes` say how sockets were closed."""

    seen: set[str]  # every Lease that was in the feed at any time

    def __init__(self, port: int, session: str, cluster: str = "c") -> None:
        self._base = f"127.0.0.1:{port}/c/{cluster}/"
        self._cookie = {"Cookie": session}
        self._number = 0
        self._drawn = ""
        self._ids: set[str] = set()
        self._answered = False
        self._fetching: asyncio.Task[None] | None = None
        self._fetched_at = 0.0
        self._outdated = False
        self._socket: Any = None
        self.lines: list[str] = []
        self.seen = set()
        self.codes: list[int] = []
        self.fetches = 0

    async def run(self) -> None:
        """Follow until cancelled."""
        await self._fetch()
        try:
            while True:
                with suppress(OSError, WebSocketException):
                    await self._follow()
                await asyncio.sleep(RECONNECT)
        finally:
            if self._fetching is not None:
                self._fetching.cancel()
                await asyncio.gather(self._fetching, return_exceptions=True)

    async def _follow(self) -> None:
        url = f"ws://{self._base}live/page/"
        async with connect(url, additional_headers=self._cookie, compression=None) as socket:
            self._socket = socket
            await self._show()
            try:
                while True:
                    self._apply(json.loads(await socket.recv()))
            except ConnectionClosed as error:
                self.codes.append(error.rcvd.code if error.rcvd else 1006)
            finally:
                self._socket = None

    async def _show(self) -> None:
        if self._socket is not None:
            self._answered = False
            with suppress(WebSocketException):
                await self._socket.send(
                    json.dumps({"show": {}, "feed": self._number, "drawn": self._drawn})
                )

    def _apply(self, frame: dict[str, Any]) -> None:
        """As static/js/live.js and static/js/feed.js."""
        fresh = [line for html in frame.get("feed", ()) for line in LINE.findall(html)]
        self._place([line for line in fresh if line[0] not in self._ids])
        if "feed" in frame or "refetch" in frame:
            self._number = frame["seq"]
        self._answered = self._answered or frame.get("shown", False)
        if self._answered:
            self._drawn = frame["drawn"]
        if "refetch" in frame:
            self._outdated = True
            if self._fetching is None or self._fetching.done():
                self._fetching = asyncio.create_task(self._fetch_again())

    async def _fetch_again(self) -> None:
        while self._outdated:
            await asyncio.sleep(max(0.05, self._fetched_at + SPACING - time.monotonic()))
            self._outdated = False
            await self._fetch()
            await self._show()

    async def _fetch(self) -> None:
        while True:
            try:
                text = await asyncio.to_thread(self._get)
                break
            except OSError:
                await asyncio.sleep(RECONNECT)
        self._fetched_at = time.monotonic()
        self.fetches += 1
        found = re.search(r'<ul[^>]* id="feed"[^>]* data-feed="(\d+)".*?</ul>', text, re.DOTALL)
        assert found, text
        drawn = re.search(r'data-drawn="([^"]+)"', text)
        assert drawn, text
        self._number, self._drawn = int(found[1]), drawn[1]
        self._ids, self.lines = set(), []
        self._place(LINE.findall(found[0]))

    def _place(self, fresh: list[tuple[str, str]]) -> None:
        self._ids.update(identity for identity, _ in fresh)
        self.lines += [lease for _, lease in fresh]
        self.seen.update(self.lines)

    def _get(self) -> str:
        request = urllib.request.Request(f"http://{self._base}", headers=self._cookie)
        with urllib.request.urlopen(request, timeout=60) as answer:
            text: str = answer.read().decode()
            return text
