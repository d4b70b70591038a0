"""The wall of several clusters: worst first, live, and whole on every screen."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Sequence

import pytest
from playwright.sync_api import Page, expect

from dashboard.pages.fleet_wall import LYING, UPRIGHT
from tests.browser.judgements import CLIPPED
from tests.browser.visits import Profiles, Visits
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, serving, wait_for
from tests.support.programs.api_process import ApiProcess

HERE = "production-europe-west-1"
OTHERS = [f"production-asia-south-{number:02}" for number in range(1, UPRIGHT + 3)]
SCREENS = [(1280, 720), (1920, 1080), (3840, 2160), (1080, 1920)]
LIMIT = 30_000  # ms
# The whole page, and each part of it whose content is larger than its place.
BEYOND = """() => [
  [document.body.scrollWidth - innerWidth, document.body.scrollHeight - innerHeight],
  ...[...document.querySelectorAll(".w-strip, .w-strip *, .w-top, .w-tick, .w-counts, .w-rest")]
    .filter((el) => el.checkVisibility())
    .filter((el) => el.textContent.trim())
    .map((el) => [el.scrollWidth - el.clientWidth, el.scrollHeight - el.clientHeight]),
].filter(([x, y]) => x > 1 || y > 2)"""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    process = ApiProcess(tmp_path_factory.mktemp("elsewhere") / "api")
    yield process
    process.end(signal.SIGTERM)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, elsewhere: ApiProcess) -> Iterator[Server]:
    """One cluster, and more than a wall has room for that share another API."""
    api = LeaseApi(elsewhere.data / "kubeconfig")
    address = api.url.replace("https://", f"http://{api.token}@")
    clusters = [f"{HERE}=embedded", *(f"{name}=url:{address}" for name in OTHERS)]
    named = [word for one in clusters for word in ("--cluster", one)]
    with serving(tmp_path_factory.mktemp("fleet-wall") / "data", "--no-demo", *named) as one:
        one.wait_synced()
        for each in (LeaseApi(one.kubeconfig), api):
            each.create("steady", holder="one", duration=3600)
        yield one


def link_of(visits: Visits, name: str, of: Sequence[str] = ()) -> str:
    page = visits.open("/wall-links/")
    page.get_by_label("Name", exact=True).fill(name)
    for cluster in of:
        page.get_by_label(cluster, exact=True).check()
    page.get_by_label("All of them on one wall").check()
    page.get_by_role("button", name="Make link").click()
    return page.get_by_label("Address of the wall of all of them").input_value()


@pytest.fixture(scope="module")
def address(signed_in: Visits) -> str:
    made = link_of(signed_in, "hall")
    assert signed_in.leave() == []
    return made


@pytest.fixture(scope="module")
def address_of_three(signed_in: Visits) -> str:
    made = link_of(signed_in, "desk", of=[HERE, *OTHERS[:2]])
    assert signed_in.leave() == []
    return made


@pytest.fixture
def wall(profiles: Profiles, address: str) -> Iterator[Page]:
    page = profiles.stranger("a screen", {"width": 1920, "height": 1080})
    page.goto(address)
    expect(page.locator("[data-wall-live]")).to_contain_text("Live")
    yield page
    assert profiles.leave() == []


def whole(wall: Page) -> bool:
    return wall.evaluate(BEYOND) == [] and wall.evaluate(CLIPPED) == []


def test_the_worst_cluster_comes_first_and_nothing_is_cut_off(wall: Page, server: Server) -> None:
    strips = wall.locator(".w-strip:visible")
    expect(strips).to_have_count(LYING - 1)
    rest = wall.locator(".w-rest:visible")
    expect(rest).to_have_text(f"{len(OTHERS) + 2 - LYING} more, all quiet")
    api = LeaseApi(server.kubeconfig)
    names = [f"an-election-of-a-controller-with-a-long-name-{n}" for n in range(3)]
    for name in names:
        api.create(name, holder="one", duration=1)
    expect(strips.first).to_have_attribute("data-cluster", HERE)
    expect(strips.first).to_contain_text("3")
    expect(wall.locator(".w-count.is-expired b")).to_have_text("3")
    expect(wall.locator("#fleet-sums")).to_contain_text(
        f"{len(OTHERS) + 1} clusters, {len(OTHERS)} quiet"
    )
    expect(strips.first).to_contain_text("were lost with this one", timeout=LIMIT)
    for width, height in SCREENS:
        wall.set_viewport_size({"width": width, "height": height})
        room = UPRIGHT if height > width else LYING
        expect(strips).to_have_count(room - 1)
        expect(rest).to_have_text(f"{len(OTHERS) + 2 - room} more, all quiet")
        wait_for(lambda: whole(wall), what=f"all of it at {width}")
    for name in names:
        api.delete(name)
    expect(wall.locator(".w-count.is-expired b")).to_have_text("0")


def test_few_clusters_have_the_room_of_many(address_of_three: str, wall: Page) -> None:
    heights = {}
    for few in (False, True):
        if few:
            wall.goto(address_of_three)
        expect(wall.locator(".w-strip:visible")).to_have_count(3 if few else LYING - 1)
        for width, height in SCREENS:
            wall.set_viewport_size({"width": width, "height": height})
            wait_for(lambda: whole(wall), what=f"all of it at {width}")
            height_of = "([first]) => first.getBoundingClientRect().height"
            heights[few, width] = wall.locator(".w-strip").evaluate_all(height_of)
    for width, _ in SCREENS:
        assert heights[True, width] > 1.9 * heights[False, width]


def test_it_dims_in_silence_and_comes_back(wall: Page, server: Server) -> None:
    server.process.send_signal(signal.SIGSTOP)
    try:
        expect(wall.locator(".w-stale")).to_be_visible(timeout=6000)
        expect(wall.locator(".w-stale")).to_contain_text(re.compile(r"NOT LIVE for 00:00:0\d"))
        look = "getComputedStyle(document.querySelector('.w-main')).filter"
        assert "brightness" in wall.evaluate(look)
        for width, height in SCREENS:
            wall.set_viewport_size({"width": width, "height": height})
            wait_for(lambda: whole(wall), what=f"all of it at {width}")
    finally:
        server.process.send_signal(signal.SIGCONT)
    expect(wall.locator(".w-stale")).to_be_hidden(timeout=LIMIT)
    expect(wall.locator("[data-wall-live]")).to_contain_text("Live")


def test_a_cluster_that_is_cut_off_says_so_and_stays_on_the_wall(
    wall: Page, elsewhere: ApiProcess
) -> None:
    elsewhere.kill()
    try:
        cut = wall.locator(".w-strip.not-live:visible")
        expect(cut).to_have_count(LYING - 1, timeout=90_000)
        expect(cut.first).to_contain_text(re.compile(r"(stale|connecting) since"))
        expect(wall.locator(".w-rest:visible")).to_contain_text("in trouble")
        expect(wall.locator("body")).to_have_attribute("data-live", "live")
        expect(wall.locator("[data-wall-live]")).to_have_text(f"1 of {len(OTHERS) + 1} live")
        expect(wall.locator("[data-wall-live]")).to_have_class("w-live is-expired")
        expect(wall.locator(".w-count.is-held")).to_contain_text(f"{len(OTHERS)} old")
        for width, height in SCREENS:
            wall.set_viewport_size({"width": width, "height": height})
            wait_for(lambda: whole(wall), what=f"all of it at {width}")
    finally:
        elsewhere.start()
    expect(cut).to_have_count(0, timeout=LIMIT)
    expect(wall.locator("[data-wall-live]")).to_have_text("Live")
