"""The timeline under the hand: playhead, brush, pages, links; and without any script."""

from __future__ import annotations

import re
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, Route, expect

from tests.browser.judgements import BOXES
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
from tests.browser.visits import Visits, reload_until
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, wait_for

ONE = "handed-over"  # fifty lanes more cost much, and show no more of a playhead
LANE = f'[data-lane="default/{ONE}"]'
AS_OF = f"{LANE} [data-as-of]"


def test_a_deep_link_shows_who_held_it_then_and_puts_the_playhead_there(
    server: Server, page: Page
) -> None:
    page.goto(stretch(server, q=ONE, at=text_of(4.5)))
    expect(page.locator(AS_OF)).to_have_text("cp-1")
    head, field = page.locator(".playhead"), page.locator(".playfield")
    expect(head.locator("output")).to_contain_text(text_of(4.5)[11:19])
    at, box = head.bounding_box(), field.bounding_box()
    assert at
    assert box
    share = (at["x"] + at["width"] / 2 - box["x"]) / box["width"]
    assert abs(share - 0.25) < 0.01
    tick = page.locator(".tl-head .ax").nth(2)
    at_tick = tick.evaluate("(text) => text.parentElement.x.baseVal.valueInSpecifiedUnits / 100")
    page.goto(stretch(server, q=ONE, at=text_of(round(6 * (1 - at_tick), 4))))
    page.locator(".playhead[aria-valuetext]").wait_for()
    assert page.evaluate(BOXES) == []


# The labels of terms and bands that reach beyond their bar, at this width.
BEYOND = """() => [...document.querySelectorAll(":is(.term, .band) > text")]
  .filter((text) => {
    const bar = text.parentElement.querySelector(".fill").getBoundingClientRect();
    const words = text.getBoundingClientRect();
    return words.width && (words.left < bar.left - 1 || words.right > bar.right + 1);
  })
  .map((text) => text.textContent)"""
LABELS = """() => [...document.querySelectorAll("[data-lane='default/lane-00'] .term > text")]
  .map((text) => text.textContent)"""


def test_labels_of_a_narrow_lane_are_cut_in_the_middle(server: Server, page: Page) -> None:
    page.goto(stretch(server, sort="name", q="lane-0"))
    for width, ends in (
        (1440, ["r88ds", "9c2t9"]),
        (1024, ["r88ds", "9c2t9"]),
        (390, ["r88ds", ""]),
    ):
        page.set_viewport_size({"width": width, "height": 844})
        wait_for(lambda: page.evaluate(BEYOND) == [], what=f"labels that fit at {width}")
        assert [label[-5:] for label in page.evaluate(LABELS)] == ends


def test_a_click_on_a_lane_moves_the_playhead_and_the_url(server: Server, page: Page) -> None:
    page.goto(stretch(server))
    expect(page.locator(AS_OF)).to_have_text("cp-2")
    lane = page.locator(f"{LANE} svg.lane")
    box = lane.bounding_box()
    assert box
    lane.click(position={"x": box["width"] * 3.2 / 6, "y": 17})
    expect(page.locator(AS_OF)).to_have_text("no holder")
    expect(page.locator("[data-nobody]")).to_have_text("1")
    page.wait_for_url(re.compile("at="))
    assert abs(moment(asked(page, "at")) - (now() - timedelta(hours=2.8))) < timedelta(minutes=2)
    page.reload()
    expect(page.locator(AS_OF)).to_have_text("no holder")


def test_where_changes_lie_too_thick_the_server_says_who_held_it(
    server: Server, page: Page
) -> None:
    page.goto(stretch(server, q="busy", at=text_of(1.7)))
    as_of = page.locator('[data-lane="default/busy"] [data-as-of]')
    expect(as_of).to_have_text("cp-1")
    page.locator(".playhead").focus()
    for _ in range(2):  # each time htmx replaces the cell and the sign
        with page.expect_response(re.compile("at=")):
            page.keyboard.press("PageUp")
        expect(as_of).to_have_text(re.compile(r"^\s*cp-[12]\s*$"))
        expect(page.locator('[data-lane="default/busy"] [data-dot]')).to_have_class("is-held")
    page.keyboard.press("End")
    expect(as_of).to_have_text("cp-2")


