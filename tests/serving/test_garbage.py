"""What a page, a wall or a socket took is free when it is gone, not when garbage is collected."""

from __future__ import annotations

import asyncio
import re
import signal
from contextlib import AsyncExitStack, suppress
from urllib.request import Request, urlopen

from tests.benchmarks.parts.walls import open_walls
from tests.support.open_page import OpenPage, session_of
from tests.support.processes import get, serving, wait_for

PROGRAM = ("-m", "tests.serving.serve_counting_garbage")
PATHS = ("", "leases/", "history/", "incidents/", "timeline/", "nodes/", "leases/?format=json")


async def test_pages_and_sockets_that_are_gone_leave_no_garbage(tmp_path):
    with serving(tmp_path / "data", program=PROGRAM) as server:
        server.wait_synced()
        session = session_of(server)

        def found() -> list[str]:
            before = len(re.findall("GARBAGE", server.text))
            server.process.send_signal(signal.SIGUSR2)

            def said() -> list[str]:
                return re.findall(r"GARBAGE: (.*)\.\n", server.text)[before:]

            return wait_for(said, what="what the collector found")[0].split()

        def all_gone() -> bool:
            metrics = get(f"{server.url}/metrics")[1]
            clients = re.findall(r"(?m)^leaseboard_live_clients\S* (\S+)", metrics)
            return not sum(map(float, clients))

        def visit() -> None:
            for path in PATHS:
                request = Request(f"{server.url}/c/embedded/{path}", headers={"Cookie": session})
                with urlopen(request, timeout=60) as answer:
                    answer.read()

        async def look() -> None:
            page = OpenPage(server.port, session, "embedded")
            with suppress(TimeoutError):
                async with asyncio.timeout(2):
                    await page.run()

        await asyncio.to_thread(found)  # of the start
        await asyncio.gather(asyncio.to_thread(visit), look(), look())
        async with AsyncExitStack() as stack:
            await open_walls(stack, server.printed("Wall"), 2)
        await asyncio.to_thread(wait_for, all_gone, what="the sockets to be gone")
        assert await asyncio.to_thread(found) == []
