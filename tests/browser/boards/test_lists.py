"""The lists of Leases: without a script, live, by keyboard, in the URL."""

from __future__ import annotations

import re
from itertools import count
from typing import Any

import pytest
from playwright.sync_api import Page, Response, Route, expect

from tests.browser.boards.conftest import names, visit
from tests.browser.judgements import NEXT_FRAME
from tests.browser.visits import Visits, reload_until
from tests.support.api_client import LeaseApi, leases, timestamp
from tests.support.processes import Server, wait_for

ROW = 'tr[data-key="default/{}"]'
# A row that is drawn anew glows no more: keep the key of every row that glowed.
KEEP_GLOWS = """() => {
  window.glowed = new Set();
  const keep = () =>
    document.querySelectorAll("tr.moved").forEach((row) => glowed.add(row.dataset.key));
  const all = { subtree: true, childList: true, attributes: true };
  new MutationObserver(keep).observe(document, all);
}"""


def regions(answer: Response) -> str | None:
    """The parts around the list that an answer draws anew."""
    return answer.request.headers.get("x-regions")


def expect_names(page: Page, *names: str) -> None:
    expect(page.locator("tbody tr .name")).to_have_text(list(names))


@pytest.mark.parametrize(
    ("path", "page_text"),
    [
        ("", ["Who holds now", "web-1", "Holder changes", "was created, held by pod-1"]),
        ("leases/", ["web-1", "pod-1", "Elections 3", "node-1"]),
        ("leases/?labels=app%3Dshop", ["web-2"]),
        ("nodes/", ["Every heartbeat is in time", "Held 3 Late 0 Expired 0"]),
    ],
)
def test_a_page_shows_everything_without_a_script(
    visits: Visits, api: LeaseApi, path: str, page_text: list[str]
) -> None:
    plain = visits.open(f"/c/embedded/{path}", java_script_enabled=False)
    text = re.sub(r"\s+", " ", plain.locator("main").inner_text())
    assert [words for words in page_text if words not in text] == []


def test_a_row_flashes_when_its_holder_changes_and_not_when_it_renews(
    page: Page, server: Server, api: LeaseApi
) -> None:
    visit(page, server, "leases/")
    row = page.locator(ROW.format("web-1"))
    page.evaluate(KEEP_GLOWS)
    before = row.locator("[data-observed]").get_attribute("data-observed")
    api.patch("web-1", renewTime="2026-11-20T12:00:00.000000Z")
    expect(row.locator("[data-observed]")).not_to_have_attribute("data-observed", before or "")
    # By now the socket has sent every row once, three a frame.
    expect(page.locator("tr[data-key]").nth(5)).to_be_visible()
    assert page.evaluate("[...glowed]") == []
    api.take("web-1", holder="pod-9", transitions=1)
    expect(row).to_contain_text("pod-9")
    wait_for(lambda: page.evaluate("glowed.has('default/web-1')"), what="the glow")
    expect(row.locator(".spark")).to_have_attribute("aria-label", re.compile(r"^[2-9] changes"))


def test_a_deleted_row_says_how_long_it_was_held_and_when_it_was_deleted(
    page: Page, server: Server, api: LeaseApi
) -> None:
    api.create("short", holder="pod-1")
    visit(page, server, "leases/?q=short")
    row = page.locator(ROW.format("short"))
    api.delete("short")
    expect(row).to_contain_class("is-deleted")
    told = row.locator(".c-held, .c-fresh")
    before = told.all_inner_texts()
    assert re.fullmatch(r"deleted \d\d:\d\d:\d\d", before[1])
    expect(row.locator(".fresh")).to_have_count(0)
    page.wait_for_timeout(700)  # of a clock that would paint every 250 ms
    assert told.all_inner_texts() == before


def test_only_the_changed_row_of_the_overview_glows(
    page: Page, server: Server, api: LeaseApi
) -> None:
    visit(page, server, "")
    page.mouse.move(0, 0)
    page.evaluate(KEEP_GLOWS)
    numbers = count(11)

    def glowed() -> list[str]:
        """Where the whole table was just to be drawn anew, it may bring a holder without a glow."""
        number = next(numbers)
        api.take("web-3", holder=f"pod-{number}", transitions=number)
        expect(page.locator(ROW.format("web-3"))).to_contain_text(f"pod-{number}")
        page.evaluate(NEXT_FRAME)
        return page.evaluate("[...glowed]")

    assert wait_for(glowed, what="the glow") == ["default/web-3"]