def test_an_answer_about_another_instant_is_not_drawn(server: Server, page: Page) -> None:
    page.goto(stretch(server, q="busy"))
    held: list[Route] = []
    page.route(
        lambda url: "at=" in url,
        lambda route: route.continue_() if held else held.append(route),
    )
    axis = page.locator(".tl-head svg.fluid")
    box = axis.bounding_box()
    assert box

    def click(hours_ago: float) -> None:
        axis.click(position={"x": box["width"] * (6 - hours_ago) / 6, "y": 17})

    with page.expect_request(re.compile("at=")):
        click(1.6)
    wait_for(lambda: "at=" in page.evaluate("location.search"), what="the instant in the address")
    click(0.5)  # here the page knows who held it, and asks nobody
    as_of = page.locator('[data-lane="default/busy"] [data-as-of]')
    expect(as_of).to_have_text("cp-2")
    with page.expect_response(re.compile("at=")):
        wrong = as_of.evaluate("el => el.outerHTML").replace("cp-2", "wrong")
        held[0].fulfill(body=f"<table><tr>{wrong}</tr></table>{wrong}", content_type="text/html")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => done()))")
    expect(as_of).to_have_text("cp-2")
    click(1.4)
    expect(as_of).to_have_text(re.compile(r"^\s*cp-[12]\s*$"))


def test_the_playhead_is_dragged_by_the_mouse(server: Server, page: Page) -> None:
    page.goto(stretch(server, q=ONE, at=text_of(1)))
    head = page.locator(".playhead[aria-valuetext] output")  # its script is there
    axis = page.locator(".tl-head svg.fluid")
    head.hover()
    page.mouse.down()
    for share in (5, 4, 3, 2, 1):
        sixth = axis.evaluate("(axis) => axis.getBoundingClientRect().width / 6")
        axis.hover(position={"x": share * sixth, "y": 10}, force=True)  # the playhead lies over it
    page.mouse.up()
    expect(page.locator(AS_OF)).to_have_text("cp-1")
    page.wait_for_url(
        lambda url: moment(parse_qs(urlsplit(url).query)["at"][0]) < now() - timedelta(hours=4.9)
    )


def test_the_playhead_is_moved_by_keys(server: Server, page: Page) -> None:
    page.goto(stretch(server, q=ONE, at=text_of(4)))
    head = page.locator(".playhead")
    head.focus()
    start = (now() - timedelta(hours=4)).timestamp()
    steps = {
        "ArrowRight": 10, "ArrowLeft": -10, "Shift+ArrowRight": 600, "PageDown": -600,
        "PageUp": 600, "Shift+ArrowLeft": -600,
    }  # fmt: skip
    expected = start
    for key, step in steps.items():
        page.keyboard.press(key)
        expected += step
        expect(head).to_have_attribute("aria-valuenow", f"{expected:.0f}")
    page.keyboard.press("Home")
    expect(page.locator(AS_OF)).to_have_text("did not exist")
    page.keyboard.press("End")
    expect(page.locator(AS_OF)).to_have_text("cp-2")
    expect(head).to_have_attribute("aria-valuetext", re.compile("UTC, 0 of"))
    page.wait_for_url(lambda url: parse_qs(urlsplit(url).query)["at"] == [text_of(0)])


def test_signs_and_finding_go_with_the_playhead(server: Server, page: Page) -> None:
    """As the server draws them: nothing is claimed of the hour before anybody watched."""
    page.goto(stretch(server, **{"from": text_of(7), "at": text_of(4)}))
    dot = page.locator('[data-lane="default/handed-over"] [data-dot]')
    finding = page.locator("[data-instant]")
    expect(dot).to_have_class("is-held")
    head = page.locator(".playhead")
    head.focus()
    page.keyboard.press("Home")
    expect(finding).to_have_text("Nobody watched then")
    expect(finding).to_have_class("state is-late")
    expect(dot).to_have_class("is-deleted")
    assert str(dot.get_attribute("title")).endswith("did not exist")
    page.goto(stretch(server, **{"from": text_of(7), "at": text_of(3.05)}))
    expect(dot).to_have_class("is-held")
    page.locator(".playhead").focus()
    page.keyboard.press("PageUp")  # 03:00 + 7 min: it has expired, cp-2 comes 13 min later
    expect(dot).to_have_class("is-expired")
    page.wait_for_url(
        lambda url: moment(parse_qs(urlsplit(url).query)["at"][0]) > now() - timedelta(hours=3)
    )
    expect(finding).to_have_text("1 of 50 drawn without a holder")  # 12 are on the next page
    expect(finding).to_have_class("state is-expired")
    page.reload()
    expect(dot).to_have_class("is-expired")
    expect(finding).to_have_text("1 of 62 without a holder")


def test_a_lock_that_nobody_held_is_no_trouble_at_the_playhead(server: Server, page: Page) -> None:
    page.goto(stretch(server, kind="lock", at=text_of(3.05)))
    finding = page.locator("[data-instant]")
    expect(finding).to_have_class("state is-held")
    page.locator(".playhead[aria-valuetext]").focus()
    page.keyboard.press("PageUp")
    for _ in range(2):  # as the script draws it, and the server
        expect(finding).to_have_text("1 of 1 without a holder")
        expect(finding).to_have_class("state is-vacant")
        page.wait_for_url(
            lambda url: moment(parse_qs(urlsplit(url).query)["at"][0]) > now() - timedelta(hours=3)
        )
        page.reload()


