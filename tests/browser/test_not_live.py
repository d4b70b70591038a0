"""A page that is not live looks like it: every state and every holder is grey."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visits import Visits
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, wait_for
from tests.support.programs.api_process import ApiProcess, pill

STORY = "leases/default/story/"
FEW = ("", f"{STORY}edit/", "nodes/")
PATHS = ("", "leases/", STORY, f"{STORY}edit/", "holders/", "nodes/", "timeline/", "history/")
# The colours of states and holders that any part of the page still has, but for the notes of a form
# (what nobody could ask, say). A probe inside the root resolves each token; what is painted is
# compared as pixels.
COLOURED = """() => {
  const canvas = Object.assign(document.createElement("canvas"), {width: 1, height: 1});
  const ctx = canvas.getContext("2d");
  const read = new Map();
  const pixel = (colour) => read.get(colour) ?? read.set(colour, painted(colour)).get(colour);
  const painted = (colour) => {
    ctx.clearRect(0, 0, 1, 1);
    ctx.fillStyle = colour;
    ctx.fillRect(0, 0, 1, 1);
    return [...ctx.getImageData(0, 0, 1, 1).data].join();
  };
  const probe = document.body.appendChild(document.createElement("i"));
  const phases = ["held", "late", "expired", "vacant", "untimed"];
  const names = phases.flatMap((one) => [one, one + "-fill"]);
  for (let hue = 1; hue <= 8; hue++) names.push("h" + hue);
  const states = new Map(names.map((name) => {
    probe.style.color = `var(--${name})`;
    return [pixel(getComputedStyle(probe).color), name];
  }));
  probe.remove();
  const found = new Set();
  for (const el of document.querySelectorAll("main *, .sprite pattern *")) {
    if (!el.checkVisibility?.() && !el.closest("pattern")) continue;
    if (el.closest("form .note-box")) continue;
    const style = getComputedStyle(el);
    for (const part of ["color", "fill", "stroke", "backgroundColor", "borderTopColor"]) {
      if (style[part] === "none") continue;
      const name = states.get(pixel(style[part]));
      if (name) found.add(`${name} on ${el.tagName}.${el.getAttribute("class")}`);
    }
  }
  return [...found];
}"""
# How far from grey the picture of all heartbeats is.
COMB = """() => {
  const canvas = document.querySelector("canvas");
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let most = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] < 90) continue;
    const [r, g, b] = [data[i], data[i + 1], data[i + 2]];
    most = Math.max(most, Math.max(r, g, b) - Math.min(r, g, b));
  }
  return most;
}"""


@pytest.fixture(scope="module")
def api_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    process = ApiProcess(tmp_path_factory.mktemp("not-live") / "api")
    yield process
    process.end(signal.SIGKILL)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, api_process: ApiProcess) -> Iterator[Server]:
    api = LeaseApi(api_process.data / "kubeconfig")
    api.create("story", holder="one")
    api.take("story", holder="two", transitions=1)
    api.create("short", holder="one", duration=1)
    api.create("free", holder="")
    api.create("node", holder="node")
    address = api.url.replace("https://", f"http://{api.token}@")
    one = Server(tmp_path_factory.mktemp("server") / "data", "--cluster", f"c=url:{address}")
    one.wait_synced()
    yield one
    if one.process.poll() is None:
        one.interrupt()


@pytest.fixture
def visits(signed_in: Visits, server: Server, api_process: ApiProcess) -> Iterator[Visits]:
    """Servers stop and die here, of which the consoles complain."""
    yield signed_in
    # Or each test after one that failed would wait.
    server.process.send_signal(signal.SIGCONT)
    if not api_process.runs:
        api_process.start()
    signed_in.leave()


@pytest.mark.parametrize(
    "paths",
    [pytest.param(FEW, marks=pytest.mark.brief), pytest.param(PATHS, marks=pytest.mark.long)],
    ids=len,
)
def test_an_empty_name_keeps_its_colour(
    visits: Visits, api_process: ApiProcess, paths: tuple[str, ...]
) -> None:
    pages = {path: visits.open_live(f"/c/c/{path}") for path in paths}
    wall = visits.open("/c/c/wall/")
    expect(wall.locator("[data-wall-live]")).to_contain_text("Live")
    clusters = visits.open("/clusters/")
    expect(clusters.locator("#rows")).to_contain_text("live since")
    assert all(one.evaluate(COLOURED) for path, one in pages.items() if path != f"{STORY}edit/")
    wait_for(lambda: pages["nodes/"].evaluate(COMB) > 60, what="a coloured picture")

    api_process.end(signal.SIGKILL)
    for one in pages.values():
        expect(one.locator("html")).to_have_attribute("data-live", "stale")
    expect(wall.locator("body")).to_have_attribute("data-live", "stale")
    expect(clusters.locator("#rows")).to_contain_text("stale since")
    for path, one in pages.items():
        assert one.evaluate(COLOURED) == [], path
    wait_for(lambda: pages["nodes/"].evaluate(COMB) < 40, what="a grey picture")
    for place in (".w-main", ".w-tick"):
        look = f"getComputedStyle(document.querySelector('{place}')).filter"
        assert "grayscale(1)" in wall.evaluate(look)
    now = pages[f"{STORY}edit/"].locator("[data-as-read]")
    read_at = now.inner_text()
    since = pages[""].locator("[data-live-pill]").inner_text()
    assert since == f"Stale since {read_at}"

    # (a) with a fresh load, (d) without a script
    bare = visits.open("/c/c/", java_script_enabled=False)
    assert "Stale since" in bare.locator("[data-live-pill]").inner_text()
    expect(bare.locator("html")).to_have_attribute("data-live", "stale")
    again = visits.page()
    for path in paths:
        again.goto(f"{visits.url}/c/c/{path}")
        assert again.evaluate(COLOURED) == [], path
    api_process.start()
    for one in pages.values():
        expect(one.locator("html")).to_have_attribute("data-live", "live")
    assert pages[""].evaluate(COLOURED)


def test_a_page_whose_server_died_turns_grey_by_itself(visits: Visits, server: Server) -> None:
    """Nobody is there to say so. A page that slept in the background says it when it is looked at:
    its clock has moved on, and its socket has not."""
    page = visits.open_live("/c/c/leases/")
    edit = visits.open_live(f"/c/c/{STORY}edit/")
    server.process.send_signal(signal.SIGSTOP)  # the sockets stay open, as those of a lost network
    for one in (page, edit):
        sleep(one, seconds=1200)
        expect(one.locator("html")).to_have_attribute("data-live", "stale", timeout=5000)
        assert "Live" not in one.locator("[data-live-pill]").inner_text()
        assert one.evaluate(COLOURED) == []
    before = edit.locator("[data-as-read]").inner_text()
    edit.wait_for_timeout(1200)
    assert edit.locator("[data-as-read]").inner_text() == before
    server.process.send_signal(signal.SIGCONT)
    expect(page.locator("[data-live-pill]")).to_contain_text("Live")
    assert re.match(r"\d\d:\d\d:\d\d", before)


def test_what_is_typed_outlives_a_server_that_is_away(visits: Visits, server: Server) -> None:
    """A form that is sent meanwhile would leave the browser's own page of errors in its place."""
    page = visits.open_live(f"/c/c/{STORY}edit/")
    page.locator("[name=duration_seconds]").fill("77")
    page.get_by_label("Reason").fill("drill")
    preview = page.get_by_role("button", name="Preview").last
    server.process.send_signal(signal.SIGSTOP)
    sleep(page, seconds=1200)
    expect(page.locator("html")).to_have_attribute("data-live", "stale")
    preview.click()
    expect(page.locator("[data-unsent]")).to_contain_text("Nothing was sent")
    expect(page.locator("[name=duration_seconds]")).to_have_value("77")
    server.process.send_signal(signal.SIGCONT)
    preview.click()
    expect(page.locator("#preview")).to_contain_text("leaseDurationSeconds: 77")
    expect(page.get_by_label("Reason")).to_have_value("drill")


