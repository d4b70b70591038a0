"""`?` lists the keys of the page that is open, and only those that work there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.visits import Visits
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, serving

EVERYWHERE = ["/", "Esc", "?"]
ROWS = ["j", "k", "Enter"]
ARROWS = ["←", "→"]
PLAYHEAD = [*ARROWS, "Page Up", "Page Down", "Home", "End"]
BRUSH = [*ARROWS, "Shift", *ARROWS, "Page Up", "Page Down"]
GRID = [*ARROWS, "↑", "↓", "Enter", "+", "-"]
KEYS = {
    "": [*EVERYWHERE, *ROWS],
    "leases/": [*EVERYWHERE, *ROWS],
    "leases/?q=nothing-is-called-so": EVERYWHERE,
    "leases/default/one/": EVERYWHERE,
    "timeline/?range=6h": [*EVERYWHERE, *PLAYHEAD, *BRUSH],
    "holders/": EVERYWHERE,
    "nodes/": [*EVERYWHERE, *GRID],
    "history/": [*EVERYWHERE, *ROWS],
    "leases/default/one/edit/": EVERYWHERE,
}
OWN = {"leases/default/one/": {"e", "s"}, "timeline/?range=6h": {",", "-"}}  # of their controls
SIZES = [(390, 844), (1024, 768), (1440, 900), (1920, 1080)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("shortcuts") / "data", "--no-demo") as one:
        one.wait_synced()
        api = LeaseApi(one.kubeconfig)
        api.create("one", holder="cp-1")
        api.create("node-1", holder="node-1")
        yield one


def dialog(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Keyboard shortcuts")


def pressing(page: Page) -> list[str]:
    """The keys that press a control of the page."""
    controls = page.locator("main [data-key]:not([data-href])")
    return sorted(set(controls.evaluate_all("all => all.map((one) => one.dataset.key)")))


@pytest.mark.parametrize("path", list(KEYS))
def test_a_page_lists_the_keys_that_it_has(visits: Visits, path: str) -> None:
    page = visits.open_live(f"/c/embedded/{path}")
    page.keyboard.press("?")
    expect(dialog(page)).to_be_visible()
    assert OWN.get(path, set()) <= set(pressing(page))
    shown = dialog(page).locator("kbd:visible").all_inner_texts()
    assert sorted(shown) == sorted(KEYS[path] + pressing(page))
    words = dialog(page).locator("dd:visible").all_inner_texts()
    assert all(word.strip() for word in words)
    page.keyboard.press("Escape")
    expect(dialog(page)).to_be_hidden()


def test_keys_do_nothing_else_while_the_dialog_is_open(visits: Visits) -> None:
    page = visits.open_live("/c/embedded/leases/")
    page.keyboard.press("?")
    for key in ("j", "/", "?"):
        page.keyboard.press(key)
    expect(dialog(page)).to_be_visible()
    assert page.evaluate("document.activeElement.closest('dialog') !== null")


def test_a_question_mark_in_a_field_is_text(visits: Visits) -> None:
    page = visits.open_live("/c/embedded/leases/")
    page.locator("#text").press_sequentially("a?")
    expect(page.locator("#text")).to_have_value("a?")
    expect(dialog(page)).to_be_hidden()


def test_a_button_opens_it_and_gets_the_focus_back(visits: Visits) -> None:
    page = visits.open_live("/c/embedded/")
    button = page.get_by_role("button", name="Keyboard shortcuts")
    button.focus()
    page.keyboard.press("Enter")
    expect(dialog(page)).to_be_visible()
    dialog(page).get_by_role("button", name="Close").click()
    expect(dialog(page)).to_be_hidden()
    expect(button).to_be_focused()


def test_the_control_is_in_sight_at_every_size(visits: Visits) -> None:
    page = visits.open_live("/c/embedded/timeline/")
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        if width < 720:
            page.locator(".topbar details.menu").last.locator("summary").click()
        page.get_by_role("button", name="Keyboard shortcuts").click()
        expect(dialog(page)).to_be_visible()
        box = dialog(page).bounding_box()
        assert box
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["height"] <= height
        dialog(page).get_by_role("button", name="Close").click()
