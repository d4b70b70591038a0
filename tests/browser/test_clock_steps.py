"""The wall clock of the server is set while a page is open: no age on it jumps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import APIResponse, Page, Route, expect

from tests.serving.tasks.stepped_board import HOUR, SAID, Board
from tests.support.processes import ended, wait_for
from tests.support.signing_in import cookies

STEPS = (HOUR, -HOUR, 72 * HOUR, -72 * HOUR)  # nobody's session ends by them

# What ages by the watch is looked at fifty times a second, and kept. What the Lease says itself
# (acquireTime) is by its writer's clock.
WATCH = """() => {
  window.seen = new Set();
  const ages = "[data-fresh] .age, .says [data-since], .m-state [data-since], [data-left], "
    + "[data-ring] b, [data-ring] small";
  setInterval(() => document.querySelectorAll(ages).forEach((el) => seen.add(el.textContent)), 20);
}"""
ANOTHER_HOUR = "() => { const real = Date.now; Date.now = () => real() + 3_600_000; }"


HELD_BACK = 2  # the step during which an answer is on its way


def fetched(page: Page) -> Callable[[], None]:
    """Hold back the parts that the page fetches next. Returns what lets the page have them."""
    held: list[tuple[Route, APIResponse]] = []

    def hold(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append((route, route.fetch()))

    page.route(lambda url: url.endswith("/steady/"), hold)
    page.evaluate("import('leaseboard/regions').then(({ refetch }) => refetch('all'))")
    wait_for(lambda: held or page.wait_for_timeout(50), what="the parts as they are now")

    def answer() -> None:
        route, response = held[0]
        with page.expect_response(route.request.url):
            route.fulfill(response=response)
        wait_painted(page)

    return answer


def wait_painted(page: Page) -> None:
    """Until several ages were painted that were not seen before; each is painted every second."""
    before = page.evaluate("seen.size")
    wait_for(lambda: page.evaluate("seen.size") > before + 3, what="ages", every=0.1)


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    board = Board(tmp_path / "data", STEPS)
    with ended(board.server):
        yield board


def test_an_open_page_shows_no_odd_age_and_says_what_happened(board: Board, page: Page) -> None:
    board.api.create("steady", holder="h-0", duration=300)
    wait_for(lambda: "steady" in board.text("leases/"), what="the Lease on the page")
    page.context.add_cookies(cookies(board.browser, board.server))
    page.goto(f"{board.server.url}/c/embedded/leases/default/steady/")
    expect(page.locator("html")).to_have_attribute("data-live", "live")
    banner = page.locator("[data-history-problem]")
    page.evaluate(WATCH)
    for number, seconds in enumerate(STEPS):
        wait_painted(page)
        if number == HELD_BACK:
            late = fetched(page)
        board.step()
        way = "forward" if seconds > 0 else "back"
        expect(banner).to_contain_text(f"{SAID} {way}")
        if number == HELD_BACK:
            late()
    wait_painted(page)
    page.evaluate(ANOTHER_HOUR)  # the clock of the machine that shows the page
    wait_painted(page)
    seen = page.evaluate("[...seen]")
    assert len(seen) > 5
    odd = [text for text in seen if " h " in text or " d " in text or "overdue" in text]
    assert not odd
    assert page.locator(".state").first.inner_text() == "Held"
