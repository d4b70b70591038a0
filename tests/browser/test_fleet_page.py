"""All clusters on one page: its strips follow by one socket, and stay in their order."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.browser.judgements import BOXES, NEXT_FRAME, TOO_WIDE
from tests.browser.looking import Watched, axe, look
from tests.browser.sizes.long_names import UUID
from tests.browser.visits import Visits, reload_until
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, serving, wait_for
from tests.support.programs.api_process import ApiProcess

__all__ = ["axe"]
HERE, THERE = "a", "b"
PAGES = "?by=env", "", "timeline/?range=30d", "incidents/?show=all", "history/"
ORDER = """() => [...document.querySelectorAll("[id^=strip-]")].map((one) => one.id.slice(6))"""
# Pixels between a text and the end of its place.
TO_THE_EDGE = """(place) => {
  const words = document.createRange();
  words.selectNodeContents(place);
  return place.getBoundingClientRect().right - words.getBoundingClientRect().right;
}"""
COUNTS = ".fig:nth-child(5) b"  # of expired Leases


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    process = ApiProcess(tmp_path_factory.mktemp("elsewhere") / "api")
    yield process
    process.end(signal.SIGTERM)


@pytest.fixture(scope="module")
def there(elsewhere: ApiProcess) -> LeaseApi:
    return LeaseApi(elsewhere.data / "kubeconfig")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, there: LeaseApi) -> Iterator[Server]:
    """Two clusters, with one Lease each that is held for an hour."""
    address = there.url.replace("https://", f"http://{there.token}@")
    clusters = ("--cluster", f"{HERE}=embedded", "--cluster", f"{THERE}=url:{address}")
    folder = tmp_path_factory.mktemp("fleet")
    labels = f"{HERE}:env=prod,{THERE}:env=test"
    with serving(folder / "data", "--no-demo", *clusters, LEASEBOARD_CLUSTER_LABELS=labels) as one:
        one.wait_synced()
        for api in (LeaseApi(one.kubeconfig), there):
            api.create("steady", holder="one", duration=3600)
        yield one


def strip(page: Page, name: str) -> Locator:
    return page.locator(f"#strip-{name}")


def test_a_holder_that_dies_is_said_on_its_strip_and_the_order_stays(
    visits: Visits, there: LeaseApi
) -> None:
    sockets: list[str] = []
    page = visits.page()
    page.on("websocket", lambda one: sockets.append(one.url))
    page.goto(f"{visits.url}/")
    expect(page.locator("h1")).to_have_text("Clusters")
    expect(page.locator("[data-live-pill]")).to_contain_text("Live")
    expect(strip(page, THERE)).to_contain_text("No Lease is in trouble.")
    drawn_at = page.evaluate("performance.timeOrigin")
    there.create("mortal", holder="one", duration=1)
    expect(strip(page, THERE).locator(COUNTS)).to_have_text("1")
    expect(strip(page, THERE).locator(".in-fleet")).to_have_class(re.compile("is-expired"))
    expect(strip(page, HERE)).to_contain_text("No Lease is in trouble.")
    note = page.get_by_role("link", name="The order has changed · Show")
    expect(note).to_be_visible()
    assert page.evaluate(ORDER) == [HERE, THERE]
    note.click()
    expect(note).to_be_hidden()
    assert page.evaluate(ORDER) == [THERE, HERE]
    assert page.evaluate("performance.timeOrigin") == drawn_at
    strip(page, THERE).hover()  # nobody reads it less for that
    there.delete("mortal")
    expect(strip(page, THERE).locator(COUNTS)).to_have_text("0")
    assert [one.partition("/live/")[2] for one in sockets] == ["fleet/"]


def test_the_filter_narrows_the_strips_and_they_go_on_following(
    visits: Visits, there: LeaseApi
) -> None:
    page = visits.open_live("/")
    page.locator("#text").fill(THERE.upper())
    expect(page).to_have_url(re.compile(r"/\?q=B$"))
    expect(strip(page, HERE)).to_have_count(0)
    there.create("brief", holder="one", duration=1)
    expect(strip(page, THERE).locator(COUNTS)).to_have_text("1")
    there.delete("brief")
    expect(strip(page, THERE).locator(COUNTS)).to_have_text("0")


def test_a_group_whose_worst_is_worse_offers_the_new_order(visits: Visits, there: LeaseApi) -> None:
    page = visits.open_live("/")
    expect(strip(page, THERE)).to_contain_text(re.compile(r"v1\.\d+"))
    expect(strip(page, THERE)).to_contain_text("No Lease is in trouble.")  # of an earlier test
    page.get_by_label("Group by").select_option("env")
    expect(page).to_have_url(re.compile(r"/\?by=env$"))
    expect(page.locator("main h2")).to_have_text(["env prod", "env test"])
    there.create("torn", holder="one", duration=1)
    note = page.get_by_role("link", name="The order has changed · Show")
    note.click()
    expect(page.locator("main h2")).to_have_text(["env test", "env prod"])
    expect(page.locator("#board.htmx-settling")).to_have_count(0)  # before, it heeds no choice
    there.delete("torn")
    page.locator("#label-env").select_option("prod")
    expect(page).to_have_url(re.compile(r"/\?env=prod&by=env$"))
    expect(page.locator("main h2")).to_have_text(["env prod"])
    page.get_by_role("link", name="Clear").click()
    expect(page.locator("#strip-b")).to_be_visible()


def test_the_pages_over_all_clusters_choose_clusters_and_keep_them(visits: Visits) -> None:
    page = visits.open_live("/")
    for name in ("Timeline", "Incidents", "History"):
        page.locator(".nav").get_by_role("link", name=name).click()
        expect(page.locator("h1")).to_have_text(name)
        page.locator(".of-clusters summary").click()
        page.locator(".of-clusters").get_by_label(THERE, exact=True).check()
        expect(page).to_have_url(re.compile(rf"/{name.lower()}/\?.*cluster={THERE}"))
        expect(page.locator("#cluster-label")).to_have_text(THERE)
        expect(page.locator(".htmx-settling")).to_have_count(0)  # before, it heeds no choice
        page.locator(".of-clusters").get_by_label(HERE, exact=True).check()  # it stays open
        expect(page).to_have_url(re.compile(r"cluster=\w&cluster=\w"))
        expect(page.locator("#cluster-label")).to_have_text(f"{HERE} and {THERE}")


@pytest.mark.parametrize("path", ["/timeline/", "/incidents/"])
def test_a_cluster_that_is_chosen_before_the_scripts_run_is_not_lost(
    visits: Visits, path: str
) -> None:
    page = visits.page()
    held: list[Route] = []
    page.route(re.compile(r"/htmx.*\.js"), lambda route: held.append(route))
    page.goto(f"{visits.url}{path}", wait_until="commit")
    page.locator(".of-clusters summary").click()
    page.locator(".of-clusters").get_by_label(THERE, exact=True).check()
    held[0].continue_()
    expect(page).to_have_url(re.compile(rf"{path}\?.*cluster={THERE}"))
    expect(page.locator("#cluster-label")).to_have_text(THERE)


def test_without_javascript_the_page_says_of_when_it_is(visits: Visits) -> None:
    page = visits.open("/", java_script_enabled=False)
    expect(page.locator("[data-live-pill]")).to_contain_text("As of ")
    expect(strip(page, HERE)).to_contain_text("live since")
    strip(page, HERE).get_by_role("link", name=HERE, exact=True).click()
    expect(page.locator("h1")).to_have_text(HERE)


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
        for number, page in enumerate(PAGES):
            assert look(watched, server, page, axe if number < whole else "") == [], page
            assert watched.complaints == []


def test_who_had_it_and_who_has_it_stay_apart_on_narrow_screens(
    visits: Visits, there: LeaseApi
) -> None:
    pods = [f"argo-rollouts-59d4c9cf7d-{tail}_{UUID}" for tail in ("l4xvb", "9tqqs", "x2vfg")]
    there.create("argo-rollouts-controller", holder=pods[0], duration=1)
    page = visits.page()
    listed = f"{visits.url}/history/?format=json&q=argo-rollouts&change="

    def is_stored(change: str) -> bool:
        return bool(page.request.get(f"{listed}{change}").json()["total"])

    wait_for(lambda: is_stored("expired"), what="the expiry in history")
    there.take("argo-rollouts-controller", holder=pods[1], transitions=1)
    there.take("argo-rollouts-controller", holder=pods[2], transitions=2)
    wait_for(lambda: is_stored("replaced"), what="the other holders in history")
    page.goto(f"{visits.url}/history/?q=argo-rollouts")
    for width in (1280, 1024, 768):
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate(NEXT_FRAME)
        expect(page.get_by_role("columnheader", name="To", exact=True)).to_be_visible()
        assert page.evaluate(BOXES) == [], width
    there.delete("argo-rollouts-controller")


def test_the_last_head_of_the_incidents_keeps_from_the_edge_on_a_tablet(
    visits: Visits, there: LeaseApi
) -> None:
    there.create("brief-one", holder="one", duration=1)
    page = visits.page(viewport={"width": 768, "height": 800})
    page.goto(f"{visits.url}/incidents/?show=all")
    heads = page.get_by_role("columnheader")
    reload_until(page, heads.count, what="an incident")
    assert heads.last.evaluate(TO_THE_EDGE) >= 16
    there.delete("brief-one")


def test_the_form_of_a_cluster_fits_the_narrowest_phone(visits: Visits) -> None:
    page = visits.open("/clusters/new/", viewport={"width": 320, "height": 640})
    assert page.evaluate(TOO_WIDE) == []


def test_a_cluster_that_is_cut_off_dims_and_comes_back(
    visits: Visits, elsewhere: ApiProcess
) -> None:
    page = visits.open_live("/")
    body, number = strip(page, THERE).locator(".in-fleet"), strip(page, THERE).locator(".fig b")
    colour = "(el) => getComputedStyle(el).color"
    before = number.nth(1).evaluate(colour)
    elsewhere.end(signal.SIGKILL)
    expect(body).to_have_class(re.compile("not-live"))
    expect(body).to_contain_text(re.compile(r"stale since\s+\S+"))
    expect(body).to_contain_text("Shows what was known at")
    assert number.nth(1).evaluate(colour) != before
    expect(strip(page, HERE).locator(".in-fleet")).not_to_have_class(re.compile("not-live"))
    pill = page.locator("[data-live-pill]")
    expect(pill).to_have_text("1 of 2 live")
    expect(pill).to_have_class("live is-expired")
    elsewhere.start()
    expect(body).not_to_have_class(re.compile("not-live"), timeout=120_000)
    expect(pill).to_contain_text("Live")
