"""A Lease is created in Chromium: with and without scripts, by keyboard, and not over another."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.making.conftest import Open
from tests.support.api_client import LeaseApi, leases


@pytest.mark.parametrize(
    "scripts",
    [
        pytest.param(True, id="scripts"),
        pytest.param(False, id="no scripts", marks=pytest.mark.long),
    ],
)
def test_a_lease_is_previewed_and_created(visit: Open, api: LeaseApi, scripts: bool) -> None:
    name = f"made-{'with' if scripts else 'without'}-scripts"
    page = visit("leases/", java_script_enabled=scripts)
    page.get_by_role("link", name="New Lease").click()
    page.locator("main").get_by_label("Namespace").fill("default")
    page.get_by_label("Name metadata.name").fill(name)
    page.get_by_label("Labels").fill("app=shop")
    page.get_by_role("button", name="Preview").last.click()
    expect(page.get_by_text("The server would take this")).to_be_visible()
    expect(page.get_by_text("It starts vacant.")).to_be_visible()
    page.get_by_label("Reason").fill("drill")
    page.get_by_role("button", name="Create Lease").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    made = api.send("GET", f"{leases()}/{name}")
    assert made["spec"] == {"holderIdentity": "", "leaseDurationSeconds": 15}
    assert made["metadata"]["labels"] == {"app": "shop"}


def test_it_is_created_by_keyboard_alone(visit: Open, api: LeaseApi) -> None:
    page = visit("leases/new/?namespace=default&name=by-keyboard")
    page.get_by_label("Holder holderIdentity").focus()
    page.keyboard.type("cp-1")
    page.get_by_label("Reason").focus()
    page.keyboard.type("drill")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Preview").last).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="by-keyboard")).to_be_visible()
    assert api.send("GET", f"{leases()}/by-keyboard")["spec"]["holderIdentity"] == "cp-1"


def test_a_name_that_is_taken_is_refused_and_nothing_typed_is_lost(
    visit: Open, api: LeaseApi
) -> None:
    api.create("taken", holder="cp-1")
    page = visit("leases/new/?namespace=default&name=taken")
    page.get_by_label("Annotations").fill("team=shop")
    page.get_by_label("Reason").fill("drill")
    page.get_by_role("button", name="Create Lease").click()
    expect(page.get_by_role("alert")).to_contain_text("default/taken exists")
    expect(page.get_by_label("Annotations")).to_have_value("team=shop")
    assert api.send("GET", f"{leases()}/taken")["spec"]["holderIdentity"] == "cp-1"


def test_errors_stand_at_their_fields_and_the_summary_leads_there(visit: Open) -> None:
    page = visit("leases/new/?namespace=nowhere&name=Ledger_writer")
    page.get_by_label("Preferred holder").fill("cp-2")
    page.get_by_role("button", name="Preview").last.click()
    expect(page.locator("#id_name_error")).to_contain_text("Try ledger-writer.")
    expect(page.locator("#problems")).to_be_focused()
    page.locator("#problems").get_by_role("link", name="Name").click()
    expect(page).to_have_url(re.compile("#id_name$"))
    page.get_by_label("Name metadata.name").fill("ledger-writer")
    page.get_by_role("button", name="Preview").last.click()
    expect(page.locator("#id_namespace_error")).to_contain_text("There is no such namespace")
