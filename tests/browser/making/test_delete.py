"""A Lease is deleted in Chromium: with and without scripts, by keyboard, and not a later term."""

from __future__ import annotations

from collections.abc import Callable
from urllib.error import HTTPError

import pytest
from playwright.sync_api import Page, expect

from tests.browser.making.conftest import Open
from tests.support.api_client import LeaseApi, leases
from tests.support.processes import Server, wait_for
from tests.support.programs.contender import contending


def is_there(api: LeaseApi, name: str) -> bool:
    try:
        api.send("GET", f"{leases()}/{name}")
    except HTTPError:
        return False
    return True


def open_form(visit: Open, name: str, **options: object) -> Page:
    """The form, once the watch knows the Lease."""
    path = f"leases/default/{name}/delete/"
    page = visit(path, **options)
    known: Callable[[], bool] = lambda: page.get_by_label("Reason").count() > 0  # noqa: E731

    def look() -> bool:
        if not known():
            page.reload()
        return known()

    wait_for(look, what=f"the form for {name}", every=0.5)
    return page


@pytest.mark.parametrize(
    "scripts",
    [
        pytest.param(True, id="scripts"),
        pytest.param(False, id="no scripts", marks=pytest.mark.long),
    ],
)
def test_a_typed_name_deletes_the_lease(visit: Open, api: LeaseApi, scripts: bool) -> None:
    name = f"gone-{'with' if scripts else 'without'}-scripts"
    api.create(name, holder="cp-1")
    page = open_form(visit, name, java_script_enabled=scripts)
    expect(page.get_by_text("The API server would delete it")).to_be_visible()
    page.get_by_label(f"Type default/{name} to confirm").fill("default/something")
    page.get_by_label("Reason").fill("drill")
    page.get_by_role("button", name="Delete Lease").click()
    expect(page.locator("#id_typed_name_error")).to_contain_text(f"This is not default/{name}.")
    expect(page.get_by_label("Reason")).to_have_value("drill")
    assert is_there(api, name)
    page.get_by_label(f"Type default/{name} to confirm").fill(f"default/{name}")
    page.get_by_role("button", name="Delete Lease").click()
    expect(page.get_by_role("heading", name="Deleted at")).to_be_visible()
    assert not is_there(api, name)


def test_it_is_deleted_by_keyboard_alone(visit: Open, api: LeaseApi) -> None:
    api.create("by-keyboard-gone", holder="cp-1")
    page = open_form(visit, "by-keyboard-gone")
    page.get_by_label("Type default/by-keyboard-gone").focus()
    page.keyboard.type("default/by-keyboard-gone")
    page.keyboard.press("Tab")
    page.keyboard.type("drill")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Deleted at")).to_be_visible()
    assert not is_there(api, "by-keyboard-gone")


def test_another_holder_in_between_is_shown_and_loses_nothing(visit: Open, api: LeaseApi) -> None:
    api.create("moved", holder="cp-1")
    page = open_form(visit, "moved")
    api.take("moved", holder="cp-2", transitions=1)
    page.get_by_label("Type default/moved").fill("default/moved")
    page.get_by_label("Reason").fill("drill")
    page.get_by_role("button", name="Delete Lease").click()
    expect(page.get_by_role("alert").last).to_contain_text("cp-2 holds it by now")
    expect(page.get_by_label("Reason")).to_have_value("drill")
    assert is_there(api, "moved")


def test_a_live_holder_makes_it_anew(visit: Open, api: LeaseApi, server: Server) -> None:
    with contending(server.kubeconfig, "default", "alive", "py-1", duration=6, deadline=4):
        page = open_form(visit, "alive")

        def warns() -> bool:
            page.reload()
            return page.get_by_text("Until then two may act at once").is_visible()

        wait_for(warns, what="the warning; before the first renewal it may be a lock", every=0.5)
        before = api.send("GET", f"{leases()}/alive")["metadata"]["uid"]
        page.get_by_label("Type default/alive").fill("default/alive")
        page.get_by_label("Reason").fill("drill")
        page.get_by_role("button", name="Delete Lease").click()
        expect(page.locator("#outcome")).to_contain_text("py-1 made it anew")
        assert api.send("GET", f"{leases()}/alive")["metadata"]["uid"] != before
