"""Abandoned Leases fold into one line, by time alone; an admin says that one may be vacant."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.api_client import LeaseApi
from tests.support.processes import Server, serving
from tests.support.signing_in import sign_in_page

SIZES = [(390, 844), (1024, 768), (1440, 900), (1920, 1080)]
WALLS = [(1920, 1080), (1080, 1920)]
TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
FOLD = "#attention .attn li.is-abandoned"  # the line of all abandoned Leases
OLD = ("cert-manager-cainjector", "old-operator")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A process for which a Lease is abandoned after 3 s: two elections are, one is held."""
    data = tmp_path_factory.mktemp("abandoned") / "data"
    with serving(data, "--no-demo", LEASEBOARD_ABANDONED_SECONDS="3") as one:
        one.wait_synced()
        api = LeaseApi(one.kubeconfig)
        api.create("scheduler", holder="cp-1")
        for name in OLD:
            api.create(name, holder="")
        yield one


@pytest.fixture(scope="module")
def api(server: Server) -> LeaseApi:
    return LeaseApi(server.kubeconfig)


@pytest.fixture(scope="module")
def signed_in(server: Server, browser: Browser) -> str:
    context = browser.new_context()
    page = context.new_page()
    sign_in_page(page, server.printed("Sign in"))
    state = json.dumps(context.storage_state())
    context.close()
    return state


@pytest.fixture
def page(browser: Browser, signed_in: str) -> Iterator[Page]:
    context = browser.new_context(
        storage_state=json.loads(signed_in), viewport={"width": 1440, "height": 900}
    )
    fresh = context.new_page()
    errors: list[str] = []
    fresh.on("pageerror", lambda error: errors.append(str(error)))
    yield fresh
    context.close()
    assert errors == []


def visit(page: Page, server: Server, path: str = "") -> None:
    page.goto(f"{server.url}/c/embedded/{path}")
    expect(page.locator("[data-live=live]")).to_be_visible()


def test_a_lease_folds_into_the_line_by_time_alone_and_leaves_it_when_it_is_held(
    page: Page, server: Server, api: LeaseApi
) -> None:
    visit(page, server)
    line = page.locator(FOLD)
    expect(line.locator(".name")).to_have_text("2 Leases abandoned")
    api.create("released", holder="pod-1")
    api.patch("released", holderIdentity="")
    expect(line.locator(".name")).to_have_text("3 Leases abandoned")
    api.take("released", holder="pod-2", transitions=1)
    expect(line.locator(".name")).to_have_text("2 Leases abandoned")
    api.delete("released")


def test_the_line_leads_by_keyboard_to_the_list_of_them(page: Page, server: Server) -> None:
    visit(page, server)
    line = page.locator(FOLD)
    line.locator(".name").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/leases/\?abandoned=true$"))
    rows = page.locator("tr[data-key]")
    expect(rows).to_have_count(len(OLD))
    for number in range(len(OLD)):
        expect(rows.nth(number).locator(".c-state")).to_contain_text(re.compile(r"Vacant\s+aband"))
    chip = page.locator(".chip.is-abandoned")
    expect(chip).to_have_attribute("aria-current", "true")
    chip.focus()
    page.keyboard.press("Enter")
    expect(rows).to_have_count(len(OLD) + 1)
    expect(rows.first).to_have_attribute("data-key", "default/scheduler")


def test_an_admin_says_that_one_may_be_vacant_and_takes_it_back(page: Page, server: Server) -> None:
    name = OLD[0]
    other = page.context.new_page()
    visit(other, server)
    line = other.locator(f"{FOLD} .name")
    expect(line).to_have_text("2 Leases abandoned")
    visit(page, server, f"leases/default/{name}/")
    expect(page.locator("[data-excuse]")).to_contain_text("Abandoned:")
    choice = page.get_by_label("Whether this Lease may be vacant")
    choice.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#vacancy .note")).to_have_text("may be vacant: said by admin")
    expect(page.locator("[data-excuse]")).to_contain_text("It may be vacant: admin said so.")
    expect(line).to_have_text("1 Lease abandoned")
    choice.select_option("false")
    page.get_by_role("button", name="Set vacancy").click()
    expect(page.locator("#vacancy .note")).to_have_text("must have a holder")
    expect(line).to_have_text("2 Leases abandoned")


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_the_line_and_the_list_fit_every_size(
    page: Page, server: Server, width: int, height: int
) -> None:
    page.set_viewport_size({"width": width, "height": height})
    visit(page, server)
    expect(page.locator(f"{FOLD} .name")).to_be_visible()
    assert not page.evaluate(TOO_WIDE)
    visit(page, server, "leases/?abandoned=true")
    state = page.locator(f'tr[data-key="default/{OLD[0]}"] .m-state .state')
    expect(state).to_be_visible()
    box, cell = state.bounding_box(), state.locator("xpath=..").bounding_box()
    assert box is not None
    assert cell is not None
    assert box["x"] + box["width"] <= cell["x"] + cell["width"] + 1
    assert not page.evaluate(TOO_WIDE)


@pytest.mark.parametrize(("width", "height"), WALLS)
def test_the_wall_says_how_many_and_shows_none_of_them(
    page: Page, server: Server, width: int, height: int
) -> None:
    page.set_viewport_size({"width": width, "height": height})
    visit(page, server, "wall/")
    line = page.locator(".w-abandoned")
    expect(line).to_have_text("2 Leases abandoned")
    expect(line).to_be_in_viewport()
    expect(page.locator('[data-count="unexcused.vacant"]')).to_have_text("0")
    expect(page.locator("[data-tile]")).to_have_count(1)