def test_the_brush_draws_moves_and_takes_back_a_stretch(server: Server, page: Page) -> None:
    page.goto(stretch(server, q=ONE))
    before = page.url
    brush = page.locator(".brush:has(.win[aria-valuenow])")  # its script is there
    box = brush.bounding_box()
    assert box
    brush.hover(position={"x": box["width"] * 0.2, "y": 8}, force=True)
    page.mouse.down()
    for share in (0.22, 0.25, 0.3):
        brush.hover(position={"x": box["width"] * share, "y": 8}, force=True)
    page.mouse.up()
    page.wait_for_url(lambda url: url != before)
    length = moment(asked(page, "to")) - moment(asked(page, "from"))
    strip = timedelta(hours=6, minutes=15)  # from the first watched quarter of an hour on
    assert abs(length - strip / 10) < timedelta(minutes=5)
    drawn = page.url
    window = drawn_brush(page).locator(".win[aria-valuenow]")
    window.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(lambda url: url != drawn)
    assert moment(asked(page, "to")) - moment(asked(page, "from")) == length
    back(page)
    page.wait_for_url(drawn)
    back(page)
    page.wait_for_url(before)
    expect(page.locator(AS_OF)).to_have_text("cp-2")


def test_keys_zoom_around_the_playhead(server: Server, page: Page) -> None:
    page.goto(stretch(server, q=ONE, at=text_of(4.5)))
    page.keyboard.press("+")
    page.wait_for_url(lambda url: parse_qs(urlsplit(url).query)["from"] != [text_of(6)])
    assert moment(asked(page, "to")) - moment(asked(page, "from")) == timedelta(hours=3)
    expect(page.locator(AS_OF)).to_have_text("cp-1")


def test_pages_of_lanes_have_urls_and_keep_the_playhead(server: Server, page: Page) -> None:
    page.goto(stretch(server, sort="name"))
    expect(page.locator("[data-lane]")).to_have_count(50)
    page.locator(".playhead").focus()
    page.keyboard.press("Home")
    page.wait_for_url(re.compile("at="))
    page.get_by_role("link", name="Next").click()
    page.wait_for_url(re.compile("page=2"))
    expect(page.locator("[data-lane]")).to_have_count(12)
    assert asked(page, "at") == text_of(6)
    expect(page.locator(".playhead output")).to_contain_text(text_of(6)[11:19])
    back(page)
    expect(page.locator("[data-lane]")).to_have_count(50)


def test_a_board_that_was_given_room_is_drawn_anew_without_inline_styles(
    server: Server, page: Page
) -> None:
    """As `steady.js` gives it; what the console complains of fails the test."""
    page.goto(stretch(server, q=ONE))
    page.locator(".playhead[aria-valuetext]").wait_for()
    page.evaluate("document.getElementById('board').style.minHeight = '2000px'")
    page.locator("[data-at-input]").fill(text_of(4))
    page.get_by_role("button", name="As of").click()
    expect(page.locator(AS_OF)).to_have_text("cp-1")
    assert page.locator("#board").get_attribute("style") is None


def test_without_any_script_the_instant_is_asked_by_a_form(server: Server, visits: Visits) -> None:
    page = visits.page(java_script_enabled=False)
    page.goto(stretch(server, q=ONE))
    expect(page.locator(".overlay .at-line")).to_have_count(1)
    page.locator("[data-at-input]").fill(text_of(4))
    page.get_by_role("button", name="As of").click()
    expect(page.locator(AS_OF)).to_have_text("cp-1")
    assert asked(page, "from") == text_of(6)
    page.get_by_role("link", name="Table").click()
    expect(page.locator("table.words")).to_contain_text("no holder")


def test_a_timeline_of_now_moves_on_when_a_lease_changes_hands(server: Server, page: Page) -> None:
    api = LeaseApi(server.kubeconfig)
    api.create("live-one", holder="cp-7", transitions=1)
    page.goto(url_of(server, "range=1h&q=live-one"))
    lane = page.locator('[data-lane="default/live-one"]')
    reload_until(page, lane.count, what="the lane")
    loaded_at = page.evaluate("performance.timeOrigin")
    expect(lane.locator("[data-as-of]")).to_have_text("cp-7")
    api.take("live-one", holder="cp-8", transitions=2)
    expect(lane.locator("[data-as-of]")).to_have_text("cp-8")
    assert page.evaluate("performance.timeOrigin") == loaded_at, "the page was reloaded"
