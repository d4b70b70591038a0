"""The wall on its side and upright, with more trouble than rows."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.judgements import CLIPPED
from tests.browser.sizes.long_names import EXPIRED, GAPS, GRID, TEAM, fill
from tests.browser.visits import Profiles
from tests.support.api_client import LeaseApi, leases, timestamp
from tests.support.processes import Server, serving, wait_for

LYING, UPRIGHT = {"width": 1920, "height": 1080}, {"width": 1080, "height": 1920}
# What does not fit: content higher than its place, or a place that is off the screen.
PLACES = ".w-lane, .w-rest, .w-side, .w-comb, .w-tick, .w-top"
LOST = """(places) => [...document.querySelectorAll(places)]
  .filter((el) => el.checkVisibility())
  .filter((el) => el.scrollHeight > el.clientHeight + 2
    || el.getBoundingClientRect().bottom > innerHeight + 1
    || el.getBoundingClientRect().right > innerWidth + 1)
  .map((el) => `${el.className}: ${el.textContent.trim().slice(0, 60)}`)"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("walls") / "data", "--no-demo") as one:
        fill(LeaseApi(one.kubeconfig), heartbeats=3600)
        one.wait_synced()
        yield one


@pytest.fixture
def wall(server: Server, profiles: Profiles) -> Iterator[Page]:
    page = profiles.stranger("", LYING)
    page.goto(server.printed("Wall"))
    expect(page.locator("[data-wall-live]")).to_contain_text("Live")
    yield page
    assert profiles.leave() == []


def test_a_wall_counts_the_trouble_it_has_no_row_for_while_it_is_live(
    wall: Page, server: Server
) -> None:
    lanes, rest = wall.locator("#lanes > [data-tile]:visible"), wall.locator("[data-rest]")
    expect(rest).to_have_text(f"{len(EXPIRED) - 7} more expired")
    expect(rest).to_be_visible()
    expect(lanes).to_have_count(7)
    api = LeaseApi(server.kubeconfig)
    api.create("one-more", holder="pod-1", duration=1)
    expect(rest).to_have_text(f"{len(EXPIRED) - 6} more expired")
    api.create("nobody", holder="")
    expect(rest).to_have_text(f"{len(EXPIRED) - 6} more expired, 1 more vacant")
    for name in ("one-more", "nobody"):
        api.delete(name)
    expect(rest).to_have_text(f"{len(EXPIRED) - 7} more expired")
    for name in EXPIRED[:6]:
        api.send("DELETE", f"{leases()}/{name}")
    # Two rows are left, too few to take turns in: the last one counts the others.
    expect(rest).to_have_text(re.compile(r"^\d+ more in order$"))
    expect(lanes).to_have_count(len(EXPIRED) - 5)
    expect(lanes.last).to_contain_class("is-held")
    expect(wall.locator("[data-dots]")).to_be_hidden()
    api.create("a-young-one", holder="pod-1", duration=1)
    youngest = wall.locator("#lanes > .is-expired").last
    expect(youngest).to_have_attribute("data-tile", "default/a-young-one")
    expect(youngest.locator(".ns")).to_have_text("default")
    expect(lanes.first.locator(".ns")).to_have_text(TEAM)


def stacked(wall: Page, parts: list[str]) -> bool:
    """Whether each part is nearly as wide as an upright wall, and below the one before it."""
    script = """(parts) => parts.map((part) => {
      const { top, width } = document.querySelector(part).getBoundingClientRect();
      return [top, width];
    })"""
    places = wall.evaluate(script, parts)
    return places == sorted(places) and all(width > 900 for _, width in places)


def test_an_upright_wall_uses_its_height(wall: Page) -> None:
    lanes = wall.locator("#lanes > :visible")
    assert wall.evaluate(LOST, PLACES) == []
    wall.set_viewport_size(UPRIGHT)  # type: ignore[arg-type]
    expect(lanes).to_have_count(10)
    assert wall.evaluate(LOST, PLACES) == []
    parts = ["#counts", "#lanes", "#side", ".w-comb"]
    wait_for(lambda: stacked(wall, parts), what="parts over each other, as wide as the wall")
    # In one step: a lane that was found may be redrawn before its style is asked for.
    letters = wall.evaluate("getComputedStyle(document.querySelector('.w-lane .nm')).fontSize")
    assert float(re.sub("px", "", letters)) >= 28


SCREENS = [(1280, 720), (1920, 1080), (3840, 2160), (1080, 1920)]
# How far the sentence in the ticker reaches beyond its place, and its place beyond the screen.
BEYOND = """() => {
  const line = document.querySelector("[data-ticker] > li:not([hidden]) p");
  const { right, bottom } = line.getBoundingClientRect();
  return Math.max(line.scrollWidth - line.clientWidth, line.scrollHeight - line.clientHeight,
    right - innerWidth, bottom - innerHeight);
}"""
# How far a name in it reaches over what follows, once names were made shorter.
OVER = """async (step) => {
  const { loosen } = await import("leaseboard/cut_names");
  const line = document.querySelector("[data-ticker] > li:not([hidden]) p");
  loosen(line);
  line.dataset.fit = step;
  const names = [...line.querySelectorAll(".name, code")];
  return Math.max(...names.map((name) => name.scrollWidth - name.clientWidth));
}"""


