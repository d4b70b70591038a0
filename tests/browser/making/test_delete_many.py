"""Many Leases are chosen, deleted and accounted for in Chromium; a deletion is stopped."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.making.conftest import Open
from tests.support.api_client import LeaseApi, leases
from tests.support.processes import wait_for

SLOW = 1500  # so many that a person can stop their deletion


def listed(api: LeaseApi, start: str) -> set[str]:
    items = api.send("GET", leases())["items"]
    return {name for item in items if (name := item["metadata"]["name"]).startswith(start)}


def make(api: LeaseApi, *names: str) -> None:
    for name in names:
        api.create(name, holder="")


def filtered(visit: Open, query: str, number: int, **options: object) -> Page:
    """The list, once it shows as many Leases as match."""
    page = visit(f"leases/?{query}", **options)
    total = page.get_by_role("link", name=re.compile(rf"^Delete all {number:,}…$"))

    def look() -> bool:
        if not total.count():
            page.reload()
        return total.count() > 0

    wait_for(look, what=f"{number} Leases in the list", every=0.5)
    return page


def confirm(page: Page, number: int) -> None:
    page.get_by_label(f"Type {number} to confirm").fill(str(number))
    page.get_by_label("Reason").fill("drill")
    page.get_by_role("button", name=re.compile(r"^Delete [\d,]+ Lease")).click()
    expect(page.get_by_role("heading", name=re.compile(r"^Deletion \d+$"))).to_be_visible()


@pytest.mark.parametrize(
    "scripts",
    [
        pytest.param(True, id="scripts"),
        pytest.param(False, id="no scripts", marks=pytest.mark.long),
    ],
)
def test_a_filter_of_the_list_is_deleted_and_reported(
    visit: Open, api: LeaseApi, scripts: bool
) -> None:
    word = "with" if scripts else "without"
    make(api, *(f"many-{word}-{number}" for number in range(30)))
    api.create(f"many-{word}-held", holder="cp-1")
    page = filtered(visit, f"q=many-{word}", 31, java_script_enabled=scripts)
    page.get_by_role("link", name="Delete all 31").click()
    expect(page.get_by_text("30 Leases will be removed")).to_be_visible()
    expect(page.get_by_text("Leave out the 1 held")).to_be_visible()
    confirm(page, 30)
    expect(page.get_by_text("30 deleted")).to_be_visible()
    assert listed(api, f"many-{word}") == {f"many-{word}-held"}
    address = page.url
    page.reload()
    expect(page.get_by_text("30 deleted")).to_be_visible()
    assert page.url == address


def test_ticked_leases_are_deleted_and_ticks_outlive_a_change_of_the_row(
    visit: Open, api: LeaseApi
) -> None:
    make(api, "tick-1", "tick-2", "tick-3")
    page = filtered(visit, "q=tick-", 3)
    expect(page.locator("[data-live-pill]")).to_contain_text("Live")
    box = page.get_by_role("checkbox", name="Choose default/tick-2")
    expect(page.get_by_role("button", name="Delete…")).to_be_hidden()
    box.focus()
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Delete…")).to_be_visible()
    api.label("tick-2", app="shop")
    api.take("tick-2", holder="pod-9", transitions=1)
    expect(page.locator('tr[data-key="default/tick-2"]')).to_contain_text("pod-9")
    expect(box).to_be_checked()
    page.get_by_role("checkbox", name="Choose default/tick-3").check()
    page.get_by_role("button", name="Delete…").click()
    expect(page).to_have_url(re.compile(r"delete/\?lease=default%2Ftick-2&lease=default%2Ftick-3"))
    page.get_by_role("link", name="Delete it too").click()
    confirm(page, 2)
    expect(page.get_by_text("2 deleted")).to_be_visible()
    assert listed(api, "tick-") == {"tick-1"}


@pytest.fixture
def slow(api: LeaseApi) -> set[str]:
    names = {f"slow-{number:04}" for number in range(SLOW)}
    make(api, *sorted(names))
    return names


@pytest.mark.long
def test_progress_is_live_and_a_stop_leaves_the_rest(
    visit: Open, api: LeaseApi, slow: set[str]
) -> None:
    page = filtered(visit, "q=slow-", SLOW)
    page.get_by_role("link", name=f"Delete all {SLOW:,}").click()
    confirm(page, SLOW)
    progress = page.get_by_role("progressbar")
    expect(page.get_by_text(f"of {SLOW:,}").first).to_be_visible()
    expect(progress).not_to_have_attribute("aria-valuenow", "0")
    loaded = page.evaluate("performance.timeOrigin")
    page.get_by_role("button", name="Stop here").click()
    expect(page.get_by_role("heading", name="Report")).to_be_visible()
    expect(page.get_by_text("Somebody stopped it.")).to_be_visible()
    assert page.evaluate("performance.timeOrigin") >= loaded
    said = page.locator(".done").inner_text()
    deleted = int(re.search(r"([\d,]+) deleted", said)[1].replace(",", ""))  # type: ignore[index]
    assert 0 < deleted < SLOW
    assert f"{SLOW - deleted:,} not tried" in re.sub(r"\s+", " ", said)
    assert len(listed(api, "slow-")) == SLOW - deleted
    page.get_by_role("link", name=f"Try the {SLOW - deleted:,} again").click()
    expect(page.get_by_text(f"{SLOW - deleted:,} Leases will be removed")).to_be_visible()
