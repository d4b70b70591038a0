"""A controller flaps, it is 3:12: three clicks lead from the overview to a CSV of the worst Lease's
last hour, or of a stretch of one's own; by mouse and by keyboard.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.visits import Visits
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, serving, wait_for

OVERVIEW = "/c/embedded/"
WORST = "flapper"
TAKES = 12
SIZES = [(390, 844), (1024, 768), (1440, 900), (1920, 1080)]
AT_EACH_SIZE = pytest.mark.parametrize(
    "size",
    [SIZES[0], *(pytest.param(size, marks=pytest.mark.long) for size in SIZES[1:])],
    ids=lambda size: f"{size[0]}x{size[1]}",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("flapping") / "data", "--no-demo") as one:
        one.wait_synced()
        yield one


@pytest.fixture(scope="module", autouse=True)
def moments(server: Server, signed_in: Visits) -> list[datetime]:
    """When each change happened: two holders took a Lease from each other, beside a calm one."""
    page, api = signed_in.open(OVERVIEW), LeaseApi(server.kubeconfig)
    url = f"{server.url}/c/embedded/history/?format=json&lease={WORST}&limit=100"

    def written() -> list[datetime]:
        items = page.request.get(url).json()["items"]
        return sorted(datetime.fromisoformat(item["at"]) for item in items)

    def wait_written(number: int) -> None:
        wait_for(lambda: len(written()) == number, what=f"{number} changes in history")

    api.create("calm", holder="cp-3")
    api.create(WORST, holder="cp-0")
    wait_written(1)
    for number in range(1, TAKES + 1):
        api.take(WORST, holder=f"cp-{number % 2}", transitions=number)
        wait_written(number + 1)  # or several changes have the same time
    found = written()
    signed_in.leave()
    return found


class Hand:
    """Clicks with the mouse, and counts."""

    def __init__(self) -> None:
        self.clicks = 0

    def click(self, on: Locator) -> None:
        self.clicks += 1
        on.click()


def open_overview(visits: Visits, size: tuple[int, int] = (1440, 900)) -> Page:
    page = visits.open_live(OVERVIEW, viewport={"width": size[0], "height": size[1]})
    expect(worst(page)).to_have_text(WORST)
    return page


def worst(page: Page) -> Locator:
    return page.locator("#attention .attn > li").first.locator("a.name")


@contextmanager
def downloaded(page: Page) -> Iterator[list[dict[str, str]]]:
    """The rows of the CSV file that the browser saves meanwhile."""
    rows: list[dict[str, str]] = []
    with page.expect_download() as download:
        yield rows
    assert download.value.suggested_filename.startswith(f"embedded-history-default-{WORST}-")
    assert download.value.suggested_filename.endswith(".csv")
    rows += csv.DictReader(io.StringIO(Path(download.value.path()).read_text()))


def check_last_hour(rows: list[dict[str, str]]) -> None:
    assert {row["name"] for row in rows} == {WORST}
    assert len(rows) == TAKES + 1
    began = datetime.now(UTC) - timedelta(hours=1)
    assert all(datetime.fromisoformat(row["at"]) > began for row in rows)


def of_day(moment: datetime) -> str:
    return f"{moment:%H:%M:%S.%f}"


@AT_EACH_SIZE
def test_the_last_hour_by_mouse(visits: Visits, size: tuple[int, int]) -> None:
    page, hand = open_overview(visits, size), Hand()
    hand.click(worst(page))
    with downloaded(page) as rows:
        hand.click(page.get_by_role("link", name="CSV of the last hour"))
    check_last_hour(rows)
    assert hand.clicks <= 3


def test_the_last_hour_by_keyboard(visits: Visits) -> None:
    page = open_overview(visits)
    page.keyboard.press("j")
    expect(worst(page)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(WORST)
    expect(page.locator("[data-live-pill]")).to_contain_text("Live")
    with downloaded(page) as rows:
        page.keyboard.press("x")
    check_last_hour(rows)


@AT_EACH_SIZE
def test_a_stretch_by_mouse(visits: Visits, moments: list[datetime], size: tuple[int, int]) -> None:
    page, hand = open_overview(visits, size), Hand()
    hand.click(worst(page))
    form = page.get_by_role("form", name="Changes in a stretch of time")
    hand.click(form.get_by_label("From, UTC"))
    page.keyboard.type(of_day(moments[3]))
    page.keyboard.press("Tab")
    page.keyboard.type(of_day(moments[6]))
    with downloaded(page) as rows:
        hand.click(form.get_by_role("button", name="CSV"))
    assert [datetime.fromisoformat(row["at"]) for row in rows] == moments[3:6]
    assert hand.clicks == 3


def test_a_stretch_by_keyboard(visits: Visits, moments: list[datetime]) -> None:
    page = open_overview(visits)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(WORST)
    expect(page.locator("[data-live-pill]")).to_contain_text("Live")
    page.keyboard.press("s")
    page.keyboard.type(of_day(moments[3]))
    page.keyboard.press("Tab")
    page.keyboard.type(of_day(moments[6]))
    with downloaded(page) as rows:
        page.keyboard.press("Enter")
    assert [datetime.fromisoformat(row["at"]) for row in rows] == moments[3:6]


def test_a_bad_stretch_comes_back_with_the_reason_at_its_field(visits: Visits) -> None:
    page = visits.open_live(f"{OVERVIEW}leases/default/{WORST}/")
    page.keyboard.press("s")
    page.keyboard.type("tonight")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Since, UTC")).to_have_value("tonight")
    expect(page.locator("#error-since")).to_contain_text("Since cannot be 'tonight'")
    expect(page.locator("#exact")).to_contain_text(f"lease is {WORST}")
    assert "status of 400" in visits.complaints.pop()