def test_the_longest_sentence_of_the_ticker_is_whole_on_every_screen(
    wall: Page, server: Server
) -> None:
    holder = "payments-eu-west-1-worker-2-leader-59d4c9cf7d-l4xvb"
    times = {"acquireTime": timestamp(), "renewTime": timestamp()}
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 3600, "leaseTransitions": 9}
    path, kind = f"{leases(TEAM)}/{GRID[-1]}", "application/merge-patch+json"
    LeaseApi(server.kubeconfig).send("PATCH", path, {"spec": spec | times}, kind)
    taken = wall.locator("[data-ticker] > li", has_text="was taken over by")
    expect(taken).to_have_count(1)
    wall.reload()
    shown = wall.locator("[data-ticker] > li:visible")
    expect(shown).to_contain_text("without a holder")
    for step in ("cut", "short", "bare"):
        assert wall.evaluate(OVER, step) <= 1, step
    wall.reload()
    for width, height in SCREENS:
        wall.set_viewport_size({"width": width, "height": height})
        wait_for(lambda: wall.evaluate(BEYOND) <= 1, what=f"the sentence at {width}")
        wait_for(
            lambda: max(wall.evaluate(GAPS), default=0) < 1, what=f"no gap at {width}", seconds=10
        )
        wait_for(lambda: wall.evaluate(CLIPPED) == [], what=f"all of it at {width}")


# What of a row reaches out of it, or over what stands beside it.
OUT = """() => [...document.querySelectorAll(".w-lane > *")]
  .filter((cell) => cell.checkVisibility())
  .filter((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    const [text, place] = [range.getBoundingClientRect(), cell.getBoundingClientRect()];
    const row = cell.parentElement.getBoundingClientRect();
    return text.left < place.left - 1 || text.right > place.right + 1
      || text.top < row.top - 1 || text.bottom > row.bottom + 1;
  })
  .map((cell) => cell.textContent.trim())"""


def test_what_flaps_says_since_when_inside_its_row(wall: Page, server: Server) -> None:
    api, path, kind = (
        LeaseApi(server.kubeconfig),
        f"{leases()}/flips",
        "application/merge-patch+json",
    )
    holders = [f"operator-59d4c9cf7d-{one}" for one in ("9c2t9", "r88ds")]
    api.create("flips", holder=holders[0], duration=3600)
    for n in range(1, 11):
        api.send("PATCH", path, {"spec": {"holderIdentity": holders[n % 2]}}, kind)
    wall.goto(f"{server.printed('Wall')}&q=flips")
    flips = wall.locator("#lanes > .flaps")
    expect(flips.locator(".for")).to_contain_text(re.compile(r"10 changes\s*since \d\d:\d\d:\d\d"))
    for width, height in SCREENS:
        wall.set_viewport_size({"width": width, "height": height})
        wait_for(lambda: wall.evaluate(OUT) == [], what=f"rows at {width}")
        assert wall.evaluate(LOST, PLACES) == []
    api.send("DELETE", path)


# Pixels between the size of the picture of all heartbeats and the place that it is shown in.
BENT = """() => {
  const canvas = document.querySelector(".w-comb canvas");
  const by = (pixels, shown) => Math.abs(pixels - Math.round(shown * devicePixelRatio));
  const { width, height, clientWidth, clientHeight } = canvas;
  const visible = canvas.checkVisibility() && height > 50;
  return [visible, by(width, clientWidth), by(height, clientHeight)];
}"""
# A line above it comes or goes, as with the first Lease that is abandoned.
MORE = (
    "document.querySelector('#side').insertAdjacentHTML('beforeend', '<p class=w-more>1 more</p>')"
)
LESS = "document.querySelector('#side > .w-more:last-child')?.remove()"


def test_all_heartbeats_are_drawn_at_the_size_they_are_shown_at(wall: Page) -> None:
    def shown() -> bool:
        return wall.evaluate(BENT) == [True, 0, 0]

    wait_for(shown, what="a picture")
    before = wall.evaluate("document.querySelector('.w-comb canvas').clientHeight")
    for change in (MORE, LESS):
        wall.evaluate(change)
        # No time for the next message about heartbeats.
        wall.evaluate("new Promise((done) => setTimeout(done, 100))")
        assert shown(), change
    assert wall.evaluate("document.querySelector('.w-comb canvas').clientHeight") == before


def test_late_messages_set_no_countdown_back(wall: Page) -> None:
    """A server that stood still sends what it had to say before."""
    script = """async (late) => {
      const { correct, now } = await import("leaseboard/clock");
      const before = now();
      correct(before - late);
      correct(before - late);
      return now() - before;
    }"""
    assert wall.evaluate(script, 72) >= 0


