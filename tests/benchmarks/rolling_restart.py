"""Two replicas rolled one after the other: `python -m tests.benchmarks.rolling_restart`.

Both share one PostgreSQL behind a proxy of this program. Leases are created all the time while
pages are open. Prints how long each restart took and how many changes the pages miss. Exits 1 if
any does.
"""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser, Namespace
from pathlib import Path

from tests.benchmarks.parts.command import main
from tests.benchmarks.parts.restarts import restart
from tests.support.balancer import balancing
from tests.support.open_page import OpenPage, session_of
from tests.support.postgres import running
from tests.support.replicas import Replicas, two_replicas

EVERY = 1.0  # seconds between two changes; the feed of a page shows 12


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--pages", type=int, default=50, help="pages that are open (50)")
    parser.add_argument("--drain", type=int, default=2, help="LEASEBOARD_DRAIN_SECONDS (2)")


def measure(asked: Namespace, folder: Path) -> int:
    drain = {"LEASEBOARD_DRAIN_SECONDS": str(asked.drain)}
    with running() as postgres, two_replicas(folder, postgres.database(), **drain) as replicas:
        return asyncio.run(_roll(replicas, asked.pages))


async def _roll(replicas: Replicas, number: int) -> int:
    session = session_of(replicas.one)
    made: list[str] = []
    async with balancing([replicas.one.port, replicas.other.port]) as balancer:
        pages = [OpenPage(balancer.port, session) for _ in range(number)]
        following = [asyncio.create_task(page.run()) for page in pages]
        changing = asyncio.create_task(_change(replicas, made))
        while not all(page.lines for page in pages):
            await asyncio.sleep(0.1)
        for name in ("one", "other"):
            await restart(replicas, name)
            while len(balancer.ready) < 2:
                await asyncio.sleep(0.1)
        changing.cancel()
        await asyncio.sleep(10.0)
        missed = sum(len({*made} - page.seen) for page in pages)
        codes = [code for page in pages for code in page.codes]
        for task in following:
            task.cancel()
        await asyncio.gather(changing, *following, return_exceptions=True)
    fetches = sum(page.fetches for page in pages)
    print(f"{number} pages, {len(made)} changes: {missed} missed; {len(codes)} sockets closed, "
          f"with {sorted({*codes})}; {fetches} fetches")  # fmt: skip
    return 1 if missed else 0


async def _change(replicas: Replicas, made: list[str]) -> None:
    while True:
        name = f"roll-{len(made)}"
        await asyncio.to_thread(replicas.api.create, name, holder="x")
        made.append(f"default/{name}")
        await asyncio.sleep(EVERY)


if __name__ == "__main__":
    main(__doc__, measure, options)
