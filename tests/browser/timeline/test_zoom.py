"""From hundreds of changes to each of them: bands, the Lease's lane, the brush, ranges; by mouse
and by keyboard alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.timeline.conftest import (
    asked,
    back,
    drawn_brush,
    moment,
    now,
    stretch,
    text_of,
    url_of,
)
from tests.support.api_client import LeaseApi
from tests.support.processes import Server

WIDTHS = pytest.mark.parametrize("width", [1440, pytest.param(390, marks=pytest.mark.long)])
LANE = '[data-lane="default/busy"]'


@pytest.fixture(scope="module", autouse=True)
def busy(server: Server) -> None:
    """The Lease that was replaced sixty times, 20 s apart, is there now."""
    LeaseApi(server.kubeconfig).create("busy", holder="cp-2", transitions=60)


def lease_url(server: Server, query: str) -> str:
    return f"{server.url}/c/embedded/leases/default/busy/?{query}"


def length(page: Page) -> timedelta:
    return moment(asked(page, "to")) - moment(asked(page, "from"))


def other_stretch(page: Page) -> Callable[[str], bool]:
    """A test whether a URL has another stretch than the page has now."""
    before = asked(page, "from"), asked(page, "to")

    def differs(url: str) -> bool:
        query = parse_qs(urlsplit(url).query)
        found = query.get("from", [""])[0], query.get("to", [""])[0]
        return all(found) and found != before

    return differs


def drawn(page: Page) -> None:
    """Wait until the lanes show the stretch in the URL."""
    start = int(moment(asked(page, "from")).timestamp())
    page.locator(f'[data-start^="{start}"]').first.wait_for()


@WIDTHS
def test_a_click_on_many_changes_zooms_until_each_is_seen(
    server: Server, page: Page, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(stretch(server, q="busy"))
    bands, terms = page.locator(f"{LANE} a.zoom"), page.locator(f"{LANE} .term")
    expect(bands.first).to_have_accessible_name(re.compile(r"^Zoom in: \d+ changes"))
    clicks = 0
    while bands.count():
        changed = other_stretch(page)
        bands.first.click()
        page.wait_for_url(changed)
        drawn(page)
        clicks += 1
        assert clicks < 5
    assert clicks >= 1
    expect(terms.nth(3)).to_be_visible()
    assert (asked(page, "q"), asked(page, "at")) == ("busy", "")
    assert length(page) >= timedelta(minutes=1)


def test_a_band_is_entered_and_left_by_keyboard_alone(server: Server, page: Page) -> None:
    page.goto(stretch(server, q="busy"))
    band = page.locator(f"{LANE} a.zoom").first
    page.locator(f"{LANE} a.name").focus()
    page.keyboard.press("Tab")
    expect(band).to_be_focused()
    changed = other_stretch(page)
    page.keyboard.press("Enter")
    page.wait_for_url(changed)
    expect(page.locator(".playhead")).to_be_focused()
    near = length(page)
    assert near < timedelta(minutes=30)
    changed = other_stretch(page)
    page.keyboard.press("-")
    page.wait_for_url(changed)
    drawn(page)
    assert length(page) == 2 * near
    expect(page.locator(".playhead")).to_be_focused()


def test_a_playhead_inside_a_band_stays_and_one_outside_goes(server: Server, page: Page) -> None:
    page.goto(stretch(server, q="busy", at=text_of(1.5)))
    changed = other_stretch(page)
    page.locator(f"{LANE} a.zoom").first.press("Enter")  # the playhead lies over its middle
    page.wait_for_url(changed)
    assert asked(page, "at") == text_of(1.5)
    page.goto(stretch(server, q="busy", at=text_of(1.5)))
    page.locator(".playhead").focus()
    page.keyboard.press("Home")
    page.wait_for_url(lambda url: parse_qs(urlsplit(url).query)["at"] == [text_of(6)])
    changed = other_stretch(page)
    page.locator(f"{LANE} a.zoom").first.click()
    page.wait_for_url(changed)
    assert asked(page, "at") == ""


def test_a_count_in_the_table_leads_to_its_changes(server: Server, page: Page) -> None:
    page.goto(stretch(server, q="busy", view="table"))
    changed = other_stretch(page)
    page.get_by_role("link", name=re.compile("changes: zoom in")).first.press("Enter")
    page.wait_for_url(changed)
    assert asked(page, "view") == "table"
    assert length(page) < timedelta(minutes=30)


@WIDTHS
def test_a_drag_over_the_lane_of_a_lease_zooms_down_to_a_minute(
    server: Server, page: Page, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(lease_url(server, f"from={text_of(6)}&to={text_of(0)}"))
    for share in (0.2, 0.02):  # of the lane
        lane = page.locator("[data-zoomer].on")
        lane.hover()  # brings it into view and waits until nothing moves it
        box = lane.bounding_box()
        assert box
        changed = other_stretch(page)
        x = box["width"] * 0.7
        lane.hover(position={"x": x, "y": 17}, force=True)
        page.mouse.down()
        for moved in (5, max(6, box["width"] * share)):
            lane.hover(position={"x": x + moved, "y": 17}, force=True)
        expect(page.locator("#past .hint")).to_contain_text(" UTC, ")
        page.mouse.up()
        page.wait_for_url(changed)
        drawn(page)
    assert timedelta(minutes=1) <= length(page) < timedelta(minutes=3)
    expect(page.locator("#past .note").first).to_contain_text("term")
    back(page)
    assert asked(page, "from")


def test_a_band_on_the_page_of_a_lease_zooms_and_its_keys_too(server: Server, page: Page) -> None:
    page.goto(lease_url(server, f"from={text_of(6)}&to={text_of(0)}"))
    expect(page.locator("#past")).to_contain_text(re.compile(r"Zoom in on \d+ changes"))
    changed = other_stretch(page)
    page.locator("#past a.zoom").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(changed)
    expect(page.locator("#wider")).to_be_focused()
    found = length(page)
    for key in ("+", "-", ",", "."):
        changed = other_stretch(page)
        page.keyboard.press(key)
        page.wait_for_url(changed)
        drawn(page)
    assert length(page) == found
    assert "at=" not in page.url


def test_plus_zooms_a_lease_in_to_less_than_a_minute(server: Server, page: Page) -> None:
    page.goto(lease_url(server, "range=15m"))
    for _ in range(4):
        changed = other_stretch(page)
        page.keyboard.press("+")
        page.wait_for_url(changed)
        drawn(page)
    assert length(page) <= timedelta(minutes=1)


@WIDTHS
@pytest.mark.parametrize("path", ["timeline/", "leases/default/busy/", "holders/"])
def test_ranges_of_minutes_are_chosen_by_keyboard(
    server: Server, page: Page, path: str, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{server.url}/c/embedded/{path}")
    ranges = page.get_by_role("group", name="Range")
    for label, value in (("15 min", "15m"), ("5 min", "5m")):
        chip = ranges.get_by_role("link", name=label, exact=True)
        chip.focus()
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(f"range={value}"))
        expect(ranges.locator("[aria-current]")).to_have_text(label)


def test_the_history_has_ranges_of_minutes(server: Server, page: Page) -> None:
    page.goto(f"{server.url}/c/embedded/history/")
    page.locator("select[name=range]").select_option(label="Last 5 min")
    page.wait_for_url(re.compile("range=5m"))


def brush_of(server: Server, page: Page) -> timedelta:
    """Open a stretch of 4 h with the brush in focus. Returns how far an arrow key moves it."""
    page.goto(stretch(server, **{"q": "busy", "from": text_of(5), "to": text_of(1)}))
    page.locator(".brush .win").focus()
    ends = page.locator(".brush").evaluate("el => [el.dataset.start, el.dataset.end]")
    return timedelta(seconds=(float(ends[1]) - float(ends[0])) / 100)


def test_the_brush_keeps_the_focus_while_arrows_move_it(server: Server, page: Page) -> None:
    step, window = brush_of(server, page), page.locator(".brush .win")
    for steps in (1, 2):
        changed = other_stretch(page)
        page.keyboard.press("ArrowRight")
        page.wait_for_url(changed)
        drawn_brush(page).wait_for()
        expect(window).to_be_focused()
        assert moment(asked(page, "from")) - moment(text_of(5)) == steps * step
    changed = other_stretch(page)
    page.keyboard.press("Shift+ArrowLeft")
    page.wait_for_url(changed)
    drawn_brush(page).wait_for()
    assert length(page) == timedelta(hours=4) - step
    expect(window).to_be_focused()


def test_arrows_go_on_from_where_they_are_while_an_answer_is_under_way(
    server: Server, page: Page
) -> None:
    step = brush_of(server, page)
    held: list[Route] = []
    page.route(
        lambda url: "from=" in url,
        lambda route: route.continue_() if held else held.append(route),
    )
    with page.expect_request(re.compile("from=")):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    held[0].continue_()
    two = moment(text_of(5)) + 2 * step
    page.wait_for_url(lambda url: moment(parse_qs(urlsplit(url).query)["from"][0]) == two)
    drawn_brush(page).wait_for()
    expect(page.locator(".brush .win")).to_be_focused()


def test_window_and_playhead_tell_times_as_a_person_would(server: Server, page: Page) -> None:
    page.goto(stretch(server))
    clock, day = r"\d\d:\d\d", r"(\d+ \w+ \d{4} )?"
    window, head = page.locator(".brush .win"), page.locator(".playhead")
    told = re.compile(f"^{day}{clock} to {day}{clock} UTC, 6 h$")
    expect(window).to_have_attribute("aria-valuetext", told)
    last_month = now() - timedelta(days=40)
    at = f"{last_month:%Y-%m-%d}T03:12:40Z"
    page.goto(url_of(server, f"range=1h&at={at}"))
    told = re.compile(rf"^{last_month.day} \w+ {last_month.year} 03:12:40 UTC, ")
    expect(head).to_have_attribute("aria-valuetext", told)
    expect(window).to_have_attribute("aria-valuetext", re.compile(" 02:42 to 03:42 UTC, 1 h$"))
