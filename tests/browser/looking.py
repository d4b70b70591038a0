"""One page looked at in light and in dark, with its menus shut and open, at five widths."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.judgements import (
    ASTRAY,
    AXE,
    BOXES,
    COLOURS,
    CROWDED,
    HINTS,
    LONG_LABELS,
    MISNAMED,
    NEXT_FRAME,
    SQUEEZED,
    STRUCTURE,
    TOO_WIDE,
)
from tests.support.processes import Server

DESK, HEIGHT = 1440, 844
WIDTHS = DESK, 724, 390  # 724 is the least that is no phone
# What does not fit, once what follows a new size has run.
FITS = f"""async () => {{
  await ({NEXT_FRAME})();
  return [...({TOO_WIDE})(), ...({CROWDED})(), ...({SQUEEZED})(), ...({HINTS})(), %s];
}}"""
OPEN = """() => document.querySelectorAll("details").forEach((one) => { one.open = true; })"""
LISTEN = """document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`CSP ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));"""


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.exists():
        text = "axe-core is not on this machine: npm ci in tests/browser/node"
        if os.environ.get("CI") == "true":
            pytest.fail(text)
        pytest.skip(text)
    return AXE.read_text()


class Watched:
    """One page, with everything it complained of and every host it asked."""

    def __init__(self, browser: Browser) -> None:
        self._context = browser.new_context(reduced_motion="reduce")
        self.page: Page = self._context.new_page()
        self.incident = ""  # the id of one
        self.complaints: list[str] = []
        self.hosts: set[str] = set()
        self.page.add_init_script(LISTEN)
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))

    def _hear(self, line) -> None:
        expected = "Failed to load resource: the server responded with a status of 4"
        if line.type in ("error", "warning") and not line.text.startswith(expected):
            self.complaints.append(line.text)

    def go(self, url: str) -> None:
        """Begin anew: a wide page in light, nothing heard of yet."""
        self.complaints.clear()
        self.hosts.clear()
        self.page.set_viewport_size({"width": DESK, "height": HEIGHT})
        self.page.emulate_media(color_scheme="light")
        self.page.goto(url)

    def close(self) -> None:
        self._context.close()


def look(watched: Watched, server: Server, path: str, axe: str) -> list[str]:
    """What is wrong with a page, in light and in dark, menus and details shut and open, at five
    widths. Without `axe`: in light, on a desk, tablets and a phone."""
    page = watched.page
    watched.go(f"{server.url}/{path}")
    pill = page.locator("[data-live-pill]")
    if pill.count():
        expect(pill).to_contain_text("Live")
    found = page.evaluate(ASTRAY)

    def judge_colours() -> None:
        for theme in ("dark", "light"):
            page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            found.extend(f"{theme}: {line}" for line in page.evaluate(COLOURS))

    if axe:
        page.evaluate(axe)
        judge_colours()
    page.evaluate(OPEN)  # which hides nothing of the structure, and may lie over colours
    if axe:
        if page.locator("details").count():
            judge_colours()
        found += page.evaluate(STRUCTURE)
        found += page.evaluate(MISNAMED)
    page.evaluate(LONG_LABELS)
    boxes = "" if path.endswith("wall/") else f"...({BOXES})(),"
    for width in (*WIDTHS, 1280, 1024) if axe else WIDTHS:
        if width != DESK:  # as it was loaded
            page.set_viewport_size({"width": width, "height": HEIGHT})
        found += [f"{width}: {one}" for one in page.evaluate(FITS % boxes)]
    return found
