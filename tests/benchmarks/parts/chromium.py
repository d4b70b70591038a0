"""Chromium, and what a page in it shows of a storm."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.benchmarks.parts.open_pages import Pages
from tests.benchmarks.parts.storm_load import CLUSTER

Seen = list[tuple[str, str, float]]  # Lease, holder, epoch seconds

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


@contextmanager
def chromium() -> Iterator[Browser]:
    """Without a graphics card, so drawing is the CPU's work too."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@contextmanager
def watched_elections(pages: Pages) -> Iterator[Page]:
    """The list of elections, which notes in `window.seen` when a row changes."""
    with chromium() as browser:
        context = browser.new_context()
        url = pages.server.url
        jar = [{"name": c.name, "value": c.value or "", "url": url} for c in pages.cookies]
        context.add_cookies(jar)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(f"{url}/c/{CLUSTER}/{WATCHED}")
        page.wait_for_timeout(3000)
        page.evaluate(OBSERVE)
        yield page


def delays(truth: Path, seen: Seen, since: float) -> list[float]:
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