def test_a_row_holds_still_under_the_pointer_while_trouble_comes_and_goes(
    page: Page, server: Server, api: LeaseApi
) -> None:
    visit(page, server, "")
    row = page.locator(ROW.format("web-3"))
    trouble = page.locator("#attention li", has_text="doomed-")
    row.hover()

    def top() -> float:
        return float(row.evaluate("(row) => row.getBoundingClientRect().top"))

    before = top()
    names = [f"doomed-{n}" for n in range(5)]
    for name in names:
        api.create(name, holder=f"{name}-pod", duration=1)
    expect(trouble).not_to_have_count(0)
    assert abs(top() - before) < 2
    for name in names:
        api.delete(name)
    expect(trouble).to_have_count(0)
    assert abs(top() - before) < 2


# On the screen where it is scrolled; else in their table, above which an incident may be told.
TOPS = """(scrolled) => {
  const top = (node) => node.getBoundingClientRect().top;
  const table = document.querySelector("#elections table");
  const zero = scrolled ? 0 : top(table);
  return Object.fromEntries([...table.querySelectorAll("tbody tr")]
    .map((row) => [row.dataset.key, Math.round(top(row) - zero)]));
}"""


@pytest.mark.parametrize("scrolled", [True, False])
def test_rows_of_the_overview_hold_still_while_leases_are_deleted(
    page: Page, server: Server, api: LeaseApi, scrolled: bool
) -> None:
    names = [f"aa-{number}" for number in range(4)]
    for name in names:
        api.create(name, holder="pod-1", duration=1 if name == names[-1] else 3600)
    page.set_viewport_size({"width": 1440, "height": 480 if scrolled else 900})
    visit(page, server, "")
    rows = page.locator("#elections tbody tr")
    page.mouse.move(0, 0)
    expect(rows.first).to_contain_text("aa-3")
    expect(rows).to_have_count(7)
    if scrolled:
        page.evaluate("document.querySelector('#elections').scrollIntoView({ block: 'end' })")
        expect(rows.last).to_be_in_viewport()
    before = page.evaluate(TOPS, scrolled)
    for name in names[1:]:
        api.delete(name)
    expect(page.locator("#elections .note")).to_contain_text("4 of 4 elections")
    after = page.evaluate(TOPS, scrolled)
    assert after == {key: pytest.approx(top, abs=1) for key, top in before.items()}
    for name in names[1:]:
        expect(page.locator(ROW.format(name))).to_contain_class("is-deleted")
        expect(page.locator(ROW.format(name))).to_contain_text(re.compile(r"deleted \d\d:"))
    api.create("zz-new", holder="pod-1", duration=1)  # the list is sorted anew
    expect(rows.filter(has_text="zz-new")).to_have_count(1)
    expect(page.locator("#elections tr.is-deleted")).to_have_count(3)
    for name in ("aa-0", "zz-new"):
        api.delete(name)
    reload_until(page, lambda: rows.count() == 3, what="the others alone")
    page.set_viewport_size({"width": 1440, "height": 900})


def test_a_line_comes_once_and_in_its_place_whichever_server_sends_it(
    page: Page, server: Server, api: LeaseApi
) -> None:
    visit(page, server, "")
    lines = page.evaluate(
        """async () => {
          const { addLines } = await import("leaseboard/feed");
          const list = document.querySelector("[data-feed]");
          const line = (id, at) => `<li data-id="${id}" data-at="${at}">${id}</li>`;
          addLines([line("first", 9e9), line("third", 9e9 + 2)], 7);
          addLines([line("old", 1), line("first", 9e9), line("second", 9e9 + 1)], 5);
          return [...list.children].map((line) => line.textContent).slice(0, 4);
        }"""
    )
    assert lines[:3] == ["third", "second", "first"]
    assert "old" not in lines[3:]


def test_a_lease_that_comes_before_the_socket_opens_is_shown(
    page: Page, server: Server, api: LeaseApi
) -> None:
    held: list[Route] = []
    page.route(re.compile(r"/js/socket[.\w]*\.js"), lambda route: held.append(route))
    url = f"{server.url}/c/embedded/leases/?q=between"
    page.goto(url, wait_until="commit")
    expect(page.locator("main")).to_contain_text("No Lease matches these filters")
    api.create("between", holder="one")
    wait_for(lambda: page.request.get(f"{url}&format=json").json()["items"], what="the Lease")
    wait_for(lambda: held or page.wait_for_timeout(50), what="the page to want its socket")
    held[0].continue_()
    expect(page.locator(ROW.format("between"))).to_be_visible()
    api.delete("between")


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
    expect(bar).to_contain_text("1 new problem")
    assert names(page) == shown
    with page.expect_response(lambda answer: "list-chips" in (regions(answer) or "")):
        api.create("web-5", holder="pod-5", duration=4)
    expect(bar).to_contain_text("2 new problems")
    api.delete("web-5")
    expect(bar).to_contain_text("1 new problem")
    bar.click()
    expect(page.locator("tbody tr").first).to_contain_text("Expired")
    api.delete("web-4")
    expect(page.locator(ROW.format("web-4"))).to_contain_class("is-deleted")


