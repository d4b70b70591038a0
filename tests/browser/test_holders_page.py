"""The Holders page in a real browser: live, without a script, by keyboard, back and forward."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.support.api_client import LeaseApi, leases, timestamp
from tests.support.processes import Server, serving

PATH = "/c/embedded/holders/"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Three Leases of cp-1, under two identities, and one of cp-2."""
    data: Path = tmp_path_factory.mktemp("holders-page") / "data"
    with serving(data, "--no-demo") as one:
        one.wait_synced()
        api = LeaseApi(one.kubeconfig)
        api.create("scheduler", holder="cp-1_8c2e")
        api.create("manager", holder="cp-1_a4c1")
        api.create("cloud", holder="cp-1_a4c1")
        api.create("operator", holder="cp-2")
        yield one


def expect_holders(page: Page, *names: str) -> None:
    rows = page.locator("[data-holder]")
    expect(rows).to_have_count(len(names))
    for number, name in enumerate(names):
        expect(rows.nth(number)).to_have_attribute("data-holder", name)


def row(page: Page, name: str) -> Locator:
    return page.locator(f'[data-holder="{name}"]')


def test_the_first_paint_needs_no_script(visits):
    page = visits.open(PATH, java_script_enabled=False)
    expect_holders(page, "cp-1", "cp-2")
    expect(row(page, "cp-1")).to_contain_text(re.compile(r"3\s*Leases, 75 %"))
    page.get_by_role("link", name="By identity").click()
    expect_holders(page, "cp-1_a4c1", "cp-1_8c2e", "cp-2")
    page.get_by_label("Holder or Lease contains").fill("cp-2")
    page.keyboard.press("Enter")
    expect_holders(page, "cp-2")
    assert "group=identity" in page.url


def test_a_take_over_moves_a_lease_without_a_reload(server, visits):
    page = visits.open_live(f"{PATH}?range=1h")
    loaded_at = page.evaluate("performance.timeOrigin")
    visited = page.evaluate("history.length")
    row(page, "cp-1").locator("summary").click()
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur()")
    api = LeaseApi(server.kubeconfig)
    api.take("operator", holder="cp-3", transitions=1)
    expect(row(page, "cp-3")).to_contain_text("operator")
    expect(row(page, "cp-2")).to_contain_text("holds nothing now")
    expect(row(page, "cp-1").locator("details")).to_have_attribute("open", "")
    assert page.evaluate("history.length") == visited
    page.get_by_role("link", name="Holder", exact=True).click()  # is still one that htmx follows
    expect(page.locator("[aria-sort]")).to_contain_text("Holder")
    assert page.evaluate("performance.timeOrigin") == loaded_at
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur()")
    api.take("operator", holder="cp-2", transitions=2)
    expect(row(page, "cp-2")).to_contain_text("operator")


def test_a_search_is_a_url_and_back_returns(visits):
    page = visits.open(PATH)
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.get_by_label("Holder or Lease contains").press_sequentially("sched")
    expect(row(page, "cp-2")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"\?q=sched$"))
    page.go_back()
    expect(row(page, "cp-2")).to_have_count(1)
    assert page.url.endswith(PATH)


def test_a_holder_keeps_its_title_once_its_place_is_known(visits):
    page = visits.open(f"{PATH}cp-1/")
    expect(page.get_by_role("link", name="Ask the cluster for its Pod and Node")).to_have_count(0)
    assert page.title() == "cp-1 · embedded · Leaseboard"


def test_it_is_used_by_keyboard(visits):
    page = visits.open(PATH)
    page.get_by_role("link", name="Holder", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator('[role="columnheader"][aria-sort="ascending"]')).to_contain_text("Holder")
    summary = row(page, "cp-1").locator("summary")
    summary.focus()
    page.keyboard.press("Enter")
    expect(row(page, "cp-1").locator(".ids li").first).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("cloud")


def test_on_a_phone_nothing_is_wider_than_the_screen(visits):
    page = visits.open(PATH, viewport={"width": 390, "height": 844})
    width = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(width) == 0
    expect(row(page, "cp-1").locator(".chips")).to_be_visible()
    expect(row(page, "cp-1").locator("svg.lane")).to_be_hidden()


OVERLAPS = """cells => cells.filter((cell) => {
  const right = Math.max(...[...cell.children].map((part) => part.getBoundingClientRect().right));
  return right > cell.getBoundingClientRect().right + 1;
}).length"""


def test_an_answer_to_a_link_that_was_drawn_anew_is_dropped(server, visits):
    api = LeaseApi(server.kubeconfig)
    api.create("asked", holder="cp-8")
    page = visits.page()
    held: list[Route] = []
    asks = re.compile(r"/holders/pods/")
    page.route(asks, lambda route: route.continue_() if held else held.append(route))
    page.goto(f"{visits.url}{PATH}", wait_until="commit")
    expect(page.locator("[data-live-pill]")).to_contain_text("Live")
    api.take("asked", holder="cp-9", transitions=1)
    expect(page.get_by_text("The cluster was asked for the Pods of")).to_be_visible()
    held[0].continue_()
    page.wait_for_load_state("networkidle")
    expect(page.get_by_text("The cluster was asked for the Pods of")).to_be_visible()
    api.delete("asked")


def test_how_a_node_takes_leases_down_is_asked_and_stays_in_its_column(server, visits):
    spec = {"holderIdentity": "cp-1", "leaseDurationSeconds": 3600, "renewTime": timestamp()}
    heartbeat = {"metadata": {"name": "cp-1"}, "spec": spec}
    LeaseApi(server.kubeconfig).send("POST", leases("kube-node-lease"), heartbeat)
    page = visits.open_live(f"{PATH}?q=cp-1")
    expect(page.get_by_text("by its name alone")).to_be_visible()  # the Pods were asked for
    expect(page.locator("#ask-pods")).to_have_count(0)
    for width in (390, 1024, 1440):  # the last is that of the page's profile
        page.set_viewport_size({"width": width, "height": 900})
        assert page.locator(".hold > .blast").evaluate_all(OVERLAPS) == 0
