"""The cluster menu: the same page in the other cluster, and the state of each without a reload."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.visits import Visits
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, serving
from tests.support.programs.api_process import ApiProcess

HERE, THERE = "a", "b"


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    process = ApiProcess(tmp_path_factory.mktemp("elsewhere") / "api")
    yield process
    process.end(signal.SIGTERM)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, elsewhere: ApiProcess) -> Iterator[Server]:
    """Cluster a with the Leases `both` and `alone`, b with `both`."""
    other = LeaseApi(elsewhere.data / "kubeconfig")
    address = other.url.replace("https://", f"http://{other.token}@")
    clusters = ("--cluster", f"{HERE}=embedded", "--cluster", f"{THERE}=url:{address}")
    folder: Path = tmp_path_factory.mktemp("two-clusters")
    with serving(folder / "data", "--no-demo", *clusters) as one:
        one.wait_synced()
        here = LeaseApi(one.kubeconfig)
        for api in (here, other):
            api.create("both", holder="one")
        here.create("alone", holder="one")
        yield one


def menu(page: Page) -> Locator:
    return page.locator(".topbar details.menu").first


def switch(page: Page, name: str = THERE) -> None:
    menu(page).locator("summary").click()
    menu(page).get_by_role("link", name=re.compile(f"^{name} ")).click()
    expect(menu(page).locator("summary")).to_contain_text(name)


def test_a_filter_chosen_on_the_page_is_saved(visits: Visits) -> None:
    page = visits.open_live(f"/c/{HERE}/leases/")
    page.locator("#text").fill("both")
    expect(page).to_have_url(re.compile(r"leases/\?q=both$"))
    page.get_by_role("link", name="Save this view").click()
    expect(page.locator("main li")).to_have_text("q: both")
    expect(page.get_by_label("Page", exact=True)).to_have_value(f"/c/{HERE}/leases/?q=both")


def test_a_filter_chosen_on_the_page_comes_along(visits: Visits) -> None:
    page = visits.open_live(f"/c/{HERE}/leases/?sort=name&page=1")
    expect(page.locator("tbody tr")).to_have_count(2)
    page.locator("#text").fill("both")
    expect(page).to_have_url(re.compile(r"leases/\?q=both&sort=name$"))
    switch(page)
    expect(page).to_have_url(re.compile(rf"/c/{THERE}/leases/\?q=both&sort=name$"))
    expect(page.locator("tbody tr .name")).to_have_text(["both"])


@pytest.mark.parametrize(
    "path",
    [
        "timeline/?range=1h",
        *(
            pytest.param(path, marks=pytest.mark.long)
            for path in ("holders/?group=identity", "nodes/", "")
        ),
    ],
)
def test_each_page_is_kept(visits: Visits, path: str) -> None:
    page = visits.open_live(f"/c/{HERE}/{path}")
    switch(page)
    expect(page).to_have_url(re.compile(rf"/c/{THERE}/{re.escape(path)}$"))


def test_a_leases_page_leads_to_its_namesake(visits: Visits) -> None:
    page = visits.open_live(f"/c/{HERE}/leases/default/both/?range=1h")
    switch(page)
    expect(page).to_have_url(re.compile(rf"/c/{THERE}/leases/default/both/\?range=1h$"))
    expect(page.locator("h1")).to_have_text("both")


def test_a_lease_that_is_not_there_leads_to_the_list_that_says_so(visits: Visits) -> None:
    page = visits.open_live(f"/c/{HERE}/leases/default/alone/")
    switch(page)
    expect(page).to_have_url(re.compile(rf"/c/{THERE}/leases/\?absent=default%2Falone$"))
    expect(page.locator("main")).to_contain_text(f"{THERE} has no Lease default/alone")
    expect(page.locator("tbody tr .name")).to_have_text(["both"])


def test_the_menu_works_by_keyboard(visits: Visits) -> None:
    page = visits.open_live(f"/c/{HERE}/nodes/")
    menu(page).locator("summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/c/{THERE}/nodes/$"))


def test_the_states_in_the_menu_are_live(visits: Visits, elsewhere: ApiProcess) -> None:
    page = visits.open_live(f"/c/{HERE}/")
    loaded_at = page.evaluate("performance.timeOrigin")
    menu(page).locator("summary").click()
    state = page.locator(f'[data-cluster="{THERE}"]')
    expect(state).to_have_text(re.compile(r"live, \d+ Leases?"))
    expect(page.locator("[data-menu-as-of]")).to_be_hidden()
    elsewhere.end(signal.SIGKILL)
    expect(state).to_have_text(re.compile(r"stale since\s+\S+, reconnecting"))
    expect(state).to_have_class(re.compile("is-expired"))
    expect(page.locator(f'[data-cluster="{HERE}"]')).to_contain_text("live, ")
    elsewhere.start()
    expect(state).to_have_text(re.compile(r"live, \d+ Leases?"), timeout=120_000)
    expect(state).to_have_class(re.compile("is-held"))
    assert page.evaluate("performance.timeOrigin") == loaded_at
