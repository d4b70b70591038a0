"""Pages that are open beside a storm: what a browser requests and answers, without drawing."""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http.cookiejar import CookieJar
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.benchmarks.parts.storm_load import CLUSTER
from tests.support.processes import Server
from tests.support.signing_in import press_button

FIRST_PAINTS = (
    "", "leases/", "leases/?sort=-renewed", "leases/?q=pool-7", "leases/?labels=app",
    "leases/?page=2000", "nodes/", "holders/", "history/", "timeline/", "wall/",
)  # fmt: skip
TRIES = 15


class Pages:
    """Pages of one signed-in browser."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.cookies = CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))
        self.frames = 0
        self.page_times: list[float] = []
        press_button(self.opener, server.printed("Sign in"))

    def get(self, path: str) -> str:
        began = time.perf_counter()
        with self.opener.open(f"{self.server.url}/c/{CLUSTER}/{path}", timeout=30) as answer:
            text: str = answer.read().decode()
        self.page_times.append((time.perf_counter() - began) * 1000)
        return text

    @asynccontextmanager
    async def socket(self, path: str, **asked: Any) -> AsyncIterator[ClientConnection]:
        """The socket of this page, which has said which rows it shows."""
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.cookies)
        url = f"{self.server.url}/c/{CLUSTER}/live/page/".replace("http", "ws", 1)
        headers = {"Cookie": cookies, "Origin": self.server.url}
        text = await asyncio.to_thread(self.get, path)
        shown = re.findall(r'data-key="([^"]+)"', text)
        async with connect(url, additional_headers=headers, compression=None) as socket:
            await socket.send(json.dumps({"show": {"row": shown}, **asked}))
            yield socket

    async def keep_open(self, path: str) -> None:
        """One page, opened again whenever its socket closes."""
        while True:
            with suppress(OSError, ConnectionClosed):
                async with self.socket(path, feed=None) as socket:
                    async for _ in socket:
                        self.frames += 1
            await asyncio.sleep(1)

    def print_first_paints(self) -> None:
        """The server time of the first paint of each page, while the storm goes on."""
        shown = re.findall(r'data-key="([^"]+)"', self.get("leases/?kind=election"))
        for path in (*FIRST_PAINTS, f"leases/{shown[0]}/"):
            self.get(path)
            self.page_times.clear()
            for _ in range(TRIES):
                self.get(path)
            median, worst = statistics.median(self.page_times), max(self.page_times)
            print(f"{path or 'overview':32} median {median:4.0f} ms, worst {worst:.0f} ms")
