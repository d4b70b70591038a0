"""One field finds in all clusters by keyboard: that of the page first, and a whole name at once."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.looking import Watched, axe, look
from tests.browser.visits import Visits
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, serving
from tests.support.programs.api_process import ApiProcess

__all__ = ["axe"]
HERE, THERE = "a", "b"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Two clusters: each has `default/shared`, and a Lease that the other one does not have."""
    elsewhere = ApiProcess(tmp_path_factory.mktemp("elsewhere") / "api")
    there = LeaseApi(elsewhere.data / "kubeconfig")
    address = there.url.replace("https://", f"http://{there.token}@")
    clusters = ("--cluster", f"{HERE}=embedded", "--cluster", f"{THERE}=url:{address}")
    folder = tmp_path_factory.mktemp("search")
    with serving(folder / "data", "--no-demo", *clusters) as one:
        one.wait_synced()
        for api, own in ((LeaseApi(one.kubeconfig), "only-a"), (there, "only-b")):
            api.create("shared", holder=f"pod-of-{own}_77aa", duration=3600)
            api.create(own, holder=f"pod-of-{own}_77aa", duration=3600)
        yield one
    elsewhere.end(signal.SIGTERM)


def finder(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Find anything")


def type_there(page: Page, text: str) -> Locator:
    """Type into the field of Ctrl-K; the chosen option."""
    page.keyboard.press("Control+k")
    field = finder(page).get_by_role("combobox")
    field.fill(text)
    return finder(page).get_by_role("option", selected=True)


def test_the_clusters_are_groups_and_arrows_lead_through_them(visits: Visits, axe: str) -> None:
    page = visits.open_live(f"/c/{THERE}/nodes/")
    chosen = type_there(page, "shar")
    expect(chosen).to_have_attribute("href", f"/c/{THERE}/leases/default/shared/")
    groups = finder(page).get_by_role("group")
    expect(groups).to_have_count(2)
    expect(finder(page).get_by_role("group", name=f"{THERE} Leases")).to_be_visible()
    expect(finder(page).get_by_role("group", name=f"{HERE} Leases")).to_be_visible()
    page.evaluate(axe)
    broken = page.evaluate("async () => (await axe.run('#find')).violations")
    assert [(one["id"], one["nodes"][0]["html"]) for one in broken] == []
    page.keyboard.press("ArrowDown")
    expect(chosen).to_have_attribute("href", f"/c/{HERE}/leases/default/shared/")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/c/{HERE}/leases/default/shared/"))


def test_the_dialog_ends_above_the_lower_edge_of_a_small_screen(visits: Visits) -> None:
    page = visits.open_live(f"/c/{HERE}/nodes/", viewport={"width": 320, "height": 360})
    expect(type_there(page, "only")).to_be_visible()
    box = finder(page).bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 360


AGAIN = pytest.mark.long


@pytest.mark.parametrize(
    ("path", "text", "leads_to"),
    [
        ("/", "default/only-b", "leases/default/only-b/"),
        (f"/c/{HERE}/", "only-b", "leases/default/only-b/"),
        (f"/c/{HERE}/", "pod-of-only-b_77aa", "holders/pod-of-only-b/"),
        pytest.param(f"/c/{HERE}/", "default/only-b", "leases/default/only-b/", marks=AGAIN),
        pytest.param("/", "only-b", "leases/default/only-b/", marks=AGAIN),
        pytest.param("/", "pod-of-only-b_77aa", "holders/pod-of-only-b/", marks=AGAIN),
    ],
)
def test_what_is_typed_whole_is_opened_where_it_is(
    visits: Visits, path: str, text: str, leads_to: str
) -> None:
    page = visits.open_live(path)
    page.keyboard.press("Control+k")
    page.keyboard.type(text)
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{visits.url}/c/{THERE}/{leads_to}")


def test_the_whole_name_of_another_cluster_is_chosen_below_lines_of_this_one(
    visits: Visits, server: Server
) -> None:
    LeaseApi(server.kubeconfig).create("only-b-too", holder="one", duration=3600)
    page = visits.open_live(f"/c/{HERE}/")
    chosen = type_there(page, "only-b")
    expect(finder(page).get_by_role("option").first).to_contain_text("only-b-too")
    expect(chosen).to_have_attribute("href", f"/c/{THERE}/leases/default/only-b/")


def test_the_fleet_searches_all_clusters_without_javascript_too(visits: Visits) -> None:
    page = visits.open("/", java_script_enabled=False)
    page.locator("#q").fill("shared")
    page.locator("#q").press("Enter")
    expect(page.get_by_role("heading", name="Search", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile(r"/search/\?go=true&q=shared$"))
    for name in (HERE, THERE):
        expect(page.locator(f'main a[href="/c/{name}/leases/default/shared/"]')).to_be_visible()
    field = page.locator("main input[name=q]")
    field.fill("default/only-b")
    field.press("Enter")
    expect(page.locator("h1")).to_have_text("only-b")
    assert f"/c/{THERE}/" in page.url


PAGES = "search/?q=shared", "search/?q=nothing-is-called-so", "c/a/search/?q=s"


@pytest.mark.parametrize(
    "whole",
    [
        pytest.param(1, id="briefly", marks=pytest.mark.brief),
        pytest.param(len(PAGES), id="whole", marks=pytest.mark.long),
    ],
)
def test_the_pages_are_accessible_and_fit(
    visits: Visits, server: Server, browser: Browser, axe: str, whole: int
) -> None:
    with closing(Watched(browser)) as watched:
        watched.page.context.add_cookies(visits.page().context.cookies())
        for number, path in enumerate(PAGES):
            assert look(watched, server, path, axe if number < whole else "") == [], path
            assert watched.complaints == []