def test_an_age_waits_for_a_clock_that_was_a_little_fast(wall: Page) -> None:
    """On a busy machine two messages in a row may come late: then the clock goes back."""
    script = """async () => {
      const { correct, now, scan } = await import("leaseboard/clock");
      const age = document.body.appendChild(document.createElement("time"));
      const shown = () => { scan(age); return age.textContent; };
      age.dataset.since = now() - 120.1;
      const [before, first] = [now(), shown()];
      correct(before);  // a late message that came before this does not count
      const real = performance.now;  // at once, or a message that is not late would come between
      for (const later of [600, 1200]) {
        performance.now = () => real.call(performance) + later;
        correct(before - 0.9);
      }
      performance.now = real;
      const found = [first, shown(), now() < before - 0.5];
      age.remove();
      return found;
    }"""
    first, then, went_back = wall.evaluate(script)
    assert went_back
    assert then == first


# The namespaces in the column beside the lanes that no space parts from the name.
GLUED = """() => [...document.querySelectorAll(".w-side .w-lane:has(.ns)")].filter((lane) => {
    const box = (css) => lane.querySelector(css).getBoundingClientRect();
    const letters = [...lane.querySelectorAll(".nm *")].map((one) => one.getBoundingClientRect());
    const end = Math.max(...letters.map(({ right }) => right));
    const beside = box(".ns").top < box(".nm").bottom - 2;
    return end > box(".for").left || (beside && box(".ns").left < end + 8);
  }).map((lane) => lane.textContent)"""


def test_the_name_of_an_identity_is_not_glued_to_its_namespace(wall: Page, server: Server) -> None:
    api = LeaseApi(server.kubeconfig)
    tails = ("ata7lttrydg7cjnrk772vouch2", "5miurolsy6bicqhzxm4wakyzsy")
    names = [f"apiserver-{tail}" for tail in tails]
    for name in names:
        labels = {"apiserver.kubernetes.io/identity": "kube-apiserver"}
        spec = {"holderIdentity": f"{name}_1", "leaseDurationSeconds": 1}
        spec["renewTime"] = timestamp()
        body = {"metadata": {"name": name, "labels": labels}, "spec": spec}
        api.send("POST", leases("kube-system"), body)
    expect(wall.locator(".w-side .is-expired .ns")).to_have_count(2)
    for width, height in SCREENS:
        wall.set_viewport_size({"width": width, "height": height})
        wait_for(lambda: wall.evaluate(GLUED) == [], what=f"a space at {width}")
    for name in names:
        api.send("DELETE", f"{leases('kube-system')}/{name}")


# Draws every lane anew while it is hidden, as a frame does with those of the other pages.
TURN = """async () => {
  const { layOut } = await import("leaseboard/wall_lanes");
  for (const lane of document.querySelectorAll("#lanes > [data-tile]")) {
    lane.hidden = true;
    for (const piece of lane.querySelectorAll("i")) piece.style.cssText = "";
  }
  layOut();
}"""


def test_no_gap_stands_behind_an_ellipsis_of_a_lane_that_was_hidden(wall: Page) -> None:
    expect(wall.locator("#lanes .cut").first).to_be_visible()
    wall.evaluate(TURN)
    assert max(wall.evaluate(GAPS)) < 1


# Gives calm lanes other ranks again and again: which stand in a wrong place then, and how many are
# moved for a single one.
ARRANGE = """async () => {
  const { layOut } = await import("leaseboard/wall_lanes");
  const list = document.querySelector("#lanes");
  const lanes = () => [...list.querySelectorAll(":scope > [data-tile]")];
  const known = lanes().map((lane) => [lane, lane.dataset.rank]);
  const order = (a, b) => a.dataset.rank - b.dataset.rank || (a.dataset.tile < b.dataset.tile ? -1 : 1);
  const wrong = [];
  for (let round = 0; round < 40; round += 1) {
    for (const [place, [lane]] of known.entries()) lane.dataset.rank = 10 + ((place * 7 + round * 5 + place * place) % 6);
    layOut();
    if (lanes().some((lane, place) => lane !== lanes().toSorted(order)[place])) wrong.push(round);
  }
  const seen = new MutationObserver(() => {});
  seen.observe(list, { childList: true });
  const moved = [];
  for (const [lane, rank] of [[lanes()[0], 99], [lanes().at(-1), 5], [lanes()[1], 98]]) {
    lane.dataset.rank = rank;
    layOut();
    moved.push(seen.takeRecords().reduce((sum, record) => sum + record.addedNodes.length, 0));
    if (lanes().some((one, place) => one !== lanes().toSorted(order)[place])) wrong.push(rank);
  }
  seen.disconnect();
  for (const [lane, rank] of known) lane.dataset.rank = rank;
  layOut();
  return [wrong, moved, list.lastElementChild.matches("[data-rest]")];
}"""  # noqa: E501


def test_lanes_stand_in_order_and_no_more_of_them_are_moved_than_must_be(wall: Page) -> None:
    wrong, moved, rest_is_last = wall.evaluate(ARRANGE)
    assert wrong == []
    assert moved == [1, 1, 1]
    assert rest_is_last
