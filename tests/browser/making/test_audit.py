"""The audit trail in Chromium: filters, one row, exports; by keyboard alone and without scripts."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.making.conftest import Open
from tests.browser.visits import Visits
from tests.support.api_client import LeaseApi
from tests.support.page_fields import Fields
from tests.support.processes import wait_for

FIRST, SECOND = "audited-one", "audited-two"


@pytest.fixture(scope="module", autouse=True)
def writes(signed_in: Visits, api: LeaseApi) -> None:
    """An edit and a release that were done, and a new Lease that the cluster refused."""
    request = signed_in.open("/audit/").context.request

    def send(path: str, **typed: str) -> None:
        url = f"{signed_in.url}/c/embedded/leases/{path}/"
        wait_for(lambda: request.get(url).ok, what=url)
        fields = Fields(request.get(url).text()).values | {"confirm": "yes"} | typed
        request.post(url, form={**fields})

    for name in (FIRST, SECOND):
        api.create(name, holder="cp-1")
    send(f"default/{FIRST}/edit", duration_seconds="30", reason="others wait too long")
    send(f"default/{SECOND}/release", reason="it hangs")
    send("new", namespace="nowhere", name="audited-three", duration_seconds="15", reason="try")
    signed_in.leave()


def expect_rows(page: Page, *leases: str) -> None:
    """The list shows the writes of these Leases, newest first."""
    expect(page.locator(".audit tbody .name")).to_have_text(leases)
    expect(page.locator(".list-head")).to_contain_text(re.compile(rf"^\s*{len(leases)} write"))


def test_filters_narrow_the_list_and_stand_in_the_address(visit: Open) -> None:
    page = visit("../../audit/")
    refused, second, first = "nowhere/audited-three", f"default/{SECOND}", f"default/{FIRST}"
    expect_rows(page, refused, second, first)
    page.get_by_label("Outcome").select_option("refused")
    expect_rows(page, refused)
    assert page.url.endswith("/audit/?outcome=refused")
    page.get_by_label("Outcome").select_option("")
    expect_rows(page, refused, second, first)
    page.get_by_label("Name, reason or result contains").fill("too long")
    expect_rows(page, first)
    page.reload()
    expect_rows(page, first)
    expect(page.get_by_label("Name, reason or result contains")).to_have_value("too long")
    page.get_by_role("link", name="Clear").click()
    page.get_by_text("More").click()
    lease = page.locator("[name=lease]")  # its label has the error, too
    lease.fill(second)
    lease.press("Enter")
    expect_rows(page, second)
    lease.fill("no-slash")
    lease.press("Enter")
    expect(page.locator("#error-lease")).to_contain_text("write its namespace/name")
    expect(lease).to_have_value("no-slash")


def test_exports_have_the_rows_of_the_filter(visit: Open, tmp_path: Path) -> None:
    page = visit("../../audit/?outcome=done")
    for word in ("CSV", "NDJSON"):
        with page.expect_download() as waiting:
            page.get_by_role("link", name=word, exact=True).click()
        waiting.value.save_as(tmp_path / word)
        assert re.fullmatch(
            rf"audit-\d{{8}}T\d{{6}}Z\.{word.lower()}", waiting.value.suggested_filename
        )
    with (tmp_path / "CSV").open(newline="") as file:
        rows = list(csv.DictReader(file))
    items = [json.loads(line) for line in (tmp_path / "NDJSON").read_text().splitlines()]
    assert {row["name"] for row in rows} == {FIRST, SECOND} == {one["name"] for one in items}
    assert [row["id"] for row in rows] == [str(one["id"]) for one in items]
    edit = next(one for one in items if one["name"] == FIRST)
    assert edit["changes"] == [{"field": "spec.leaseDurationSeconds", "from": 3600, "to": 30}]


@pytest.mark.parametrize(
    "scripts",
    [
        pytest.param(True, id="scripts"),
        pytest.param(False, id="no scripts", marks=pytest.mark.long),
    ],
)
def test_one_row_is_found_by_keyboard_alone_and_its_address_stays(
    visit: Open, scripts: bool
) -> None:
    page = visit("../../audit/", java_script_enabled=scripts)
    reach(page, "#text")
    page.keyboard.type("hangs")
    page.keyboard.press("Enter")
    expect_rows(page, f"default/{SECOND}")
    reach(page, ".audit tbody a")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Release: {SECOND}")
    assert re.search(r"/audit/\d+/$", page.url)
    fields = page.get_by_role("table", name="Changed fields")
    expect(fields.get_by_role("row", name="spec.holderIdentity")).to_contain_text("cp-1")
    for said in ("admin", "127.0.0.1", "it hangs", "Done", "lease.release"):
        expect(page.locator("main")).to_contain_text(said)
    expect(page.get_by_role("link", name=f"default/{SECOND}")).to_be_visible()


def reach(page: Page, selector: str) -> None:
    """Press Tab until the element has the focus."""
    for _ in range(80):
        if page.evaluate("s => document.activeElement?.matches(s)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"no Tab leads to {selector}")
