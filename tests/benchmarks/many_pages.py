"""Two hundred open pages, each with another filter: what they cost the server, and how soon a
change is seen.

python3 -m tests.benchmarks.many_pages [--leases 130000] [--elections 2000] [--rate 13000]
    [--pages 200] [--seconds 60]

Starts leasestorm and `manage.py serve --no-demo`. Prints the server time of the first paint of each
page (median of 15 requests), the CPU of the serving process without and with the pages open, and
the delay from the storm's own log of a change of holder to the change of the row in a Chromium that
is open beside them (a MutationObserver's clock, one machine).
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import statistics
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread

from playwright.sync_api import Page, sync_playwright
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.benchmarks.storm import Pages, Usage, calm_storm, print_page_times, storm
from tests.support.processes import Server, free_port, get, wait_for

SETTLE = 15.0  # seconds after the list until cadences are learned and nothing else is begun
WATCHED = "leases/?kind=election&limit=200"
OBSERVE = """() => {
  window.seen = [];
  const look = (records) => {
    const now = Date.now() / 1000;
    for (const { addedNodes } of records)
      for (const row of addedNodes)
        if (row.dataset?.key) window.seen.push([row.dataset.key,
          row.querySelector(".holder")?.title ?? "", now]);
  };
  new MutationObserver(look).observe(document.body, {subtree: true, childList: true});
}"""


def arguments() -> Namespace:
    parser = calm_storm(__doc__, seconds=60)
    parser.add_argument("--pages", type=int, default=200)
    return parser.parse_args()


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
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.cookies)
        url = f"{self.server.url}/c/storm/live/page/".replace("http", "ws", 1)
        headers = {"Cookie": cookies, "Origin": self.server.url}
        text = await asyncio.to_thread(self.get, f"leases/{query}")
        show = {"show": {"row": re.findall(r'data-key="([^"]+)"', text)}, "query": query}
        with suppress(OSError, ConnectionClosed):
            async with connect(url, additional_headers=headers, compression=None) as socket:
                await socket.send(json.dumps(show))
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


@contextmanager
def watched_in_chromium(pages: Pages) -> Iterator[Page]:
    """The elections in a browser that notes in `window.seen` when a row changes."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        context = browser.new_context()
        url = pages.server.url
        jar = [{"name": c.name, "value": c.value or "", "url": url} for c in pages.cookies]
        context.add_cookies(jar)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(f"{url}/c/storm/{WATCHED}")
        page.wait_for_timeout(3000)
        page.evaluate(OBSERVE)
        yield page
        browser.close()


def delays(truth: Path, seen: list[tuple[str, str, float]], since: float) -> list[float]:
    """Milliseconds from each write of a new holder to the row that shows it."""
    shown: dict[tuple[str, str], float] = {}
    for key, holder, at in seen:
        shown.setdefault((key, holder), at)
    found = []
    for line in truth.read_text().splitlines():
        change = json.loads(line)
        place = (change.get("key", ""), change.get("to") or "")
        if change["kind"] in ("transition", "acquired") and place in shown and change["t"] > since:
            found.append((shown[place] - change["t"]) * 1000)
    return found


def measure(server: Server, asked: Namespace, truth: Path) -> None:
    time.sleep(SETTLE)
    pages = Filtered(server)
    pages.sign_in()
    print_page_times(pages)
    usage = Usage(server.process.pid)
    time.sleep(min(20.0, asked.seconds))
    alone = usage.share
    print(f"CPU without pages: {alone:.1f} % of one core")
    spaces = re.findall(r'<option value="([^"]+)"', pages.get("leases/"))
    queries = list(filters(asked.pages, spaces))
    results: list[tuple[float, float]] = []

    def run() -> None:
        results.append(asyncio.run(open_for(pages, queries, asked.seconds)))

    with watched_in_chromium(pages) as page:
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
    if len(late) > 1:
        cuts = statistics.quantiles(late, n=20)
        print(
            f"API event to DOM: median {cuts[9]:.0f} ms, p95 {cuts[18]:.0f} ms ({len(late)} seen)"
        )


def main() -> None:
    asked = arguments()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        port, truth = free_port(), folder / "truth"
        stack.enter_context(storm(asked, port, truth))
        source = f"storm=url:http://127.0.0.1:{port}"
        server = Server(folder / "data", "--no-demo", "--cluster", source)
        stack.callback(server.kill)
        ready = f"{server.url}/readyz"
        wait_for(lambda: get(ready)[0] == 200, what="the list", seconds=180)
        measure(server, asked, truth)


if __name__ == "__main__":
    main()
