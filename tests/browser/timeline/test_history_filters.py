"""The filters of history: parts of names, times of day, several kinds, and what was refused."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.timeline.conftest import asked
from tests.browser.visits import Visits
from tests.support.processes import Server

PHONE, DESK = (390, 844), (1440, 900)
SIZES = pytest.mark.parametrize(
    "size",
    [
        pytest.param(PHONE, id="phone"),
        pytest.param(DESK, id="desk", marks=pytest.mark.long),
    ],
)


def open_history(server: Server, page: Page, size: tuple[int, int], query: str = "") -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(f"{server.url}/c/embedded/history/?{query}")
    if size == PHONE:  # all filters but the list are behind a button there
        page.locator(".more-filters > summary").click()


@SIZES
def test_a_part_of_a_name_finds_its_changes(
    server: Server, page: Page, size: tuple[int, int]
) -> None:
    open_history(server, page, size)
    page.locator("#text").fill("nded-ov")
    page.wait_for_url(re.compile("q=nded-ov"))
    names = page.locator("#board tbody tr .name")
    expect(names.first).to_have_text("handed-over")
    assert set(names.all_inner_texts()) == {"handed-over"}


@SIZES
def test_several_kinds_of_change_show_together(
    server: Server, page: Page, size: tuple[int, int]
) -> None:
    open_history(server, page, size, "q=handed-over")
    page.locator(".choice > summary").first.click()
    for kind in ("Expired", "Taken over"):
        page.get_by_role("checkbox", name=kind).check()
        page.wait_for_url(re.compile(f"change={kind.lower().replace(' ', '_')}"))
    page.reload()
    rows = page.locator("#board tbody tr")
    expect(rows.filter(has_text="Expired").first).to_be_visible()
    expect(rows.filter(has_text="Taken over").first).to_be_visible()
    assert rows.count() == rows.filter(has_text=re.compile("Expired|Taken over")).count()


@SIZES
def test_a_time_of_day_begins_the_stretch(
    server: Server, page: Page, size: tuple[int, int]
) -> None:
    open_history(server, page, size)
    if size == DESK:
        page.locator(".more-filters > summary").click()
    page.locator('[name="since"]').fill("00:00")
    page.locator('[name="since"]').press("Enter")
    page.wait_for_url(re.compile(r"since=[-\d]+T00%3A00%3A00Z"))
    expect(page.locator("#error-since")).to_be_empty()


@SIZES
@pytest.mark.parametrize(
    ("path", "field", "query"),
    [
        ("history/", "since", "q=handed&change=expired&until=03:30&since=yesterday"),
        ("timeline/", "at", "q=handed&at=yesterday"),
        ("leases/", "at", "q=handed&at=yesterday"),
    ],
    ids=["history", "timeline", "leases as of"],
)
def test_a_refused_field_says_why_and_all_that_was_typed_stays(
    server: Server, visits: Visits, size: tuple[int, int], path: str, field: str, query: str
) -> None:
    page = visits.page(viewport={"width": size[0], "height": size[1]})
    answer = page.goto(f"{server.url}/c/embedded/{path}?{query}")
    assert answer is not None
    assert answer.status == 400
    expect(page.locator(f"#error-{field}")).to_be_visible()
    expect(page.locator(f"#error-{field}")).to_contain_text("yesterday")
    expect(page.locator(f'input[name="{field}"]:not([type="hidden"])')).to_have_value("yesterday")
    expect(page.locator('main input[name="q"]').last).to_have_value("handed")
    assert asked(page, "q") == "handed"
    assert "status of 400" in visits.complaints.pop()


def test_an_export_is_named_by_cluster_filter_and_time(server: Server, page: Page) -> None:
    open_history(server, page, DESK, "q=handed-over")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").first.click()
    assert re.fullmatch(
        r"embedded-history-handed-over-.*\d{8}.*\.csv", download.value.suggested_filename
    ), download.value.suggested_filename