COUNTED = leases("kube-system")


def make_counted(api: LeaseApi, number: int, **more: Any) -> None:
    now = timestamp()
    spec = {
        "holderIdentity": "counter",
        "acquireTime": now,
        "renewTime": now,
        "leaseTransitions": 0,
    }
    spec |= {"leaseDurationSeconds": 3600} | more
    api.send("POST", COUNTED, {"metadata": {"name": f"few-{number}"}, "spec": spec})


@pytest.mark.parametrize(
    "filtered",
    [
        "",
        pytest.param("namespace=kube-system", marks=pytest.mark.long),
        "holder=counter&phase=held",
    ],
)
def test_the_counts_of_a_list_follow_what_is_made_and_deleted(
    page: Page, server: Server, api: LeaseApi, filtered: str
) -> None:
    for number in range(3):
        make_counted(api, number)
    visit(page, server, f"leases/?{filtered}")
    rows = page.locator('tr[data-key^="kube-system/few-"]')
    reload_until(page, lambda: rows.count() == 3, what="the three")
    total, phases = page.get_by_role("group", name="Kind"), page.locator("a.chip")
    pager, bar = page.locator(".pager > span").first, page.locator("[data-elsewhere]")
    first = int(re.search(r"\d+$", pager.inner_text())[0])  # type: ignore[index]

    def expect_count(number: int, says: str = "") -> None:
        expect(total).to_contain_text(re.compile(rf"^\s*All\s+{number}\b"))
        expect(phases.filter(has_text="Held")).to_contain_text(str(number))
        expect(pager).to_have_text(says or re.compile(rf"\b{number}\s+of {number}$"))
        if filtered:
            expect(page.locator(".pager .needs-delete")).to_contain_text(f"all {number}…")

    expect_count(first)
    api.send("DELETE", f"{COUNTED}/few-0")
    expect_count(first - 1)
    make_counted(api, 3)
    expect_count(first, f"{first - 1} of {first} shown, 1 new")
    expect(bar).to_contain_text("This list may have changed")
    make_counted(api, 4, leaseDurationSeconds=1)
    expect(phases.filter(has_text="Expired")).to_contain_text("1")
    for number in (1, 2, 3, 4):
        api.send("DELETE", f"{COUNTED}/few-{number}")
    if filtered:
        expect(pager).to_have_count(0)
        expect(total).to_contain_text(re.compile(r"^\s*All\s+0"))
    else:
        expect_count(first - 3)


def test_grouping_is_part_of_the_url(page: Page, server: Server, api: LeaseApi) -> None:
    visit(page, server, "nodes/")
    page.get_by_role("group", name="Group by").get_by_text("Zone").click()
    expect(page).to_have_url(re.compile(r"nodes/\?group=zone$"))
    expect(page.locator("#groups")).to_contain_text("The Nodes have no zones")
    page.go_back()
    expect(page.locator("#groups")).to_have_count(0)


@pytest.mark.parametrize("first", ["state", "namespace"])
def test_of_two_quick_choices_the_later_one_is_shown_whichever_answer_comes_first(
    page: Page, server: Server, api: LeaseApi, first: str
) -> None:
    held: dict[str, Route] = {}

    def hold(route: Route) -> None:
        held["state" if "sort=-state" in route.request.url else "namespace"] = route

    visit(page, server, "leases/?q=web&kind=election&sort=state")
    page.route(re.compile(r"sort=(-state|namespace)$"), hold)
    for head in ("State", "Namespace"):
        page.locator("thead").get_by_role("link", name=head, exact=True).click()
    wait_for(lambda: len(held) == 2 or page.wait_for_timeout(50), what="both requests")
    for name in sorted(held, key=lambda name: name != first):
        with page.expect_response(held[name].request.url):
            held[name].continue_()
        page.wait_for_timeout(300)  # of swapping
    expect(page.locator("th[aria-sort]")).to_contain_text("Namespace")
    expect(page).to_have_url(re.compile(r"sort=namespace$"))
    expect_names(page, "web-1", "web-2", "web-3")
