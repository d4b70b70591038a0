"""The history page: new changes, filters, pages."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

from playwright.sync_api import Page, expect

from tests.browser.timeline.conftest import asked, back
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, wait_for


def history_of(server: Server, query: str = "") -> str:
    return f"{server.url}/c/embedded/history/?{query}"


def test_new_changes_come_on_top_of_the_history(server: Server, page: Page) -> None:
    api = LeaseApi(server.kubeconfig)
    page.goto(history_of(server))
    first = page.locator("tbody tr").first
    expect(first).to_be_visible()
    loaded_at = page.evaluate("performance.timeOrigin")
    api.create("newcomer", holder="cp-9")
    expect(first).to_contain_text("newcomer")
    expect(page.locator("tbody tr")).to_have_count(50)
    assert page.evaluate("performance.timeOrigin") == loaded_at


def test_a_filtered_history_offers_what_is_new_until_it_is_shown(
    server: Server, page: Page
) -> None:
    """Also where a click comes before the change is written."""
    api = LeaseApi(server.kubeconfig)
    page.goto(history_of(server, "lease=second-newcomer"))
    board, bar = page.locator("#board"), page.locator("[data-news]")
    expect(board).to_contain_text("No change matches these filters")
    file = server.data / "leaseboard.sqlite3"
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")  # nobody else writes meanwhile
        api.create("second-newcomer", holder="cp-9")
        expect(bar).to_contain_text("new change")
        board.evaluate("(board) => board.dataset.before = 1")
        bar.click()
        expect(page.locator("#board:not([data-before])")).to_contain_text("No change matches")
        expect(bar).to_contain_text("new change")
        database.execute("ROLLBACK")
    url = history_of(server, "lease=second-newcomer&format=json")
    wait_for(lambda: page.request.get(url).json()["items"], what="the change in history")
    bar.click()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(bar).to_be_hidden()
    assert asked(page, "lease") == "second-newcomer"


def test_the_history_pages_back_filters_and_remembers_its_way(server: Server, page: Page) -> None:
    page.goto(history_of(server))
    page.get_by_role("link", name="Older", exact=True).click()
    page.wait_for_url(re.compile("before="))
    back(page)
    page.wait_for_url(history_of(server))
    page.locator(".choice > summary").first.click()
    page.get_by_role("checkbox", name="Expired").check()
    page.wait_for_url(re.compile("change=expired"))
    expect(page.locator("#change-label")).to_have_text("Expired")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="Sentences").click()
    expect(page.locator(".feed li")).to_have_text(
        re.compile("handed-over expired; last held by cp-1")
    )
    assert (asked(page, "change"), asked(page, "view")) == ("expired", "sentences")


def test_parts_of_names_are_found_while_they_are_typed(server: Server, page: Page) -> None:
    page.goto(history_of(server, "lease=handed-over"))
    page.get_by_label("Lease or holder contains").press_sequentially("CP-1")
    page.wait_for_url(re.compile("q=CP-1"))
    assert asked(page, "lease") == "handed-over"
    expect(page.locator("tbody tr").first).to_contain_text("handed-over")
    page.get_by_role("link", name="lease is handed-over").click()
    page.wait_for_url(lambda url: "lease=" not in url)
    expect(page.locator("#exact .chip")).to_have_count(0)
