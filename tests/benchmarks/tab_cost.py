"""What an open page costs the browser at the size of the largest cluster.

python3 -m tests.benchmarks.tab_cost [--leases 130000] [--elections 2000] [--rate 13000]
    [--seconds 600] [PAGE...]

Starts leasestorm, `manage.py serve --no-demo` and Chromium (without a graphics card, so drawing is
counted too), opens each page by itself and prints, as the DevTools protocol reports it: CPU of the
tab's process and of the browser's drawing process as a share of one core, and how the heap after a
collection, the DOM and the process's memory grew; then what the page wrote into the console. Pages:
leases/ and nodes/ by default.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

import msgspec
from playwright.sync_api import Browser, BrowserContext, CDPSession, Page

from tests.benchmarks.parts.chromium import chromium
from tests.benchmarks.parts.command import main
from tests.benchmarks.parts.figures import MIB
from tests.benchmarks.parts.storm_load import calm_options, storm_and_server
from tests.support.processes import Server
from tests.support.signing_in import sign_in_page

WARM_UP = 10_000  # ms until a page is drawn, its code compiled and its first frames are in


def options(parser: ArgumentParser) -> None:
    calm_options(parser, seconds=600)
    parser.add_argument("pages", nargs="*", default=["leases/", "nodes/"])


class Reading(msgspec.Struct, frozen=True):
    """The tab at one moment: CPU seconds of its process and of drawing; bytes; nodes."""

    at: float
    tab: float
    drawing: float
    heap: float
    nodes: int
    memory: float


class Tab:
    """One page and what the DevTools protocol says of it."""

    def __init__(self, browser: Browser, context: BrowserContext, page: Page) -> None:
        self._browser: CDPSession = browser.new_browser_cdp_session()
        self._page: CDPSession = context.new_cdp_session(page)

    def read(self) -> Reading:
        self._page.send("HeapProfiler.collectGarbage")
        heap = self._page.send("Runtime.getHeapUsage")["usedSize"]
        nodes = self._page.send("Memory.getDOMCounters")["nodes"]
        processes = self._browser.send("SystemInfo.getProcessInfo")["processInfo"]
        busiest = max(
            (one for one in processes if one["type"] == "renderer"), key=lambda one: one["cpuTime"]
        )
        drawing = sum(one["cpuTime"] for one in processes if one["type"] == "GPU")
        text = Path(f"/proc/{busiest['id']}/smaps_rollup").read_text()
        pss = next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
        return Reading(time.monotonic(), busiest["cpuTime"], drawing, heap, nodes, pss * 1024.0)


def watch(browser: Browser, server: Server, state: str, path: str, seconds: float) -> None:
    context = browser.new_context(storage_state=state, viewport={"width": 1440, "height": 900})
    page, said = context.new_page(), list[str]()
    page.on("console", lambda line: said.append(line.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(f"{server.url}/c/storm/{path}")
    page.wait_for_timeout(WARM_UP)
    tab = Tab(browser, context, page)
    before = tab.read()
    page.wait_for_timeout(seconds * 1000)
    after = tab.read()
    passed = after.at - before.at
    cpu, drawing = (after.tab - before.tab) / passed, (after.drawing - before.drawing) / passed
    print(
        f"{path}: tab {cpu:.1%} of a core, drawing {drawing:.1%}, over {passed:.0f} s; "
        f"heap {before.heap / MIB:.1f} to {after.heap / MIB:.1f} MiB, "
        f"DOM {before.nodes} to {after.nodes} nodes, "
        f"process {before.memory / MIB:.0f} to {after.memory / MIB:.0f} MiB",
        flush=True,
    )
    print(f"console: {said or 'clean'}", flush=True)
    context.close()


def measure(asked: Namespace, folder: Path) -> None:
    with storm_and_server(asked, folder) as (server, _), chromium() as browser:
        context = browser.new_context()
        sign_in_page(context.new_page(), server.printed("Sign in"))
        state = str(folder / "state.json")
        context.storage_state(path=state)
        context.close()
        for path in asked.pages:
            watch(browser, server, state, path, asked.seconds)


if __name__ == "__main__":
    main(__doc__, measure, options)
