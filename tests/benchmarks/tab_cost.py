"""What an open page costs the browser at the size of the largest cluster.

python3 -m tests.benchmarks.tab_cost [--leases 130000] [--elections 2000] [--rate 13000]
    [--seconds 600] [PAGE...]

Starts leasestorm, `manage.py serve --no-demo` and Chromium (without a graphics card, so drawing is
counted too), opens each page by itself and prints, as the DevTools protocol tells it: CPU of the
tab's process and of the browser's drawing process as a share of one core, and how the heap after a
collection, the DOM and the process's memory grew. Pages: leases/ and nodes/ unless told otherwise.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from argparse import Namespace
from contextlib import ExitStack
from pathlib import Path

import msgspec
from playwright.sync_api import Browser, BrowserContext, CDPSession, Page, sync_playwright

from tests.benchmarks.storm import calm_storm, storm
from tests.support.processes import Server, free_port, get, wait_for
from tests.support.signing_in import sign_in_page

WARM_UP = 10_000  # ms until a page is drawn, its code compiled and its first frames are in
MIB = 1024 * 1024


def arguments() -> Namespace:
    parser = calm_storm(__doc__, seconds=600)
    parser.add_argument("pages", nargs="*", default=["leases/", "nodes/"])
    return parser.parse_args()


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
    page = context.new_page()
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
    context.close()


def main() -> None:
    asked = arguments()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        port = free_port()
        stack.enter_context(storm(asked, port, folder / "truth"))
        source = f"storm=url:http://127.0.0.1:{port}"
        server = Server(folder / "data", "--no-demo", "--cluster", source)
        stack.callback(server.kill)
        ready = f"{server.url}/readyz"
        wait_for(lambda: get(ready)[0] == 200, what="the list", seconds=180)
        with sync_playwright() as driver:
            browser = driver.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            context = browser.new_context()
            sign_in_page(context.new_page(), server.printed("Sign in"))
            state = str(folder / "state.json")
            context.storage_state(path=state)
            context.close()
            for path in asked.pages:
                watch(browser, server, state, path, asked.seconds)
            browser.close()


if __name__ == "__main__":
    main()