def test_a_page_without_a_socket_keeps_what_is_typed_too(visits: Visits, server: Server) -> None:
    page = visits.open("/notifications/quiet/")
    page.get_by_label("Reason").fill("drill")
    button = page.get_by_role("button", name="Hold messages back")
    server.process.send_signal(signal.SIGSTOP)
    button.click()
    expect(page.locator("[data-unsent]")).to_have_text(
        "Leaseboard does not answer. Nothing was sent; what you typed stays here."
    )
    expect(page.get_by_label("Reason")).to_have_value("drill")
    server.process.send_signal(signal.SIGCONT)
    button.click()
    expect(page.get_by_role("button", name="End that of")).to_be_visible()
    expect(page.get_by_text("drill")).to_be_visible()


def sleep(page: Page, *, seconds: int) -> None:
    """As if the machine had slept: the wall clock is later, no timer ran, and one looks again."""
    page.evaluate(
        """(ms) => {
          const real = Date.now;
          Date.now = () => real() + ms;
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        seconds * 1000,
    )


def test_a_page_without_its_socket_is_grey_within_seconds(visits: Visits, server: Server) -> None:
    """A short loss only says that it reconnects; what is older than that is grey, with its time."""
    page = visits.open_live("/c/c/")
    briefly = visits.open_live("/c/c/leases/")
    wall = visits.open("/c/c/wall/")
    expect(wall.locator("[data-wall-live]")).to_contain_text("Live")
    briefly.evaluate("() => { const at = Date.now(); Date.now = () => at; }")
    server.kill()
    for one, where in ((page, "html"), (wall, "body")):
        expect(one.locator(where)).to_have_attribute("data-live", "stale", timeout=5000)
    assert re.match(r"Stale since \d\d:\d\d:\d\d$", pill(page))
    for width in (1261, 1280, 1366):  # where a part of the bar begins to be shown
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.querySelector('.topbar').scrollWidth - innerWidth") == 0
    expect(page.locator("[data-stale-banner]")).to_contain_text("The server does not answer.")
    assert page.evaluate(COLOURED) == []

    expect(briefly.locator("html")).to_have_attribute("data-live", "retry")
    assert pill(briefly) == "Reconnecting…"
    assert briefly.evaluate(COLOURED)
    briefly.evaluate("() => { const at = Date.now() + 2500; Date.now = () => at; }")
    expect(briefly.locator("html")).to_have_attribute("data-live", "stale", timeout=5000)
    assert briefly.evaluate(COLOURED) == []
