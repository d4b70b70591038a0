"""A screen in a room: it types a code, shows its walls in turn, and looks after itself."""

from __future__ import annotations

import re
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urljoin

import pytest
from playwright.sync_api import Browser, Page, expect

from dashboard.config import VERSION
from dashboard.parts.wall_turns import SECONDS
from tests.browser.judgements import CLIPPED
from tests.browser.visits import Profiles, Visits
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, serving, wait_for
from tests.support.programs.api_process import ApiProcess

HERE, THERE = "production-europe-west-1", "production-us-central-1"
LIMIT = 30_000  # ms
ROOM = {"width": 1920, "height": 1080}
SCREENS = [(1280, 720), (1920, 1080), (3840, 2160), (1080, 1920)]


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
    with serving(tmp_path_factory.mktemp("screens") / "data", "--no-demo", *clusters) as one:
        one.wait_synced()
        for api in (LeaseApi(one.kubeconfig), there):
            api.create("steady", holder="one", duration=3600)
        yield one


@pytest.fixture
def rooms(profiles: Profiles, visits: Visits) -> list[Page]:
    """The empty pages of two screens, each with cookies of its own."""
    return [profiles.stranger(who, ROOM) for who in ("a screen", "another screen")]


@pytest.fixture
def timed(browser: Browser, visits: Visits) -> Iterator[Page]:
    """That of one whose clock goes as a test wants."""
    with browser.new_context(viewport=ROOM) as context:  # type: ignore[arg-type]
        context.clock.install()
        page = context.new_page()
        page.on("pageerror", lambda error: visits.complaints.append(str(error)))
        yield page


def code_by_form(visits: Visits, name: str) -> str:
    page = visits.open("/wall-links/")
    page.get_by_label("Name", exact=True).fill(name)
    for cluster in (HERE, THERE):
        page.get_by_label(cluster).check()
    page.get_by_role("button", name="Make link").click()
    page.locator(".note-box").get_by_role("button", name="Get a code").click()
    return page.locator("[data-code]").inner_text()


def code_for(admin: Page, name: str) -> str:
    """The same without its pages; `admin` shows the list of wall links."""
    made = send(admin, "/wall-links/", name=name, clusters=HERE, days="9")
    (path, *_) = re.findall(r'action="(/wall-links/\d+/code/)"', made)
    (code,) = re.findall(r"data-code>([^<]+)<", send(admin, path))
    return str(code)


def send(admin: Page, path: str, **typed: str) -> str:
    token = {"csrfmiddlewaretoken": admin.locator("[name=csrfmiddlewaretoken]").first.input_value()}
    answer = admin.request.post(urljoin(admin.url, path), form={**token, **typed})
    assert answer.ok, answer.text()
    return answer.text()


def screen_of(page: Page, visits: Visits, code: str) -> Page:
    """By keys alone, as a remote sends them."""
    page.goto(f"{visits.url}/wall/")
    expect(page.get_by_label("Type the code of this screen")).to_be_focused()
    page.keyboard.type(code.lower())
    page.keyboard.press("Enter")
    return page


def wall_of(cluster: str) -> re.Pattern[str]:
    return re.compile(rf"/c/{cluster}/wall/\?screen=1$")


def test_a_screen_shows_the_walls_of_its_link_in_turn_and_stays_at_trouble(
    timed: Page, rooms: list[Page], visits: Visits, there: LeaseApi
) -> None:
    code = code_by_form(visits, "lobby")
    screen, room = screen_of(timed, visits, code), timed.context
    expect(screen).to_have_url(wall_of(HERE))
    expect(screen.locator("[data-turns]")).to_have_text(re.compile(r"1 of 2\s+all 2 calm"))
    for path in ("/", "/c/a/leases/", "/wall-links/"):
        assert "/sign-in/" in room.request.get(f"{visits.url}{path}").url
    assert (
        room.request.get(f"{visits.url}/?format=json").headers["content-type"] != "application/json"
    )
    refused = screen_of(rooms[0], visits, code)
    expect(refused.get_by_role("alert")).to_contain_text("This code opens nothing")
    expect(refused.get_by_label("Type the code of this screen")).to_be_focused()
    for cluster in (THERE, HERE):
        expect(screen.locator("body")).to_have_attribute("data-live", "live")
        screen.clock.fast_forward(SECONDS * 1000)
        expect(screen).to_have_url(wall_of(cluster))
    there.create("mortal", holder="one", duration=1)
    wait_for(
        lambda: "expired" in room.request.get(f"{visits.url}/wall/").text(), what="the trouble"
    )
    for _ in range(2):
        expect(screen.locator("body")).to_have_attribute("data-live", "live")
        screen.clock.fast_forward(SECONDS * 1000)
        expect(screen).to_have_url(wall_of(THERE))
        expect(screen.locator("[data-turns] .is-expired.now")).to_have_text(THERE)
        expect(screen.locator("[data-turns]")).to_contain_text("1 calm")
    for width, height in SCREENS:
        screen.set_viewport_size({"width": width, "height": height})
        wait_for(lambda: screen.evaluate(CLIPPED) == [], what=f"all of it at {width}")
    there.delete("mortal")


