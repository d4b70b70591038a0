"""Overview, Leases and Nodes in a real browser: without a script, live, by keyboard, in the URL."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.api_client import LeaseApi
from tests.support.processes import Server, serving, wait_for
from tests.support.signing_in import sign_in_page

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
ROW = 'tr[data-key="default/{}"]'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("boards")
    with serving(folder / "data", "--no-demo") as one:
        one.wait_synced()
        yield one


@pytest.fixture(scope="module")
def api(server: Server) -> LeaseApi:
    """Elections web-1 to web-3 and heartbeats node-1 to node-3."""
    api = LeaseApi(server.kubeconfig)
    for number in (1, 2, 3):
        api.create(f"web-{number}", holder=f"pod-{number}")
        api.create(f"node-{number}", holder=f"node-{number}")
    api.send(
        "PATCH",
        "/apis/coordination.k8s.io/v1/namespaces/default/leases/web-2",
        {"metadata": {"labels": {"app": "shop"}}},
        "application/merge-patch+json",
    )
    return api


@pytest.fixture(scope="module")
def signed_in(server: Server, browser: Browser) -> str:
    context = browser.new_context()
    page = context.new_page()
    sign_in_page(page, server.printed("Sign in"))
    state = json.dumps(context.storage_state())
    context.close()
    return state


@pytest.fixture
def page(browser: Browser, signed_in: str, api: LeaseApi) -> Iterator[Page]:
    context = browser.new_context(
        storage_state=json.loads(signed_in), viewport={"width": 1440, "height": 900}
    )
    fresh = context.new_page()
    errors: list[str] = []
    fresh.on("pageerror", lambda error: errors.append(str(error)))
    yield fresh
    context.close()
    assert errors == []


def visit(page: Page, server: Server, path: str) -> None:
    """Open a page and wait until it is live."""
    page.goto(f"{server.url}/c/embedded/{path}")
    expect(page.locator("[data-live-pill]")).to_contain_text("Live")


def expect_names(page: Page, *names: str) -> None:
    expect(page.locator("tbody tr .name")).to_have_text(list(names))


def names(page: Page) -> list[str]:
    return page.locator("tbody tr .name").all_inner_texts()


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("", ["Who holds now", "web-1", "Holder changes", "was created, held by pod-1"]),
        ("leases/", ["web-1", "pod-1", "Elections 3", "node-1"]),
        ("leases/?labels=app%3Dshop", ["web-2"]),
        ("nodes/", ["Every heartbeat is in time", "Held 3 Late 0 Expired 0"]),
    ],
)
def test_a_page_tells_its_story_without_a_script(
    browser: Browser, signed_in: str, server: Server, api: LeaseApi, path: str, told: list[str]
) -> None:
    context = browser.new_context(storage_state=json.loads(signed_in), java_script_enabled=False)
    plain = context.new_page()
    plain.goto(f"{server.url}/c/embedded/{path}")
    text = re.sub(r"\s+", " ", plain.locator("main").inner_text())
    context.close()
    assert [words for words in told if words not in text] == []


def test_a_row_flashes_when_its_holder_changes_and_not_when_it_renews(
    page: Page, server: Server, api: LeaseApi
) -> None:
    visit(page, server, "leases/")
    row = page.locator(ROW.format("web-1"))
    expect(row).not_to_have_class(re.compile("moved"))
    before = row.locator("[data-observed]").get_attribute("data-observed")
    api.patch("web-1", renewTime="2026-11-20T12:00:00.000000Z")
    expect(row.locator("[data-observed]")).not_to_have_attribute("data-observed", before or "")
    # By now the socket has sent every row once, three a frame.
    expect(page.locator("tr[data-key]").nth(5)).to_be_visible()
    expect(page.locator("tr.moved")).to_have_count(0)
    api.take("web-1", holder="pod-9", transitions=1)
    expect(row).to_contain_text("pod-9")
    expect(row).to_have_class(re.compile("moved"))
    expect(row.locator(".spark")).to_have_attribute("aria-label", re.compile(r"^[2-9] changes"))


def test_filters_are_the_url_and_back_and_forward_walk_through_them(
    page: Page, server: Server, api: LeaseApi
) -> None:
    visit(page, server, "leases/")
    page.locator("#text").fill("web")
    expect(page).to_have_url(re.compile(r"leases/\?q=web$"))
    page.get_by_role("group", name="Kind").get_by_text("Elections").click()
    expect(page).to_have_url(re.compile(r"\?q=web&kind=election$"))
    page.locator('[name="labels"]').fill("app=shop")
    expect(page).to_have_url(re.compile(r"labels=app%3Dshop"))
    expect_names(page, "web-2")
    page.go_back()
    expect_names(page, "web-1", "web-2", "web-3")
    assert page.locator('[name="labels"]').input_value() == ""
    page.go_forward()
    expect_names(page, "web-2")
    page.goto(f"{page.url}&sort=-name")
    assert names(page) == ["web-2"]


def test_every_column_can_be_sorted_by_and_turned(
    page: Page, server: Server, api: LeaseApi
) -> None:
    visit(page, server, "leases/?kind=election")
    for head in page.locator("thead .sort").all_inner_texts():
        page.locator("thead").get_by_role("link", name=head, exact=True).click()
        pressed = page.locator("th[aria-sort]").filter(has_text=head)
        expect(pressed).to_have_count(1)
    page.locator("thead").get_by_role("link", name="Lease", exact=True).click()
    expect_names(page, "web-1", "web-2", "web-3")
    page.locator("thead").get_by_role("link", name="Lease", exact=True).click()
    expect_names(page, "web-3", "web-2", "web-1")


def test_the_list_is_walked_by_keyboard(page: Page, server: Server, api: LeaseApi) -> None:
    visit(page, server, "leases/?kind=election&sort=name")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "text"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.tagName") == "BODY"
    for key, name in (
        ("j", "web-1"),
        ("j", "web-2"),
        ("j", "web-3"),
        ("j", "web-3"),
        ("k", "web-2"),
    ):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.textContent") == name
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("leases/default/web-2/$"))
    page.go_back()
    expect(page).to_have_url(re.compile("kind=election&sort=name$"))


def test_an_empty_list_fills_by_itself_when_something_matches(
    page: Page, server: Server, api: LeaseApi
) -> None:
    visit(page, server, "leases/?q=latecomer")
    expect(page.locator("main")).to_contain_text("No Lease matches these filters")
    api.create("latecomer", holder="one")
    expect(page.locator(ROW.format("latecomer"))).to_be_visible()


def test_trouble_outside_the_page_is_offered_and_moves_no_row(
    page: Page, server: Server, api: LeaseApi
) -> None:
    visit(page, server, "leases/?q=web&limit=2")
    bar = page.locator("[data-elsewhere]")
    expect(bar).to_be_hidden()
    shown = names(page)
    api.create("web-4", holder="pod-4", duration=1)
    expect(bar).to_contain_text("1 new problem", timeout=10_000)
    assert names(page) == shown
    bar.click()
    expect(page.locator("tbody tr").first).to_contain_text("Expired")
    api.delete("web-4")
    expect(page.locator(ROW.format("web-4"))).to_have_class("is-deleted")


def test_the_overview_moves_without_a_reload(page: Page, server: Server, api: LeaseApi) -> None:
    visit(page, server, "")
    page.mouse.move(0, 0)
    loaded_at = page.evaluate("performance.timeOrigin")
    expect(page.locator("#attention")).not_to_contain_text("brief")
    api.create("brief", holder="pod-1", duration=1)
    expect(page.locator("#feed")).to_contain_text("brief was created")
    expect(page.locator("#attention")).to_contain_text("brief", timeout=10_000)
    expect(page.locator(".kpi.is-expired .v")).to_have_text(re.compile("[1-9]"))
    expect(page.locator("#elections")).to_contain_text("brief")
    api.delete("brief")
    expect(page.locator("#attention")).not_to_contain_text("brief", timeout=10_000)
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
    expect(page.locator("#worst")).to_contain_text("node-4", timeout=10_000)
    expect(page.locator('[data-count="heartbeat.expired"]')).to_have_text("1")
    api.delete("node-4")
    wait_for(lambda: phases(page) == [0, 0, 0, 5], what="an empty slot")


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
    browser: Browser, server: Server, api: LeaseApi
) -> None:
    names = [f"lane-{number}" for number in range(9)]
    for name in names:
        api.create(name, holder="pod-1")
    context = browser.new_context(viewport={"width": 1920, "height": 1080})
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    try:
        page.goto(server.printed("Wall"))
        lanes = page.locator("#lanes > [data-tile]:visible")
        expect(lanes).to_have_count(8)
        expect(page.locator(".w-comb p")).to_have_text("1 cell = 1 node")
        assert page.locator(".w-comb canvas").evaluate(COLOURS) > 1
        expired = page.locator('[data-count="expired"]')
        expect(expired).to_have_text("0")
        quiet = expired.evaluate("(number) => getComputedStyle(number).color")
        api.create("node-5", holder="node-5", duration=1)
        expect(page.locator("#side")).to_contain_text("node-5", timeout=10_000)
        expect(expired).to_have_text("1")
        expect(expired).not_to_have_css("color", quiet)
        expect(lanes).to_have_count(8)
        expect(page.locator("#ticker > li:visible")).to_have_count(1)
        page.evaluate(CROWD)
        api.create("node-6", holder="node-6")
        expect(page.locator("#ticker")).to_contain_text("node-6")
        assert page.evaluate("most") == 1
        assert errors == []
    finally:
        context.close()
        for name in (*names, "node-5", "node-6"):
            api.delete(name)


def test_grouping_is_part_of_the_url(page: Page, server: Server, api: LeaseApi) -> None:
    visit(page, server, "nodes/")
    page.get_by_role("group", name="Group by").get_by_text("Zone").click()
    expect(page).to_have_url(re.compile(r"nodes/\?group=zone$"))
    expect(page.locator("#groups")).to_contain_text("The Nodes have no zones")
    page.go_back()
    expect(page.locator("#groups")).to_have_count(0)
