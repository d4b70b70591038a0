"""`?` lists the keys of the page that is open, and only those that work there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.looking import axe
from tests.browser.visits import Visits
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, serving

__all__ = ["axe"]
EVERYWHERE = ["Ctrl K", "/", "Esc", "?"]
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
OWN = {
    "leases/default/one/": {"e", "h", "r", "d", "x", "s"},
    "timeline/?range=6h": {",", "-"},
}  # of their controls
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


@pytest.mark.parametrize(
    "path",
    [
        path if path in OWN or not path else pytest.param(path, marks=pytest.mark.long)
        for path in KEYS
    ],
)
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


def finder(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Find anything")


def test_one_field_finds_a_lease_by_keyboard_from_any_page(visits: Visits, axe: str) -> None:
    page = visits.open_live("/c/embedded/holders/")
    link = page.get_by_role("link", name="History", exact=True)
    link.focus()
    page.keyboard.press("Control+k")
    field = finder(page).get_by_role("combobox")
    expect(field).to_be_focused()
    expect(finder(page).get_by_role("option", name="Overview")).to_be_visible()
    field.press_sequentially("one")
    first = finder(page).get_by_role("option", selected=True)
    expect(first).to_contain_text("default/one")
    assert field.get_attribute("aria-activedescendant") == first.get_attribute("id")
    assert field.get_attribute("aria-expanded") == "true"
    page.evaluate(axe)
    broken = page.evaluate("async () => (await axe.run('#find')).violations")
    assert [(one["id"], one["nodes"][0]["html"]) for one in broken] == []
    field.press("ArrowUp")  # from the first to the last
    expect(finder(page).get_by_role("option").last).to_have_attribute("aria-selected", "true")
    field.press("Escape")
    expect(finder(page)).to_be_hidden()
    expect(link).to_be_focused()
    page.keyboard.press("Meta+k")
    expect(field).to_be_focused()
    page.keyboard.type("default/one")
    page.keyboard.press("Enter")  # at once: it opens what is typed, not what is still shown
    expect(page.locator("h1")).to_have_text("one")


@pytest.mark.parametrize("key", ["", "/"])
def test_the_field_of_the_head_finds_the_same(visits: Visits, key: str) -> None:
    page = visits.open_live("/c/embedded/nodes/")
    if key:
        page.keyboard.press(key)
    else:
        page.locator("#q").click()
    page.keyboard.type("default/on")
    field = finder(page).get_by_role("combobox")
    expect(field).to_be_focused()
    expect(field).to_have_value("default/on")
    page.keyboard.type("e")
    expect(finder(page).get_by_role("option", selected=True)).to_contain_text("default/one")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("one")


def test_what_nothing_is_called_is_said_and_enter_leads_to_the_page(visits: Visits) -> None:
    page = visits.open_live("/c/embedded/leases/default/one/")
    page.get_by_role("link", name="Ctrl K").click()
    field = finder(page).get_by_role("combobox")
    expect(finder(page).get_by_role("option").first).to_have_text("Edit default/one")
    field.press_sequentially("nothing-is-called-so")
    expect(finder(page).get_by_role("status")).to_contain_text("Nothing is called")
    expect(field).to_have_attribute("aria-expanded", "false")
    field.press("Enter")
    expect(page.get_by_role("heading", name="Search", exact=True)).to_be_visible()


def test_keys_lead_to_the_actions_of_a_lease_that_one_may_do(visits: Visits) -> None:
    page = visits.open_live("/c/embedded/leases/default/one/")
    page.evaluate("document.body.removeAttribute('data-may-edit')")
    page.keyboard.press("d")
    page.keyboard.press("?")
    expect(dialog(page)).to_contain_text("CSV of the last hour")
    expect(dialog(page)).not_to_contain_text("Delete")
    for key, action in (("h", "Hand over"), ("r", "Release"), ("d", "Delete"), ("e", "Edit")):
        control = page.locator(f'main a[data-key="{key}"]')
        expect(control).to_contain_text(action)
    page.goto(f"{visits.url}/c/embedded/leases/default/one/")
    page.keyboard.press("h")
    expect(page.locator("h1")).to_contain_text("Hand over")
