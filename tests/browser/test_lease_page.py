"""One Lease's page in a real browser: live, without a script, by keyboard, back and forward."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from playwright.sync_api import expect

from dashboard.parts.time_range import SHORTEST
from tests.browser.visits import reload_until
from tests.support.api_client import LeaseApi, timestamp
from tests.support.processes import wait_for

CANDIDATES = "/apis/coordination.k8s.io/v1beta1/namespaces/default/leasecandidates"
PATH = "/c/embedded/leases/default/story/"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def story(api: LeaseApi) -> Iterator[LeaseApi]:
    """A Lease held by cp-1, for 59 s from its last renewal."""
    api.create("story", holder="cp-1", duration=59)
    yield api
    api.delete("story")


def seconds(text: str) -> float:
    return float(re.findall(r"[\d.]+", text)[0])


def test_the_first_paint_needs_no_script(story, visits):
    page = visits.open(PATH, java_script_enabled=False)
    expect(page.locator("h1")).to_have_text("story")
    expect(page.locator("#head")).to_contain_text("If the holder died now, others may acquire it")
    expect(page.locator("#facts")).to_contain_text("leaseDurationSeconds")
    expect(page.locator("#yaml")).to_contain_text("holderIdentity: cp-1")
    past = page.locator("#past")
    reload_until(page, lambda: "1 term since" in past.inner_text(), what="its history")
    page.get_by_role("link", name="Ask the cluster for candidates").click()
    expect(page.locator("h1")).to_have_text("What the cluster says of story")
    expect(page.locator("#asked")).to_contain_text("There are none.")


def test_a_change_of_holder_arrives_without_a_reload(story, visits):
    page = visits.open_live(f"{PATH}?range=1h")
    loaded_at = page.evaluate("performance.timeOrigin")
    story.take("story", holder="cp-2", transitions=1)
    expect(page.locator("#head .says")).to_contain_text("cp-2")
    expect(page.locator("#changes li").first).to_contain_text("passed to cp-2")
    terms = page.locator("#past .terms tbody tr")
    expect(terms.nth(0)).to_contain_text("cp-2")
    expect(terms.nth(1)).to_contain_text("replaced while it still held")
    expect(page.locator("#facts")).to_contain_text("cp-2")
    assert page.evaluate("performance.timeOrigin") == loaded_at


NO_MINUTES = """() => {
  const real = setInterval;
  window.setInterval = (what, ms) => (ms === 60_000 ? 0 : real(what, ms));
}"""


def test_where_the_holder_runs_follows_the_holder(story, visits):
    page = visits.open_live(PATH)
    place = page.locator("#place")
    expect(place).to_contain_text("There is no Pod cp-1")
    story.take("story", holder="cp-2", transitions=1)
    expect(place).to_contain_text("There is no Pod cp-2")
    story.take("story", holder="cp-3", transitions=2)
    expect(place).to_contain_text("There is no Pod cp-3")
    expect(page.locator("#asked")).to_have_count(1)


def test_the_lane_goes_on_with_the_clock(story, visits):
    """Not only each minute, and also while renewals draw other parts of the page."""
    page = visits.page(script=f"({NO_MINUTES})()")
    page.goto(f"{visits.url}{PATH}?range=5m")
    lane = page.locator("[data-zoomer]")
    ends = {lane.get_attribute("data-end")}

    def lane_moved() -> bool:
        story.patch("story", renewTime=timestamp())
        ends.add(lane.get_attribute("data-end"))
        return len(ends) > 2

    wait_for(lane_moved, what="the lane to move on", every=0.5)


def test_the_figures_of_who_held_it_go_on_with_its_table(api, visits):
    api.create("one-term", holder="cp-1", duration=59)
    live = visits.open_live("/c/embedded/leases/default/one-term/?range=1h")
    longest = live.locator("#past dl.figures div", has_text="Longest").locator("b")
    expect(longest).to_contain_text(" s")  # history has the term
    page = visits.page(script="window.fetch = XMLHttpRequest.prototype.send = () => {}")
    page.goto(f"{visits.url}/c/embedded/leases/default/one-term/?range=1h")
    longest = page.locator("#past dl.figures div", has_text="Longest").locator("b")
    first = seconds(longest.inner_text())
    wait_for(lambda: seconds(longest.inner_text()) > first + 1, what="the figure to go on")
    both = "() => ['dl.figures b[data-since]', '.terms [data-since]']"
    both += ".map((one) => document.querySelector(`#past ${one}`).textContent)"
    one, other = page.evaluate(both)
    assert one == other
    api.delete("one-term")


def test_the_numbers_go_on_with_the_clock_and_back_with_a_renewal(story, visits):
    page = visits.open_live(PATH)
    first = page.locator("#head .about b").first
    begun = seconds(first.inner_text())
    wait_for(lambda: seconds(first.inner_text()) <= begun - 2, what="the forecast to count down")
    story.take("story", holder="cp-1", transitions=0)
    wait_for(lambda: seconds(first.inner_text()) > begun - 1, what="the forecast after a renewal")


def test_an_expiry_and_a_deletion_turn_the_head(api, visits):
    api.create("short", holder="cp-1", duration=2)
    page = visits.open_live("/c/embedded/leases/default/short/")
    expect(page.locator("#head .says")).to_contain_text("Expired")
    expect(page.locator("#head .about")).to_contain_text(
        "Others have been able to acquire it since"
    )
    api.delete("short")
    expect(page.locator("#head .says")).to_contain_text("Deleted since")
    expect(page.locator("#changes li").first).to_contain_text("was deleted; last held by cp-1")


def test_a_lease_that_is_made_again_comes_back_on_open_pages(api, visits):
    path = "/c/embedded/leases/default/again/"
    api.create("again", holder="cp-1")
    before = visits.open_live(path)
    api.delete("again")
    expect(before.locator("#head .says")).to_contain_text("Deleted since")
    between = visits.page()
    between.goto(f"{visits.url}{path}")
    expect(between.locator("#head .says")).to_contain_text("Deleted since")
    expect(between.locator("[data-live-pill]")).to_contain_text("Live")
    api.create("again", holder="cp-2")
    for page in (before, between):
        expect(page.locator("#head .says")).to_contain_text("cp-2")
        expect(page.locator("#facts")).to_contain_text("cp-2")
        expect(page.locator("#yaml")).to_contain_text("cp-2")
    api.take("again", holder="cp-3", transitions=1)
    for page in (before, between):
        expect(page.locator("#head .says")).to_contain_text("cp-3")
        expect(page.locator("#facts")).to_contain_text("cp-3")


@pytest.fixture
def stand(api: LeaseApi) -> Iterator[Callable[[str, str], None]]:
    """Makes a candidate, which renews itself until the end as a living one does."""
    names: list[str] = []
    stopped = Event()

    def stand(name: str, version: str) -> None:
        spec = {
            "leaseName": "elected", "binaryVersion": "1.37.0", "emulationVersion": version,
            "strategy": "OldestEmulationVersion", "renewTime": timestamp(),
        }  # fmt: skip
        meta = {"name": name, "namespace": "default"}
        api.send("POST", CANDIDATES, {"metadata": meta, "spec": spec})
        names.append(name)

    def renew() -> None:
        while not stopped.wait(0.5):
            for name in tuple(names):
                spec = {"spec": {"renewTime": timestamp()}}
                api.send("PATCH", f"{CANDIDATES}/{name}", spec, "application/merge-patch+json")

    with ThreadPoolExecutor(1) as living:
        renewing = living.submit(renew)
        yield stand
        stopped.set()
        renewing.result()


def test_candidates_come_after_the_page_and_are_asked_again(api, visits, stand):
    api.create("elected", holder="cp-1", strategy="OldestEmulationVersion")
    stand("cp-1", "1.36.0")
    page = visits.open_live("/c/embedded/leases/default/elected/")
    asked = page.locator("#asked")
    expect(asked).to_contain_text("cp-1 should win by OldestEmulationVersion.")
    expect(page.locator("#head")).not_to_contain_text("Its term was ended")
    stand("cp-2", "1.35.0")
    expect(page.locator("#head")).to_contain_text("Its term was ended: cp-2 is preferred.")
    asked.get_by_role("link", name="Ask again").click()
    expect(asked).to_contain_text("cp-2 should win by OldestEmulationVersion.")
    expect(asked.locator("tr", has_text="cp-2")).to_contain_text("preferred")


def test_a_range_is_a_url_and_back_returns_to_the_one_before(story, visits):
    page = visits.open(f"{PATH}?range=1h")
    chosen = page.locator("#past .seg [aria-current]")
    page.locator("#past .seg").get_by_role("link", name="7 d").focus()
    page.keyboard.press("Enter")
    expect(chosen).to_have_text("7 d")
    assert page.url.endswith(f"{PATH}?range=7d")
    page.go_back()
    expect(chosen).to_have_text("1 h")
    assert page.url.endswith("?range=1h")
    page.go_forward()
    expect(chosen).to_have_text("7 d")


def test_forward_before_the_scripts_run_shows_the_page_of_the_url(story, visits):
    page = visits.open(f"{PATH}?range=1h")
    page.locator("#past .seg").get_by_role("link", name="7 d").click()
    chosen = page.locator("#past .seg [aria-current]")
    expect(chosen).to_have_text("7 d")
    held = []
    script = re.compile(r"/htmx.*\.js")
    page.route(script, lambda route: route.continue_() if held else held.append(route))
    page.evaluate("history.back()")
    wait_for(lambda: held or page.wait_for_timeout(50), what="htmx of the page before")
    page.evaluate("history.forward()")
    held[0].continue_()
    expect(chosen).to_have_text("7 d")
    assert page.url.endswith("?range=7d")


def test_yaml_and_the_way_to_the_log_are_copied_as_they_stand(story, visits):
    spec = {"containers": [{"name": "main", "image": "demo:1"}]}
    story.send("POST", PODS, {"metadata": {"name": "cp-1"}, "spec": spec})
    page = visits.open(PATH, permissions=["clipboard-read", "clipboard-write"])
    copy = page.get_by_role("button", name="Copy the command: The log")  # comes after the page

    def is_there() -> bool:  # another test may have asked for the Pod just before it was made
        page.reload(wait_until="networkidle")
        return copy.count() > 0

    wait_for(is_there, what="the Pod on the page", seconds=60)
    copy.click()
    expect(page.locator("#announce")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.endswith("--namespace default logs cp-1 --container main --tail 100")
    story.send("DELETE", f"{PODS}/cp-1")
    page.get_by_role("button", name="Copy", exact=True).click()
    page.wait_for_function("navigator.clipboard.readText().then((text) => text.includes('kind:'))")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert "kind: Lease" in copied
    assert copied.strip() == page.locator("#yaml").inner_text().strip()


@pytest.mark.parametrize("width", [1440, pytest.param(390, marks=pytest.mark.long)])
def test_a_new_installation_begins_at_its_first_watched_moment(story, visits, width):
    viewport = {"width": width, "height": 900}
    page = visits.open("/c/embedded/timeline/", viewport=viewport)
    lanes = page.locator("[data-timeline]")

    def length() -> float:
        start, end = (float(str(lanes.get_attribute(f"data-{one}"))) for one in ("start", "end"))
        return end - start

    # Until then a stretch is as long as the shortest one, and begins later at each look.
    reload_until(page, lambda: length() > SHORTEST.total_seconds(), what="more than that")
    began = float(str(lanes.get_attribute("data-start")))
    assert length() < 3600
    # Nothing unwatched before it; later a busy machine may have let the process stand still.
    expect(page.locator('#board .fog[x^="0"]')).to_have_count(0)
    expect(page.locator(".tl-foot")).to_contain_text("when watching began")
    page.goto(page.url.replace("/timeline/", "/leases/default/story/"))
    expect(page.locator("#past")).to_contain_text("when it was made")
    expect(page.locator('#past .fog[x^="0"]')).to_have_count(0)
    zoomer = page.locator("[data-zoomer]")
    assert abs(float(str(zoomer.get_attribute("data-start"))) - began) < 1


STAMPS = """() => import("leaseboard/drawn").then(({ drawing }) => {
  const fetched = (stamp, headers) => {
    const xhr = { getResponseHeader: () => stamp };
    const detail = { xhr, requestConfig: { headers, elt: document.body } };
    document.dispatchEvent(new CustomEvent("htmx:beforeSwap", { detail }));
    return drawing().drawn;
  };
  const part = { "X-Regions": "head" };
  return [drawing().drawn, fetched("1-9999999999.000", part), fetched("1-1000000000.000", part),
    fetched("1-9999999999.000", {})];
})"""


def test_a_part_that_is_fetched_makes_the_page_no_newer_than_its_other_parts(visits, api):
    """Else a page that fetches one before its socket is back would lack what came in the others."""
    api.create("stamped", holder="one")
    page = visits.open("/c/embedded/leases/default/stamped/")
    before, newer, older, whole = page.evaluate(STAMPS)
    assert newer == before
    assert (older, whole) == ("1-1000000000.000", "1-9999999999.000")