def test_a_screen_whose_link_has_ended_says_so_and_asks_for_a_code(
    rooms: list[Page], visits: Visits, server: Server
) -> None:
    page = visits.open("/wall-links/")
    revoked = screen_of(rooms[0], visits, code_for(page, "revoked"))
    expired = screen_of(rooms[1], visits, code_for(page, "expired"))
    for screen in (revoked, expired):
        expect(screen.locator("[data-wall-live]")).to_contain_text("Live")
    page.reload()
    page.get_by_role("link", name="Revoke revoked").click()
    page.get_by_role("button", name="Revoke link").click()
    with closing(sqlite3.connect(server.data / "leaseboard.sqlite3")) as database:
        sql = "UPDATE leases_walllink SET expires_at = '2026-11-20 03:12' WHERE name = 'expired'"
        database.execute(sql)
        database.commit()
    why = re.compile("This wall link was revoked at")
    expect(revoked.locator("[data-why]")).to_have_text(why, timeout=LIMIT)
    for screen, word in ((revoked, "was revoked at"), (expired, "ended on 2026-11-20")):
        said = re.compile(f"This wall link {word}")
        expect(screen.locator("#said")).to_have_text(said, timeout=LIMIT)
        expect(screen.get_by_label("Type the code of this screen")).to_be_focused()


def test_an_admin_ends_one_screen_and_the_other_stays_live(
    rooms: list[Page], visits: Visits
) -> None:
    page = visits.open("/wall-links/")
    ended = screen_of(rooms[0], visits, code_for(page, "hall"))
    page.reload()
    page.get_by_role("button", name="Code for a screen of hall").click()
    stays = screen_of(rooms[1], visits, page.locator("[data-code]").inner_text())
    for screen in (ended, stays):
        expect(screen.locator("[data-wall-live]")).to_contain_text("Live")
    page.goto(f"{visits.url}/wall-links/")
    page.get_by_role("row", name="hall").get_by_role("link", name="2 screens").click()
    expect(page.get_by_role("button", name="End")).to_have_count(2)
    page.get_by_role("button", name="End").last.click()
    expect(page.get_by_role("button", name="End")).to_have_count(1)
    why = ended.locator("[data-why]")
    expect(why).to_have_text(re.compile("An admin ended this screen"), timeout=LIMIT)
    expect(ended.locator("#said")).to_contain_text("not known here any more", timeout=LIMIT)
    expect(ended.get_by_label("Type the code of this screen")).to_be_focused()
    expect(stays.locator("body")).to_have_attribute("data-live", "live")


def test_a_wall_of_a_stopped_server_dims_and_comes_back_in_its_new_version(
    rooms: list[Page], server: Server
) -> None:
    wall = rooms[0]
    wall.goto(server.printed("Wall"))
    expect(wall.locator("[data-wall-live]")).to_contain_text("Live")
    wall.evaluate("document.body.dataset.before = 1")
    wall.evaluate("document.body.dataset.version = '0.0.1'")  # as if an older server had drawn it
    server.process.send_signal(signal.SIGSTOP)
    try:
        expect(wall.locator(".w-stale")).to_be_visible(timeout=6000)
        expect(wall.locator(".w-stale")).to_contain_text(re.compile(r"NOT LIVE for 00:00:0\d"))
        assert "brightness" in wall.evaluate(
            "getComputedStyle(document.querySelector('.w-main')).filter"
        )
    finally:
        server.process.send_signal(signal.SIGCONT)
    expect(wall.locator("body:not([data-before])")).to_be_attached(timeout=LIMIT)
    expect(wall.locator("body")).to_have_attribute("data-version", VERSION)
    expect(wall.locator("[data-wall-live]")).to_contain_text("Live")
    expect(wall.locator(".w-stale")).to_be_hidden()


def test_a_wall_moves_a_little_and_loads_itself_again_once_a_day(
    timed: Page, server: Server
) -> None:
    wall = timed
    wall.goto(server.printed("Wall"))
    live = wall.locator("body[data-live='live']")
    expect(live).to_be_attached()
    wall.evaluate("document.body.dataset.before = 1")
    wall.clock.fast_forward("01:00")
    assert wall.evaluate("getComputedStyle(document.querySelector('.w-main')).translate") != "0px"
    wall.clock.fast_forward("22:00:00")
    expect(live).to_be_attached()
    wall.clock.fast_forward("01:00")
    expect(wall.locator("body[data-before]")).to_be_attached()  # a day has not passed
    wall.clock.fast_forward("02:00:00")
    expect(live).to_be_attached()
    wall.clock.fast_forward("01:00")
    expect(wall.locator("body:not([data-before])")).to_be_attached(timeout=LIMIT)
    expect(live).to_be_attached()
