"""Two hundred open pages, each with another filter: what they cost the server, and how soon a
change is seen.

python3 -m tests.benchmarks.many_pages [--leases 130000] [--elections 2000] [--rate 13000]
    [--pages 200] [--seconds 60] [--walls 500]

Starts leasestorm and `manage.py serve --no-demo`. Prints the server time of the first paint of each
page (median of 15 requests), the CPU of the serving process without and with the pages open, and
the delay from the storm's own log of a change of holder to the change of the row in a Chromium that
is open beside them (a MutationObserver's clock, one machine).

With `--walls`, opens so many walls of one link instead, without a storm, hands an election over
each second, and prints when the walls hear of it (p99) and what a message costs beside one of
`websockets.broadcast`; exits 1 where that is more than 3 times as much.
"""

from __future__ import annotations

import asyncio
import re
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

from websockets.exceptions import ConnectionClosed

from tests.benchmarks.parts.chromium import delays, watched_elections
from tests.benchmarks.parts.command import main
from tests.benchmarks.parts.figures import Usage, spread
from tests.benchmarks.parts.open_pages import Pages
from tests.benchmarks.parts.storm_load import calm_options, storm_and_server
from tests.benchmarks.parts.walls import measure_walls

WARM_UP = 15.0  # seconds after the list until cadences are learned and nothing else is begun


def options(parser: ArgumentParser) -> None:
    calm_options(parser, seconds=60)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--walls", type=int, default=0)


def filters(number: int, namespaces: list[str]) -> Iterator[str]:
    """So many different lists."""
    for index in range(number):
        space = namespaces[index % len(namespaces)]
        yield (
            f"?kind=heartbeat&page={index + 1}",
            f"?namespace={space}&page={index // len(namespaces) + 1}",
            f"?kind=election&sort=name&page={index % 40 + 1}",
            f"?q={index:03}",
            f"?phase=held&sort=-name&page={index + 1}",
        )[index % 5]


class Filtered(Pages):
    """Pages as the browser opens them, each with its own filter."""

    opened = 0

    async def keep_filtered(self, query: str) -> None:
        with suppress(OSError, ConnectionClosed):
            async with self.socket(f"leases/{query}", query=query) as socket:
                self.opened += 1
                async for _ in socket:
                    self.frames += 1


async def open_for(pages: Filtered, queries: list[str], seconds: float) -> tuple[float, float]:
    """CPU percent and frames a second, once all of them are open."""
    tasks, began = [], time.monotonic()
    for query in queries:
        tasks.append(asyncio.create_task(pages.keep_filtered(query)))
        await asyncio.sleep(0.05)
    while pages.opened < len(queries):
        await asyncio.sleep(0.1)
    print(f"{len(queries)} pages opened in {time.monotonic() - began:.0f} s")
    await asyncio.sleep(5)
    usage, frames, began = Usage(pages.server.process.pid), pages.frames, time.monotonic()
    await asyncio.sleep(seconds)
    found = usage.share, (pages.frames - frames) / (time.monotonic() - began)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return found


def measure(asked: Namespace, folder: Path) -> int | None:
    if asked.walls:
        return measure_walls(folder, asked.walls, asked.seconds)
    with storm_and_server(asked, folder) as (server, truth):
        time.sleep(WARM_UP)
        pages = Filtered(server)
        pages.print_first_paints()
        usage = Usage(server.process.pid)
        time.sleep(min(20.0, asked.seconds))
        alone = usage.share
        print(f"CPU without pages: {alone:.1f} % of one core")
        spaces = re.findall(r'<option value="([^"]+)"', pages.get("leases/"))
        queries = list(filters(asked.pages, spaces))
        results: list[tuple[float, float]] = []

        def run() -> None:
            results.append(asyncio.run(open_for(pages, queries, asked.seconds)))

        with watched_elections(pages) as page:
            thread = Thread(target=run)
            since = time.time()  # while they are opened, too
            thread.start()
            while thread.is_alive():
                page.wait_for_timeout(500)
            seen = page.evaluate("window.seen")
        share, frames = results[0]
        print(f"CPU with {asked.pages} pages: {share:.1f} % of one core, {frames:.0f} frames/s")
        print(f"the pages cost {share - alone:.1f} % of one core")
        late = delays(truth, seen, since)
        print(f"API event to DOM: {spread(late)} ({len(late)} seen)")
    return None


if __name__ == "__main__":
    main(__doc__, measure, options)
