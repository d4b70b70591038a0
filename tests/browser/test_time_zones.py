"""In Chromium: all times of a page are in the zone that its reader chose, also later ones.

The server is young: whatever its pages tell happened within the last minutes. So a time of day that
is not of the last minutes in the zone is one of another zone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Page, expect

from tests.browser.judgements import NEXT_FRAME
from tests.browser.visits import Visits
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, serving, wait_for
from tests.support.signing_in import form_of

BERLIN, KOLKATA = "Europe/Berlin", "Asia/Kolkata"
HOLDER = "backup at 03:12:40"  # a name is nobody's clock
YOUNG = timedelta(minutes=20)
CLOCK = re.compile(r"(?<![\d:.T-])(\d\d):(\d\d)(?::\d\d(?:\.\d+)?)?(?![\d:])")
MAIN = {
    "overview": "",
    "leases": "leases/",
    "lease": "leases/default/lost/",
    "timeline": "timeline/",
    "holders": "holders/",
    "nodes": "nodes/",
    "incidents": "incidents/",
    "history": "history/",
    "wall": "wall/",
}
# Every text, title and label, without what an axis, a whole object or a name says.
TEXTS = """() => {
  const theirs =
    "script, style, pre, code, .cut, .holder, [data-t], .hit, [data-not-live], #renewals";
  const walker = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const el = walker.currentNode.parentElement;
    if (!el.closest(theirs)) found.push(walker.currentNode.data);
  }
  for (const name of ["title", "aria-label", "aria-valuetext"]) {
    for (const el of document.querySelectorAll(`[${name}]`)) {
      if (!el.closest(theirs) && !el.querySelector(".hit")) found.push(el.getAttribute(name));
    }
  }
  const named = /backup at|…(at )?(03:)?12:40/;
  return found.filter((text) => /\\d\\d:\\d\\d/.test(text) && !named.test(text));
}"""
EXACT = """() => [...document.querySelectorAll("time[datetime]")].map(
  (el) => [el.dateTime, el.textContent.trim()])"""
MARKS = """() => [...document.querySelectorAll("[data-t]")].map(
  (el) => [el.dataset.t, el.textContent])"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("zones") / "data", "--no-demo") as one:
        one.wait_synced()
        api = LeaseApi(one.kubeconfig)
        api.create("lost", holder="pod-1", duration=1)
        api.create("named", holder=HOLDER, duration=1)
        yield one


@pytest.fixture
def api(server: Server) -> LeaseApi:
    return LeaseApi(server.kubeconfig)


def choose(page: Page, zone: str) -> None:
    page.get_by_label("Time zone").select_option(zone)
    page.get_by_role("button", name="Use this zone").click()
    named = page.locator("[data-zone-name] b")
    expect(named).to_have_text([] if zone == "UTC" else [zone.rpartition("/")[2].replace("_", " ")])


Reader = Callable[..., Page]


@pytest.fixture
def reader(visits: Visits) -> Iterator[Reader]:
    """Opens pages in the zone that was chosen first; the account is left as it was."""
    page = visits.page()
    form = f"{visits.url}/account/time-zone/"

    def send(zone: str) -> None:
        fields = form_of(page.request.get(form).text()) | {"zone": zone}
        assert page.request.post(form, form=dict(fields)).ok

    def open_in(zone: str, path: str = "") -> Page:
        send(zone)
        return visits.lead(page, path) if path else page

    yield open_in
    send("UTC")


def is_recent(text: str, zone: str) -> bool:
    """Whether each time of day in the text is one of the last minutes."""
    now = datetime.now(ZoneInfo(zone))
    for hour, minute in CLOCK.findall(text):
        at = now.replace(hour=int(hour), minute=int(minute), second=0, microsecond=0)
        since = (now - at) % timedelta(days=1)
        if not since < YOUNG and not since > timedelta(days=1) - timedelta(minutes=2):
            return False
    return True


@pytest.mark.parametrize("zone", [BERLIN, pytest.param(KOLKATA, marks=pytest.mark.long)])
def test_no_page_has_times_of_two_zones(reader: Reader, server: Server, zone: str) -> None:
    page = reader(zone)
    page.goto(f"{server.url}/c/embedded/incidents/")
    story = page.locator("a.name.says").first.get_attribute("href")
    assert story
    seen = 0
    for path in [*(f"/c/embedded/{path}" for path in MAIN.values()), story]:
        page.goto(f"{server.url}{path}")
        expect(page.locator("[data-live-pill], [data-wall-live]")).to_contain_text("Live")
        page.evaluate(NEXT_FRAME)
        texts = page.evaluate(TEXTS)
        assert [text for text in texts if not is_recent(text, zone)] == [], path
        for moment, text in page.evaluate(EXACT):
            at = datetime.fromisoformat(moment).astimezone(ZoneInfo(zone))
            if CLOCK.search(text):
                assert f"{at:%H:%M:%S}" in text, (path, moment, text)
        for moment, text in page.evaluate(MARKS):
            at = datetime.fromisoformat(moment).astimezone(ZoneInfo(zone))
            expected = f"{at:%H:%M}" if f"{at:%H:%M}" != "00:00" else f"{at.day} {at:%b}"
            assert expected in text, (path, moment, text)
        words = page.evaluate("document.body.innerText")
        assert "UTC" not in words.replace("UTC+", "").replace("\nUTC\n", "\n"), path
        seen += len(texts)
    assert seen > 30


