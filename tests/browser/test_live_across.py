"""Pages over several clusters say at once what happens in any, and never old data as live."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, Route, WebSocketRoute, expect

from tests.browser.visits import Visits
from tests.support.api_client import LeaseApi, leases
from tests.support.processes import Server, serving, wait_for
from tests.support.programs.api_process import ApiProcess

HERE, THERE = "here", "there"
LIMIT = 30_000  # ms; what no socket brings comes after a minute
MANY = 60  # more changes than the feed keeps


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
    address = there.url.replace("https://", f"http://{there.token}@")
    clusters = ("--cluster", f"{HERE}=embedded", "--cluster", f"{THERE}=url:{address}")
    with serving(tmp_path_factory.mktemp("across") / "data", "--no-demo", *clusters) as one:
        one.wait_synced()
        there.create("steady", holder="one", duration=3600)
        yield one


def live(page: Page) -> Page:
    expect(page.locator("[data-live-pill]")).to_contain_text("Live")
    page.evaluate("document.body.dataset.before = 1")
    return page


def take_over(api: LeaseApi, name: str, holder: str) -> None:
    kind = "application/merge-patch+json"
    api.send("PATCH", f"{leases()}/{name}", {"spec": {"holderIdentity": holder}}, kind)


def until_history_has(page: Page, visits: Visits, holder: str) -> None:
    """Wait until the newest change that is stored of the Lease is its take-over by `holder`."""
    address = f"{visits.url}/c/{THERE}/history/?namespace=default&lease=steady&format=json"

    def has_it() -> bool:
        items = page.request.get(address).json()["items"]
        return bool(items) and items[0]["holder"] == holder

    wait_for(has_it, what=f"the take-over by {holder} in history")


def test_history_offers_the_changes_of_any_cluster(
    visits: Visits, there: LeaseApi, server: Server
) -> None:
    page = visits.page()
    until_history_has(page, visits, "one")
    live(visits.lead(page, "/history/?range=1h"))
    bar = page.locator("[data-news]")
    expect(bar).to_be_hidden()
    take_over(there, "steady", "two")
    expect(bar).to_have_text("1 new change in these clusters · Show", timeout=LIMIT)
    take_over(there, "steady", "three")
    expect(bar).to_have_text("2 new changes in these clusters · Show")
    expect(page.locator("body[data-before]")).to_be_attached()
    until_history_has(page, visits, "three")
    bar.click()
    expect(page.locator("#board tbody tr").first).to_contain_text("three")
    expect(bar).to_be_hidden()
    take_over(there, "steady", "four")
    expect(bar).to_have_text("1 new change in these clusters · Show")
    # A page may lack what is not written yet; of the time before the start nobody knows how much.
    until_history_has(page, visits, "four")
    page.goto(f"{visits.url}/history/?cluster={HERE}")
    live(page)
    take_over(there, "steady", "five")
    LeaseApi(server.kubeconfig).create("new-here", holder="one", duration=3600)
    expect(bar).to_have_text("1 new change in these clusters · Show")


@pytest.mark.parametrize("path", ["/history/?range=1h", f"/c/{THERE}/history/?q=steady"])
def test_a_change_that_crosses_what_the_page_asks_is_counted_once(
    visits: Visits, there: LeaseApi, path: str
) -> None:
    page = visits.page().context.new_page()  # its sockets go by this test until it is closed
    held: list[str | bytes] = []
    releases: list[Callable[[], None]] = []
    holds = False
    sockets: list[WebSocketRoute] = []
    frames: list[str | bytes] = []

    def between(socket: WebSocketRoute) -> None:
        sockets.append(socket)
        onward = socket.connect_to_server()

        def hear(frame: str | bytes) -> None:
            frames.append(frame)
            socket.send(frame)

        onward.on_message(hear)
        socket.on_message(lambda said: held.append(said) if holds else onward.send(said))
        releases.append(lambda: [onward.send(said) for said in held] and None)

    page.route_web_socket(re.compile("/live/"), between)
    take_over(there, "steady", "nobody yet")
    until_history_has(page, visits, "nobody yet")
    page.goto(f"{visits.url}{path}")
    live(page)
    bar = page.locator("[data-news]")
    take_over(there, "steady", "six")
    expect(bar).to_contain_text("1 new change in ")
    until_history_has(page, visits, "six")
    holds = True
    with page.expect_response(lambda answer: "/history/" in answer.url):
        bar.click()
    expect(bar).to_be_hidden()
    wait_for(lambda: page.wait_for_timeout(50) or held, what="the page's message")
    take_over(there, "steady", "seven")
    expect(bar).to_contain_text("1 new change in ")
    holds = False
    releases[-1]()
    take_over(there, "steady", "eight")
    expect(bar).to_contain_text("2 new changes in ")
    frame = json.loads(frames[-1])
    if frame["seq"]:  # told again, with the number of an incident behind it; several have none
        number = int(bar.get_attribute("data-feed") or 0)
        frame |= {"numbers": [number], "seq": number + 1}
        sockets[-1].send(json.dumps(frame))
        expect(bar).to_have_attribute("data-feed", str(number + 1))
        expect(bar).to_contain_text("2 new changes in ")


@pytest.mark.parametrize("view", ["table", "sentences"])
def test_the_newest_changes_are_whole_after_the_page_missed_many(
    visits: Visits, there: LeaseApi, view: str
) -> None:
    address = f"/c/{THERE}/history/?view={view}"
    fresh, page = visits.page(), visits.page().context.new_page()
    sockets: list[WebSocketRoute] = []
    is_cut = False

    def between(socket: WebSocketRoute) -> None:
        sockets.append(socket)
        if is_cut:
            socket.close(code=1001)
        else:
            socket.connect_to_server()

    page.route_web_socket(re.compile("/live/"), between)
    page.goto(f"{visits.url}{address}")
    live(page)
    is_cut = True
    sockets[-1].close(code=1001)
    for number in range(MANY):
        there.create(f"{view}-{number}", holder="one", duration=3600)
    is_cut = False

    def is_whole() -> bool:
        fresh.goto(f"{visits.url}{address}")
        page.wait_for_timeout(500)
        return shown(page) == shown(fresh)

    def shown(one: Page) -> list[str]:
        found = one.locator("#changes > *").evaluate_all("all => all.map((el) => el.dataset.id)")
        return [*found, one.locator("#shown").inner_text()]

    wait_for(is_whole, what="every change, and how many there are")
    expect(page.locator("#changes")).to_contain_text(f"{view}-{MANY - 1}")
    before = page.locator("#shown").inner_text()
    take_over(there, f"{view}-1", "two")  # one by one they come alone, and are counted
    expect(page.locator("#shown")).not_to_have_text(before)
    wait_for(is_whole, what="one change more")
    expect(page.locator("body[data-before]")).to_be_attached()


@pytest.mark.parametrize(
    ("name", "path", "limit"),
    [("of-all", "history/?limit=3", 3), ("of-one", "leases/default/of-one/?range=1h", 20)],
)
def test_what_new_changes_push_off_the_page_is_behind_older(
    visits: Visits, there: LeaseApi, name: str, path: str, limit: int
) -> None:
    query = f"{visits.url}/c/{THERE}/history/?lease={name}&limit=100&format=json"
    page = visits.page().context.new_page()

    def written() -> list[str]:
        return [item["holder"] for item in page.request.get(query).json()["items"]]

    def take(holders: list[str]) -> None:
        for holder in holders:
            take_over(there, name, holder)

    there.create(name, holder="one", duration=3600)
    take([f"old-{number}" for number in range(2 * limit)])
    wait_for(lambda: len(written()) > 2 * limit, what="the changes in history")
    held: list[Route] = []
    holds = True

    def later(route: Route) -> None:
        if holds and "x-regions" in route.request.headers:
            held.append(route)
        else:
            route.continue_()

    page.route("**/*", later)
    page.goto(f"{visits.url}/c/{THERE}/{path}")
    live(page)
    rows = page.locator("#changes > *")
    expect(rows).to_have_count(limit)
    take(["new-0", "new-1", "new-2"])
    expect(rows).to_have_count(limit + 3)  # no link leads to the last ones yet
    holds = False
    for route in held:
        route.continue_()
    expect(rows).to_have_count(limit)
    expect(rows.first).to_contain_text("new-2")
    page.get_by_role("link", name="Older", exact=True).click()
    expect(rows.first).to_contain_text(written()[limit])
    expect(page.locator("body[data-before]")).to_be_attached()


def test_a_feed_without_older_pages_keeps_its_newest_lines_alone(
    visits: Visits, there: LeaseApi
) -> None:
    page = live(visits.open(f"/c/{THERE}/"))
    lines = page.locator("#feed > *")
    limit = int(page.locator("#feed").get_attribute("data-feed-limit") or 0)
    there.create("fed", holder="one", duration=3600)
    for number in range(limit + 3):
        take_over(there, "fed", f"h{number}")
    expect(lines.first).to_contain_text(f"h{limit + 2}")
    assert lines.count() == limit
    there.delete("fed")


def test_incidents_of_any_cluster_come_into_the_list(visits: Visits, there: LeaseApi) -> None:
    page = live(visits.open("/incidents/"))
    there.create("mortal", holder="cp-1_8c2e41f0-5b1d-4f0e-9a57-2d9a3c1b7e44", duration=1)
    row = page.locator("#board").get_by_text("mortal").first
    expect(row).to_be_visible(timeout=LIMIT)
    expect(page.locator("body[data-before]")).to_be_attached()
    there.delete("mortal")


def test_the_timeline_of_all_shows_a_loss_without_a_reload(visits: Visits, there: LeaseApi) -> None:
    page = live(visits.open("/timeline/?range=1h"))
    there.create("lost", holder="cp-1", duration=1)
    lane = page.locator(".tl-of").get_by_text("lost").first
    expect(lane).to_be_visible(timeout=LIMIT)
    expect(page.locator("body[data-before]")).to_be_attached()
    there.delete("lost")


def test_none_of_them_shows_old_data_as_live(visits: Visits, server: Server) -> None:
    pages = [live(visits.open(path)) for path in ("/history/", "/incidents/", "/timeline/")]
    server.process.send_signal(signal.SIGSTOP)
    try:
        for page in pages:
            band = page.locator("[data-stale-banner]")
            expect(band).to_contain_text("Not live since", timeout=8000)
            expect(page.locator("html")).to_have_attribute("data-live", "stale")
    finally:
        server.process.send_signal(signal.SIGCONT)
    for page in pages:
        expect(page.locator("[data-stale-banner]")).to_be_hidden(timeout=LIMIT)
        expect(page.locator("[data-live-pill]")).to_contain_text("Live")


def test_a_cluster_that_is_cut_off_is_named_without_a_reload(
    visits: Visits, elsewhere: ApiProcess
) -> None:
    page = live(visits.open("/incidents/"))
    said = page.locator("#not-live")
    expect(said).to_have_text("")
    elsewhere.kill()
    try:
        expect(said).to_contain_text("there", timeout=LIMIT)
        expect(page.locator("[data-live-pill]")).to_have_text("1 of 2 live")
    finally:
        elsewhere.start()
    expect(said).to_have_text("", timeout=LIMIT)
    expect(page.locator("[data-live-pill]")).to_contain_text("Live")
