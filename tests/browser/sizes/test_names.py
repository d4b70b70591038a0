"""No name shrinks to a letter, siblings stay apart, and a cut name is whole for everybody else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Page, expect

from tests.browser.judgements import NEXT_FRAME
from tests.browser.sizes.long_names import CERT_MANAGER, GAPS, OF_253, fill, names_seen
from tests.browser.visits import Visits
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, serving, wait_for

SIZES = [(390, 844), (1024, 768), (1200, 800), (1440, 900), (1920, 1080), (1080, 1920)]
FEWEST = 10  # letters of a name that are seen at least
LISTS = {
    "overview": "",
    "leases": "leases/",
    "leases in trouble": "leases/?phase=expired&phase=vacant&phase=late",
    "leases as they stood": "leases/?at={now:%Y-%m-%dT%H:%M:%S}Z",
    "a lease's form": f"leases/default/{OF_253[0]}/edit/",
    "a lease": f"leases/cert-manager/{CERT_MANAGER[0]}/",
    "a lease with the longest name": f"leases/default/{OF_253[0]}/",
    "timeline": "timeline/",
    "timeline as a table": "timeline/?view=table",
    "holders": "holders/",
    "nodes": "nodes/",
    "history": "history/",
    "history in sentences": "history/?view=sentences",
    "wall": "wall/",
}
NAMES = (
    ".lease .name, .lease .ns, .worst .name, .feed .name, .chips .tag, main .holder, "
    ".w-lane .nm, .w-lane .who, .w-tick .name, .w-tick code"
)
MOST_DIFFERENT = "leases", "timeline", "wall"  # how they cut names; the others are long
WITHOUT_LISTS = ("a lease's form", "timeline as a table")
# What a browser would put on the clipboard if somebody marked an element and copied it.
# Finds and copies a row at once: a renewal may draw it anew at any time.
COPIED = """(key) => {
  getSelection().selectAllChildren(document.querySelector(`tr[data-key="${key}"]`));
  const clipboardData = new DataTransfer();
  document.dispatchEvent(new ClipboardEvent("copy", { clipboardData, bubbles: true }));
  return clipboardData.getData("text/plain") || getSelection().toString();
}"""
# Puts a name on the page in places that lack a part of a pixel.
HAIR = """() => {
  const name = document.querySelector(".lease .cut");
  for (let lacks = 0.1; lacks < 1; lacks += 0.1) {
    const place = document.createElement("div");
    place.style.cssText = "position: absolute; top: 0; width: max-content";
    place.append(name.cloneNode(true));
    for (const { style } of place.querySelectorAll("i")) style.minWidth = style.maxWidth = "";
    document.body.append(place);
    place.style.width = `${place.getBoundingClientRect().width - lacks}px`;
  }
}"""
WIDER = """() => document.documentElement.scrollWidth - document.documentElement.clientWidth"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("sizes") / "data", "--no-demo") as one:
        fill(LeaseApi(one.kubeconfig))
        one.wait_synced()
        yield one


def too_short(seen: dict[str, str]) -> list[str]:
    return [
        f"{shown!r} of {whole!r}"
        for whole, shown in seen.items()
        if shown != whole and len(shown.replace("…", "")) < FEWEST
    ]


def alike(seen: dict[str, str]) -> list[str]:
    wholes: dict[str, list[str]] = {}
    for whole, shown in seen.items():
        wholes.setdefault(shown, []).append(whole)
    return [f"{shown!r} is {names}" for shown, names in wholes.items() if len(names) > 1]


@pytest.mark.parametrize(
    "name",
    [
        name if name in MOST_DIFFERENT else pytest.param(name, marks=pytest.mark.long)
        for name in LISTS
    ],
)
def test_every_name_is_told_from_its_siblings_at_every_size(name: str, visits: Visits) -> None:
    page = visits.open(f"/c/embedded/{LISTS[name].format(now=datetime.now(UTC))}")
    expect(page.locator("main")).to_be_visible()
    found = []
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        for _ in range(FRAMES):  # names are drawn anew for the new width when there is time
            page.evaluate(NEXT_FRAME)
            wrong = wrong_names(page, name)
            if not wrong:
                break
        found += [f"{width}: {line}" for line in wrong]
    assert found == []


FRAMES = 20


def wrong_names(page: Page, name: str) -> list[str]:
    seen = names_seen(page, NAMES)
    assert seen or name in WITHOUT_LISTS
    wrong = too_short(seen) + alike(seen)
    if page.evaluate(WIDER) > 0:
        wrong.append(f"{page.evaluate(WIDER)} px wider than the screen")
    return wrong


def test_no_gap_stands_behind_an_ellipsis(visits: Visits) -> None:
    page = visits.open("/c/embedded/leases/", viewport={"width": 1024, "height": 768})
    page.set_viewport_size({"width": 1440, "height": 900})
    wait_for(lambda: max(page.evaluate(GAPS)) < 1, what="names drawn anew for the new width")
    page.evaluate(HAIR)
    page.evaluate(NEXT_FRAME)
    assert max(page.evaluate(GAPS)) < 1


# A page that always has something to do, so that it is never idle.
BUSY = """window.requestIdleCallback =
  (then, { timeout } = {}) => timeout && setTimeout(then, timeout)"""


def test_no_gap_stands_below_the_fold_of_a_busy_page(visits: Visits) -> None:
    page = visits.page(viewport={"width": 1440, "height": 300}, script=BUSY)
    page.goto(f"{visits.url}/c/embedded/history/")
    expect(page.locator("main tbody tr").nth(20)).to_be_attached()
    wait_for(lambda: max(page.evaluate(GAPS)) < 1, what="names below the fold")


def test_a_cut_name_is_whole_in_its_tooltip_and_for_a_screen_reader(visits: Visits) -> None:
    page = visits.open_live("/c/embedded/leases/", viewport={"width": 1024, "height": 768})
    for name in CERT_MANAGER:
        link = page.get_by_role("link", name=name, exact=True)
        expect(link).to_have_count(1)
        expect(link.locator("xpath=..")).to_have_attribute("title", f"cert-manager/{name}")


def test_a_cut_name_is_copied_as_one_word(visits: Visits) -> None:
    page = visits.open_live("/c/embedded/leases/", viewport={"width": 1024, "height": 768})
    key = f"cert-manager/{CERT_MANAGER[0]}"
    copied = page.evaluate(COPIED, key)
    assert CERT_MANAGER[0] in copied
    holder = page.locator(f'tr[data-key="{key}"]').locator(".holder").get_attribute("title")
    assert holder
    assert holder in copied


def test_a_phone_shows_every_choice_of_phase_and_kind(visits: Visits) -> None:
    page = visits.open_live("/c/embedded/leases/", viewport={"width": 390, "height": 844})
    choices = page.locator(".filters .chips a")
    assert choices.count() >= 8
    for choice in choices.all():
        place = choice.bounding_box()
        assert place
        assert place["x"] >= 0
        assert place["x"] + place["width"] <= 390
    scrolls = "(el) => el.scrollWidth > el.clientWidth"
    assert not page.locator(".filters .chips").evaluate(scrolls)
