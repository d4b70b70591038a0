"""A page whose right has ended says why in a sentence, shows nothing as live, and stays quiet."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from dashboard.access import rights
from tests.browser.judgements import NEXT_FRAME
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, serving
from tests.support.programs import people

LIMIT = 15_000  # ms: the server looks every two seconds
PAGES = ["", "leases/", "leases/default/story/", "timeline/", "nodes/", "history/"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("ended") / "data", "--no-demo") as one:
        LeaseApi(one.kubeconfig).create("story", holder="one")
        one.wait_synced()
        yield one


def execute(server: Server, sql: str, *values: object) -> None:
    """As another process does."""
    with closing(sqlite3.connect(server.data / "leaseboard.sqlite3")) as database:
        database.execute(sql, values)
        database.commit()


def count_requests(page: Page) -> list[str]:
    """Addresses that the page asks for from now on, sockets included."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("websocket", lambda socket: asked.append(socket.url))
    return asked


def assert_quiet(*pages: Page) -> None:
    """They ask the server for nothing any more; their longest wait would be 5 s."""
    for page in pages:
        asked = count_requests(page)
        page.clock.run_for(7000)
        page.evaluate(NEXT_FRAME)
        assert asked == []


def test_a_wall_whose_link_is_revoked_says_so(server: Server, browser: Browser) -> None:
    with browser.new_context(viewport={"width": 1920, "height": 1080}) as context:
        context.clock.install()
        page = context.new_page()
        page.goto(server.printed("Wall"))
        expect(page.locator("[data-wall-live]")).to_contain_text("Live")
        execute(server, "UPDATE leases_walllink SET revoked_at = '2026-11-20 03:12:40'")
        why = page.locator("[data-why]")
        said = "This wall link was revoked on 2026-11-20 at 03:12 UTC. Ask an admin for a new one."
        expect(why).to_have_text(said, timeout=LIMIT)
        expect(why).to_be_visible()
        expect(page.locator("[data-wall-live]")).to_be_hidden()
        assert_quiet(page)
        expect(why).to_be_visible()
        page.reload()
        expect(page.locator("main")).to_contain_text(said)


def signed_in(browser: Browser, server: Server, cookie: str) -> BrowserContext:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.clock.install()
    name, _, value = cookie.partition("=")
    context.add_cookies([{"name": name, "value": value, "url": server.url}])
    return context


def test_every_page_of_somebody_who_was_signed_out_says_so(
    server: Server, browser: Browser
) -> None:
    olga = people.make(server.data, {"olga": people.READER})["olga"]
    with signed_in(browser, server, olga["cookie"]) as context:
        pages = [context.new_page() for _ in PAGES]
        for page, path in zip(pages, PAGES, strict=True):
            page.goto(f"{server.url}/c/embedded/{path}")
            expect(page.locator("[data-live-pill]")).to_contain_text("Live")
        execute(server, "DELETE FROM django_session WHERE session_key = ?", olga["session"])
        for page in pages:
            expect(page.locator("[data-stale-text]")).to_have_text(rights.SIGNED_OUT, timeout=LIMIT)
            expect(page.locator("[data-stale-title]")).to_have_text(re.compile("No access since"))
            expect(page.locator("[data-live-pill]")).to_have_text("No access")
            expect(page.locator("html")).to_have_attribute("data-live", "refused")
        assert_quiet(*pages)
        pages[0].get_by_role("link", name="Reload").click()
        pages[0].wait_for_url("**/sign-in/**")
