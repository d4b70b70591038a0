"""What open pages show of an incident as it happens: causes of lines, Attention, the wall."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import APIResponse, Locator, Page, Route, expect

from tests.browser.visits import Visits
from tests.support.api_client import LeaseApi, leases, timestamp
from tests.support.processes import Server, serving, wait_for


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("told") / "data", "--no-demo") as one:
        one.wait_synced()
        yield one


@pytest.fixture
def api(server: Server) -> LeaseApi:
    return LeaseApi(server.kubeconfig)


def steal(api: LeaseApi, name: str) -> None:
    """As `kubectl edit` does."""
    body = {"spec": {"holderIdentity": "me"}}
    path = f"{leases()}/{name}?fieldManager=kubectl-edit"
    api.send("PATCH", path, body, "application/merge-patch+json")


def line_of(page: Page, name: str) -> Locator:
    return page.locator(f'[data-of="default/{name}"][data-change="replaced"]')


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("", "of-overview"),
        pytest.param("history/", "of-history", marks=pytest.mark.long),
        pytest.param("leases/default/own/", "own", marks=pytest.mark.long),
    ],
)
def test_a_line_gets_its_cause_when_it_becomes_known(
    visits: Visits, api: LeaseApi, path: str, name: str
) -> None:
    api.create(name, holder="pod-1", duration=60)
    page = visits.open_live(f"/c/embedded/{path}")
    steal(api, name)
    line = line_of(page, name)
    expect(line).to_have_count(1)
    expect(line.locator(".why-link")).to_have_text("by hand")
    expect(line).to_contain_text("by kubectl-edit")
    line.locator(".why-link").click()
    expect(page.locator("h1")).to_contain_text("kubectl-edit")


def test_attention_speaks_of_an_incident_while_it_goes_on(visits: Visits, api: LeaseApi) -> None:
    api.create("lost", holder="one-pod_3f2a", duration=1)
    page = visits.open_live("/c/embedded/")
    attention = page.locator("#attention")
    line = attention.locator('a[href*="/incidents/"]', has_text="default/lost")
    expect(line).to_be_visible()
    other, its_page = (visits.page().context.new_page() for _ in range(2))
    its_page.goto(f"{visits.url}/c/embedded/leases/default/lost/")
    other.goto(visits.url + str(line.get_attribute("href")))
    other.get_by_role("button", name="Acknowledge").click()
    expect(attention).to_contain_text("takes care of it, since")
    expect(its_page.locator("#care")).to_contain_text("takes care of it, since")
    page.goto(other.url)
    other.get_by_role("button", name="Take back the acknowledgement").click()
    expect(page.locator("#notifications")).to_contain_text("nobody has acknowledged it")
    page.goto(f"{visits.url}/c/embedded/")
    expect(attention.locator('a[href$="/leases/default/lost/"]')).to_have_count(0)
    api.delete("lost")
    expect(attention.locator('a[href*="/incidents/"]', has_text="default/lost")).to_have_count(0)


def test_the_list_and_the_page_follow_an_incident(visits: Visits, api: LeaseApi) -> None:
    """By keyboard alone, and without loading either anew."""
    page = visits.open_live("/c/embedded/incidents/?lease=followed")
    expect(page.locator("#board .empty h2")).to_have_text("No incident matches these filters")
    api.create("followed", holder="pod-1", duration=1)
    expect(page.locator("tr[data-href] .state")).to_have_text("Going on")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/incidents/[^/]+/$"))  # loaded: its scripts take the keys
    story = page.locator("#story")
    expect(story.locator(".inc-state .state")).to_have_text("Going on")
    page.keyboard.press("n")
    page.keyboard.type("Looked at by hand.")
    taken = timestamp()
    api.patch("followed", holderIdentity="pod-2", leaseDurationSeconds=600, acquireTime=taken,
              renewTime=taken, leaseTransitions=1)  # fmt: skip
    expect(story.locator(".inc-state .state")).to_have_text("Over")
    expect(story.locator(".inc-feed li")).to_have_count(2)
    expect(page.locator("#id_text")).to_have_value("Looked at by hand.")  # it was left alone
    page.locator(".note-form .btn").press("Enter")
    expect(page.locator(".notes .said")).to_have_text("Looked at by hand.")


def test_a_wall_shows_an_incident_as_it_begins_changes_and_ends(
    visits: Visits, api: LeaseApi
) -> None:
    names = [f"walled-{number}" for number in range(4)]
    page = visits.open("/c/embedded/wall/?q=walled")
    expect(page.locator("[data-wall-live]")).to_contain_text("Live")
    for name in names:
        api.create(name, holder="walled-6bcjktn59v-q89c7_3f2a", duration=1)
    row, lanes = page.locator("#lanes > .w-incident"), page.locator("#lanes > [data-tile]")
    expect(row.locator(".nm")).to_contain_text("4 Leases")
    expect(row.locator(".sentence")).to_contain_text(names[0])
    expect(lanes).to_have_count(0)  # the sentence stands for all four
    taken = timestamp()
    api.patch(names[0], holderIdentity="walled-6bcjktn59v-q89c7_9b1c", leaseDurationSeconds=600,
              acquireTime=taken, renewTime=taken, leaseTransitions=1)  # fmt: skip
    # After 30 s it is also known that nobody takes the others.
    changed = re.compile(r"Restart in place.* 4 Leases|Scaled down.* 3 Leases")
    expect(row.locator(".nm")).to_have_text(changed)
    expect(lanes).to_have_count(1)  # of the one that is held again
    for name in names[1:]:
        api.delete(name)
    expect(row).to_have_count(0)
    expect(lanes).to_have_count(1)


def test_parts_fetched_for_another_filter_are_not_drawn(visits: Visits, api: LeaseApi) -> None:
    api.create("filtered", holder="pod-1", duration=60)
    steal(api, "filtered")
    page = visits.open_live("/c/embedded/incidents/?show=all")
    expect(page.locator("#board")).to_contain_text("default/filtered")
    held: list[tuple[Route, APIResponse]] = []

    def hold(route: Route) -> None:
        if held or "x-regions" not in route.request.headers:
            route.continue_()
        else:
            held.append((route, route.fetch()))

    page.route(re.compile(r"/incidents/[?]show=all$"), hold)
    page.evaluate("import('leaseboard/regions').then(({ refetch }) => refetch('all'))")
    wait_for(lambda: held or page.wait_for_timeout(50), what="the parts without a filter")
    page.get_by_role("link", name=re.compile(r"^Over \d")).click()
    expect(page).to_have_url(re.compile("going_on=false"))
    page.locator("h1").click()  # nothing in the list is in use
    route, response = held[0]
    with page.expect_response(route.request.url):
        route.fulfill(response=response)
    page.wait_for_timeout(500)  # of swapping
    assert page.locator("#board [aria-current]", has_text="Over").count() == 1


@pytest.mark.parametrize("first", ["time", "incidents"])
def test_an_answer_that_came_too_early_is_not_the_last(visits: Visits, first: str) -> None:
    """Of an incident the socket speaks moments before history has it."""
    no_minutes = "const real = setInterval; setInterval = (f, ms) => ms < 6e4 && real(f, ms)"
    page = visits.page(script=no_minutes)
    page.goto(f"{visits.url}/c/embedded/incidents/")
    expect(page.locator("[data-live-pill]")).to_contain_text("Live")
    held: list[Route] = []
    page.route(
        re.compile(r"/incidents/$"),
        lambda route: held.append(route) if "x-regions" in route.request.headers else None,
    )

    def refetch(cause: str) -> None:
        page.evaluate(f"import('leaseboard/regions').then(({{ refetch }}) => refetch('{cause}'))")

    def answer(number: int) -> None:
        wait_for(lambda: len(held) >= number or page.wait_for_timeout(50), what="a request")
        held[number - 1].continue_()

    refetch(first)
    if first == "time":
        refetch("incidents")
    else:
        wait_for(lambda: held or page.wait_for_timeout(50), what="the first request")
        refetch("incidents")
    answer(1)
    answer(2)
    page.unroute_all()


# Notes each length of time that gets shorter though it counts from the same moment.
WATCH_LENGTHS = """() => {
  const units = {s: 1, m: 60, h: 3600};
  const seconds = (text) => [...text.matchAll(/([\\d.]+) ([smh])/g)]
    .reduce((sum, [, number, unit]) => sum + number * units[unit], 0);
  const longest = new Map();
  window.swapped = new Set();
  window.shrank = [];
  const look = () => {
    for (const el of document.querySelectorAll("[data-tile], [data-key], #attention li")) {
      const length = el.querySelector("[data-since]");
      if (!length) continue;
      const name = (el.dataset.tile ?? el.dataset.key ?? "attention") + length.dataset.since;
      const [shown, before] = [seconds(length.textContent), longest.get(name)];
      if (before && before.el !== el) swapped.add(name);
      if (before && shown < before.shown) shrank.push([name, before.shown, shown]);
      longest.set(name, {el, shown});
    }
  };
  const all = {childList: true, characterData: true, subtree: true};
  new MutationObserver(look).observe(document, all);
}"""


# A machine that slept does not trust its clock; what is drawn meanwhile has the text of before.
DRAW_AFTER_A_SLEEP = """async () => {
  const { placeAll } = await import("leaseboard/rows");
  const real = Date.now;
  Date.now = () => real() + 45_000;
  const tile = document.querySelector("[data-tile='default/calm']");
  const old = tile.outerHTML.replace(/(data-since[^>]*>)[^<]*/, "$1long ago");
  placeAll({tile: {"default/calm": old}});
  return document.querySelector("[data-tile='default/calm'] [data-since]").textContent;
}"""


def test_lengths_never_shrink_when_parts_are_drawn_again(visits: Visits, api: LeaseApi) -> None:
    """What was drawn for an earlier page is sent to a later one with the text of then."""
    api.create("calm", holder="pod-1", duration=3600)
    api.create("spent", holder="pod-1", duration=1)
    paths = ("", "leases/", "wall/")
    page = visits.page()
    for path in paths:  # draws the parts that the board keeps
        page.goto(f"{visits.url}/c/embedded/{path}")
        calm = page.locator("[data-key='default/calm'], [data-tile='default/calm']")
        expect(calm.locator("[data-since]")).to_have_text(re.compile("^([3-9]|[1-9]\\d)|m"))
    page = visits.page(script=f"({WATCH_LENGTHS})()")
    for path in paths:
        page.goto(f"{visits.url}/c/embedded/{path}")
        wait_for(
            lambda: page.evaluate("swapped.size") or page.wait_for_timeout(50),
            what=f"a part of {path or 'the overview'} that is drawn again",
        )
        assert page.evaluate("shrank") == [], path
    assert re.match(r"[\d.]+ [sm]", page.evaluate(DRAW_AFTER_A_SLEEP))