def test_a_name_that_looks_like_a_time_stays(reader: Reader) -> None:
    page = reader(BERLIN, "/c/embedded/leases/default/named/")
    expect(page.locator(".holder").first).to_contain_text(HOLDER)


def test_a_zone_that_may_be_chosen_keeps_its_name(reader: Reader) -> None:
    page = reader(BERLIN, "/wall-links/")
    expect(page.get_by_label("Time zone").locator("option:checked")).to_have_text("UTC")


def test_a_line_and_a_row_that_come_later_are_in_the_zone(reader: Reader, api: LeaseApi) -> None:
    page = reader(KOLKATA, "/c/embedded/")
    expect(page.locator("[data-live-pill]")).to_contain_text("Live")
    api.create("latest", holder="pod-3", duration=1)
    line = page.locator('[data-feed] [data-of="default/latest"][data-change="created"] time')
    at = datetime.fromisoformat(line.get_attribute("datetime") or "").astimezone(ZoneInfo(KOLKATA))
    expect(line).to_have_text(f"{at:%H:%M:%S}")
    page.goto(page.url + "leases/?q=latest")
    expect(page.locator("[data-live-pill]")).to_contain_text("Live")
    row = page.locator('tr[data-key="default/latest"]')
    api.patch("latest", holderIdentity="")
    expect(row).to_have_class(re.compile("is-vacant"))
    assert is_recent(row.inner_text(), KOLKATA)
    assert CLOCK.search(row.inner_text())


def test_a_zone_is_chosen_by_a_form_and_one_click_leads_back_to_utc(
    reader: Reader, server: Server
) -> None:
    page = reader("UTC", "/account/time-zone/")
    choose(page, BERLIN)
    page.goto(f"{server.url}/c/embedded/history/")
    with page.expect_navigation():
        page.get_by_role("button", name="UTC", exact=True).click()
    expect(page.locator("[data-zone-name]")).to_have_count(0)
    assert page.url == f"{server.url}/c/embedded/history/"
    assert "zone" not in [one["name"] for one in page.context.cookies()]
    moment, text = page.evaluate(EXACT)[0]
    assert moment[11:19] in text


