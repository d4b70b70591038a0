"""The pictures of all heartbeats on Overview, Nodes and the wall, live and under the pointer."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.boards.conftest import visit
from tests.browser.visits import Profiles
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, wait_for

COLOURS = """canvas => {
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size;
}"""


# How many lines of the ticker were ever seen at a time.
CROWD = """() => {
  window.most = 0;
  const look = () => {
    const lines = [...document.querySelectorAll("#ticker > li")];
    most = Math.max(most, lines.filter((line) => line.checkVisibility()).length);
    requestAnimationFrame(look);
  };
  look();
}"""


def test_the_overview_moves_without_a_reload(page: Page, server: Server, api: LeaseApi) -> None:
    visit(page, server, "")
    page.mouse.move(0, 0)
    loaded_at = page.evaluate("performance.timeOrigin")
    expect(page.locator("#attention")).not_to_contain_text("brief")
    api.create("brief", holder="pod-1", duration=1)
    expect(page.locator("#feed")).to_contain_text("brief was created")
    expect(page.locator("#attention")).to_contain_text("brief")
    expect(page.locator(".kpi.is-expired .v")).to_have_text(re.compile("[1-9]"))
    expect(page.locator("#elections")).to_contain_text("brief")
    api.delete("brief")
    expect(page.locator("#attention")).not_to_contain_text("brief")
    assert page.evaluate("performance.timeOrigin") == loaded_at


def phases(page: Page) -> list[int]:
    script = "import('leaseboard/field').then(({field}) => [...field.phases])"
    found: list[int] = page.evaluate(script)
    return found


def test_the_picture_of_all_heartbeats_is_live(page: Page, server: Server, api: LeaseApi) -> None:
    visit(page, server, "nodes/")
    wait_for(lambda: phases(page) == [0, 0, 0], what="three held heartbeats")
    wait_for(lambda: page.locator("#comb canvas").evaluate(COLOURS) > 2, what="drawn cells")
    api.create("node-4", holder="node-4", duration=1)
    wait_for(lambda: phases(page) in ([0, 0, 0, 1], [0, 0, 0, 2]), what="a fourth that runs out")
    expect(page.locator("#worst")).to_contain_text("node-4")
    expect(page.locator('[data-count="heartbeat.expired"]')).to_have_text("1")
    api.delete("node-4")
    wait_for(lambda: phases(page) == [0, 0, 0, 5], what="an empty slot")


GROUPS_ALONE = """async () => {
  const {field, takeGroups} = await import("leaseboard/field");
  takeGroups([["zone-a", field.phases.length + 50]]);
  document.dispatchEvent(new Event("visibilitychange"));  // draws
}"""


def test_the_picture_is_drawn_between_new_groups_and_their_phases(
    page: Page, server: Server
) -> None:
    visit(page, server, "nodes/")
    wait_for(lambda: len(phases(page)) >= 3, what="the picture")
    wait_for(lambda: page.locator("#comb canvas").evaluate(COLOURS) > 2, what="drawn cells")
    page.evaluate(GROUPS_ALONE)  # an error fails the test
    assert page.locator("#comb canvas").evaluate(COLOURS) > 2


def test_single_heartbeats_are_looked_into_by_pointer_and_keyboard(
    page: Page, server: Server, api: LeaseApi
) -> None:
    visit(page, server, "nodes/")
    wait_for(lambda: len(phases(page)) >= 3, what="the picture")
    canvas, tip = page.locator("#comb canvas"), page.locator("#comb .tip")
    canvas.hover(position={"x": 30, "y": 30})
    expect(tip).to_contain_text("default/node-1")
    page.mouse.move(0, 0)
    expect(tip).to_be_hidden()
    canvas.focus()
    for key in ("ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    expect(tip).to_contain_text("default/node-2")
    expect(page.locator("#announce")).to_contain_text("default/node-2: held, renewed")
    page.get_by_role("button", name="Zoom in").click()
    page.keyboard.press("Escape")
    canvas.focus()
    page.keyboard.press("+")
    page.keyboard.press("ArrowLeft")
    expect(tip).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"leases/default/node-\d/$"))


def test_the_wall_keeps_to_eight_lanes_and_pictures_all_heartbeats(
    profiles: Profiles, server: Server, api: LeaseApi
) -> None:
    names = [f"lane-{number}" for number in range(9)]
    for name in names:
        api.create(name, holder="pod-1")
    page = profiles.stranger("", {"width": 1920, "height": 1080})
    try:
        page.goto(server.printed("Wall"))
        lanes = page.locator("#lanes > [data-tile]:visible")
        expect(lanes).to_have_count(8)
        expect(page.locator(".w-comb p")).to_have_text("1 cell = 1 node")
        assert page.locator(".w-comb canvas").evaluate(COLOURS) > 1
        expired = page.locator('[data-count="unexcused.expired"]')
        expect(expired).to_have_text("0")
        quiet = expired.evaluate("(number) => getComputedStyle(number).color")
        api.create("node-5", holder="node-5", duration=1)
        expect(page.locator("#side")).to_contain_text("node-5")
        expect(expired).to_have_text("1")
        expect(expired).not_to_have_css("color", quiet)
        expect(lanes).to_have_count(8)
        expect(page.locator("#ticker > li:visible")).to_have_count(1)
        page.evaluate(CROWD)
        api.create("node-6", holder="node-6")
        expect(page.locator("#ticker")).to_contain_text("node-6")
        assert page.evaluate("most") == 1
        assert profiles.leave() == []
    finally:
        profiles.leave()
        for name in (*names, "node-5", "node-6"):
            api.delete(name)
