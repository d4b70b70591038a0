"""An election flaps: every page shows it first, live, and leads to its changes."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.boards.conftest import names, visit
from tests.browser.visits import reload_until
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, wait_for

SIZES = [(390, 844), (1024, 768), (1440, 900), (1920, 1080)]
# At once, for an event may draw the row anew at any time.
INSIDE = """(state) => state.getBoundingClientRect().right
  <= state.parentElement.getBoundingClientRect().right + 1"""
TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


def flap(api: LeaseApi, name: str, times: int = 6) -> None:
    api.create(name, holder="flap-0")
    for number in range(1, times + 1):
        api.take(name, holder=f"flap-{number}", transitions=number)


@pytest.fixture(scope="module")
def flapping(server: Server, api: LeaseApi) -> str:
    """The name of an election that changed hands six times within a minute."""
    flap(api, "zz-flapping")
    return "zz-flapping"


@pytest.fixture(scope="module")
def late(server: Server, api: LeaseApi) -> str:
    """The name of an election that has expired."""
    api.create("aa-expired", holder="pod-9", duration=1)
    return "aa-expired"


def test_a_row_says_so_as_it_happens_and_stays_in_its_place(
    page: Page, server: Server, api: LeaseApi
) -> None:
    api.create("live-flap", holder="flap-0")
    visit(page, server, "leases/?q=live-flap")
    row = page.locator('tr[data-key="default/live-flap"]')
    reload_until(page, row.count, what="the row")  # the watch may be behind
    expect(row.locator(".c-state")).to_contain_text("Held")
    for number in range(1, 6):
        api.take("live-flap", holder=f"flap-{number}", transitions=number)
    expect(row.locator(".c-state")).to_contain_text("Flapping")
    expect(row.locator(".c-state")).to_contain_text(re.compile(r"5 since \d\d:\d\d"))
    title = row.locator(".c-state .flap").get_attribute("title") or ""
    assert re.match(r"5 changes of holder since \d\d:\d\d:\d\d, 5 holders", title)
    api.delete("live-flap")


def test_its_tick_box_stands_on_its_line(page: Page, server: Server, flapping: str) -> None:
    visit(page, server, "leases/?flapping=true")
    row = page.locator(f'tr[data-key="default/{flapping}"]')
    expect(row.locator(".c-state")).to_contain_text("Flapping")
    script = """(row) => [...row.querySelectorAll(".choose, .c-state .state")].map((one) => {
      const { top, bottom } = one.getBoundingClientRect();
      return (top + bottom) / 2;
    })"""
    tick, state = row.evaluate(script)
    assert abs(tick - state) < 2


def test_the_chip_narrows_the_list_by_keyboard_and_counts_live(
    page: Page, server: Server, flapping: str, late: str
) -> None:
    visit(page, server, "leases/")
    chip = page.locator(".chip.is-flapping")
    expect(chip.locator("[data-count]")).not_to_have_text("0")
    chip.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"\?flapping=true$"))
    expect(page.locator(f'tr[data-key="default/{flapping}"]')).to_be_visible()
    expect(page.locator('tr[data-key="default/web-1"]')).to_have_count(0)
    expect(page.locator(".chip.is-flapping")).to_have_attribute("aria-current", "true")
    page.go_back()
    expect(page.locator('tr[data-key="default/web-1"]')).to_be_visible()


def test_it_stands_below_the_expired_and_above_the_rest_at_every_size(
    page: Page, server: Server, flapping: str, late: str
) -> None:
    visit(page, server, "leases/?kind=election")
    # A page that was drawn before the expiry keeps the places of its rows.
    reload_until(page, lambda: names(page)[0] == late, what="the expired one on top")
    state = page.locator(f'tr[data-key="default/{flapping}"] .c-state .flap')
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        assert names(page)[:2] == [late, flapping]
        expect(state).to_be_visible()
        assert state.evaluate(INSIDE), f"wider than its cell at {width}"
        assert not page.evaluate(TOO_WIDE), f"wider than a screen of {width}"


def test_the_sort_by_changes_counts_in_the_range_of_the_url(
    page: Page, server: Server, flapping: str
) -> None:
    visit(page, server, "leases/?sort=changes")
    page.get_by_role("group", name="Changes in the last").get_by_text("30 min").click()
    expect(page).to_have_url(re.compile(r"\?sort=changes&range=30m$"))
    expect(page.locator("tbody tr .name").first).to_have_text(flapping)


def test_all_problems_has_it(page: Page, server: Server, flapping: str, late: str) -> None:
    visit(page, server, "")
    line = page.locator("#attention li").filter(has_text=flapping)
    expect(line).to_contain_text("Flapping.")
    expect(line).to_contain_text("6 changes of holder since ")
    page.get_by_role("link", name="All problems").click()
    expect(page.locator(f'tr[data-key="default/{flapping}"]')).to_be_visible()
    expect(page.locator(f'tr[data-key="default/{late}"]')).to_be_visible()
    expect(page.locator('tr[data-key="default/web-1"]')).to_have_count(0)


def test_its_page_says_so_and_leads_to_its_changes(
    page: Page, server: Server, flapping: str
) -> None:
    visit(page, server, f"leases/default/{flapping}/")
    note = page.locator(".note-line.flap")
    expect(note).to_contain_text("Flapping: 6 changes of holder since ")
    link = note.get_by_role("link", name="Changes of the last hour")
    link.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("history/"))
    expect(page.locator("main")).to_contain_text("flap-6")


def test_the_wall_has_it_first_with_its_number(page: Page, server: Server, flapping: str) -> None:
    page.goto(f"{server.url}/c/embedded/wall/?q={flapping}")
    expect(page.locator("[data-wall-live]")).to_contain_text("Live")
    tile = page.locator(f'[data-tile="default/{flapping}"]')
    expect(tile.locator(".flap")).to_have_text(re.compile(r"6 changes\s*since \d\d:\d\d:\d\d"))
    for width, height in ((1920, 1080), (1080, 1920)):
        page.set_viewport_size({"width": width, "height": height})
        expect(page.locator('[data-count="flapping"]')).to_be_visible()
        wait_for(lambda width=width: inside(tile, width), what=f"all at {width}")


def inside(tile: Locator, width: int) -> bool:
    box = tile.locator(".flap").bounding_box()
    return box is not None and box["x"] + box["width"] <= width


def test_the_timeline_sorts_by_changes(page: Page, server: Server, flapping: str) -> None:
    visit(page, server, "timeline/?range=1h")
    page.get_by_role("group", name="Order").get_by_text("Most changes").click()
    expect(page).to_have_url(re.compile("sort=changes"))
    expect(page.locator("[data-lane] .name").first).to_have_text(flapping)
    dot = page.locator(f'[id="dot-default/{flapping}"]')
    expect(dot).to_have_attribute("title", "Now: flapping")