def test_the_longest_name_fits_into_the_head(reader: Reader) -> None:
    page = reader("America/Argentina/Buenos_Aires", "/c/embedded/")
    expect(page.locator("[data-live-pill]")).to_contain_text("Live")
    for width in (1920, 1600, 1440, 1366, 1280, 1024, 720, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_exact_time_is_told_on_hover(reader: Reader) -> None:
    page = reader(BERLIN, "/c/embedded/leases/default/lost/")
    time = page.locator(".feed time").first
    moment = time.get_attribute("datetime") or ""
    time.locator("a").hover()
    at = datetime.fromisoformat(moment).astimezone(ZoneInfo(BERLIN))
    expect(time.locator("a")).to_have_attribute("title", re.compile(" Berlin"))
    title = time.locator("a").get_attribute("title") or ""
    assert title.splitlines()[0].startswith(moment[:19])
    assert f"{at:%Y-%m-%dT%H:%M:%S}" in title.splitlines()[1]
    assert title.splitlines()[1].endswith(f"{at:%z}"[:3] + ":00 Berlin")


def test_what_is_typed_is_in_the_zone_and_the_url_in_utc(reader: Reader) -> None:
    page = reader(KOLKATA, "/c/embedded/history/")
    page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    page.locator("[name=since]").fill("2026-11-20 05:42")
    page.locator("[name=since]").press("Enter")
    page.wait_for_url(re.compile(r"since=2026-11-20T00(%3A|:)12(%3A|:)00Z"))
    page.reload()
    expect(page.locator("[name=since]")).to_have_value("2026-11-20 05:42:00")
    expect(page.locator("label", has=page.locator("[name=since]"))).to_contain_text("Kolkata")


def test_what_is_typed_is_in_the_zone_of_its_page(reader: Reader, server: Server) -> None:
    """Another one was chosen in another tab meanwhile."""
    page = reader(KOLKATA, "/c/embedded/history/")
    other = page.context.new_page()
    other.goto(f"{server.url}/account/time-zone/")
    choose(other, "UTC")
    other.close()
    page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    page.locator("[name=since]").fill("2026-11-20 05:42")
    page.locator("[name=since]").press("Enter")
    page.wait_for_url(re.compile(r"since=2026-11-20T00(%3A|:)12(%3A|:)00Z"))


def test_a_wall_is_in_the_zone_of_its_link(visits: Visits, server: Server) -> None:
    page = visits.open("/wall-links/")
    page.get_by_label("Name", exact=True).fill("room")
    page.get_by_label("Time zone").select_option(KOLKATA)
    page.get_by_role("button", name="Make link").click()
    address = page.get_by_label("Address of the wall of embedded").input_value()
    page.context.clear_cookies()
    page.goto(address)
    expect(page.locator(".w-clock small")).to_have_text("Kolkata")
    clock = page.locator("[data-clock]")
    wait_for(lambda: is_recent(clock.inner_text(), KOLKATA), what="its clock")


MIDNIGHT = "2026-11-20T00:00:05Z"
SENTENCES = [
    # text, zone, moment of the record, expected
    ("stopped renewing at 23:59:58", "UTC", MIDNIGHT, "stopped renewing at 23:59:58"),
    ("stopped at 23:59:58", BERLIN, MIDNIGHT, "stopped at 00:59:58"),
    ("stopped at 23:59:58", KOLKATA, MIDNIGHT, "stopped at 05:29:58"),
    ("at 19:00:00", KOLKATA, "2026-11-20T18:00:00Z", "at 21 Nov 2026 00:30:00"),
    ("at 00:30:00", BERLIN, "2026-10-25T00:30:00Z", "at 02:30:00"),
    ("at 01:30:00", BERLIN, "2026-10-25T00:30:00Z", "at 02:30:00"),
    ("at 00:59:59 and 01:00:00", BERLIN, "2026-03-29T01:00:00Z", "at 01:59:59 and 03:00:00"),
    ("x-03:12:40, 'at 03:12:40' and 10.0.0.1:03:12", BERLIN, MIDNIGHT, None),
    ("fe80::12:34 a:03:12 2026-11-20T03:12:40Z", BERLIN, MIDNIGHT, None),
    ("22:00 tomorrow, 21 Nov 2026", BERLIN, MIDNIGHT, "23:00 on 21 Nov 2026"),
    ("20 Nov 2026 23:30:00.250, UTC", BERLIN, MIDNIGHT, "21 Nov 2026 00:30:00.250, Berlin"),
]


def test_times_in_a_sentence_are_nearest_to_its_record(visits: Visits) -> None:
    said = visits.open("/views/").evaluate(
        """(given) => import("leaseboard/zones").then(({ inZone }) => given.map(
          ([text, zone, at]) => inZone(text, zone, { now: 0, near: Date.parse(at) }).written))""",
        [one[:3] for one in SENTENCES],
    )
    assert said == [expected or text for text, _, _, expected in SENTENCES]


def test_a_time_without_a_date_is_of_today(visits: Visits) -> None:
    """It gets its date where it is of another day in the zone."""
    said = visits.open("/views/").evaluate(
        """(now) => import("leaseboard/zones").then(({ inZone }) =>
          ["at 03:12", "at 19:00:00", "since 22:00"].map(
            (text) => inZone(text, "Asia/Kolkata", { now: Date.parse(now) }).written))""",
        "2026-11-20T20:00:00Z",
    )
    assert said == ["at 20 Nov 2026 08:42", "at 00:30:00", "since 20 Nov 2026 03:30"]


def test_jumps_of_clocks_are_told_on_axes_and_between_rows(visits: Visits) -> None:
    told = visits.open("/views/").evaluate(
        """() => import("leaseboard/zone_marks").then(({ markAxis, markJumps }) => {
          const main = document.querySelector("main");
          main.innerHTML = `<svg><text data-t="2026-10-25T00:00:00Z">00:00</text>
            <text data-t="2026-10-25T01:00:00Z">01:00</text>
            <text data-t="2026-10-25T22:00:00Z">22:00</text>
            <text data-t="2026-10-26T02:00:00Z">02:00</text></svg>
            <ul><li><time datetime="2026-10-25T01:30:00Z">01:30:00</time></li>
            <li><time datetime="2026-10-25T00:30:00Z">00:30:00</time></li></ul>`;
          const keep = (text, said) => (text.data = said);
          markAxis(main.querySelector("svg"), "Europe/Berlin", keep);
          markJumps("Europe/Berlin");
          const all = [...main.querySelectorAll("text, time")];
          return all.map((el) => el.dataset.jump ?? el.textContent.trim());
        })"""
    )
    marks = [
        "02:00",
        "02:00 \N{MINUS SIGN}1 hClocks go back 1 h before this mark.",
        "23:00",
        "26 Oct 03:00",
    ]
    assert told == [*marks, "01:30:00", "clocks go back 1 h"]


def test_a_field_names_the_offset_where_clocks_show_a_time_twice(visits: Visits) -> None:
    moments = ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]
    typed = visits.open("/views/").evaluate(
        """(moments) => import("leaseboard/zones").then(({ typedOf }) =>
          moments.map((moment) => typedOf("Europe/Berlin", Date.parse(moment))))""",
        moments,
    )
    assert typed == ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"]
