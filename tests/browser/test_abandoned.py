"""Abandoned Leases fold into one line, by time alone; an admin says that one may be vacant."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.visits import Visits
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, serving, wait_for

SIZES = [(390, 844), (1024, 768), (1440, 900), (1920, 1080)]
WALLS = [(1920, 1080), (1080, 1920)]
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
# At once, for an event may draw the row anew at any time.
INSIDE = """(state) => state.getBoundingClientRect().right
  <= state.parentElement.getBoundingClientRect().right + 1"""
OVERVIEW = "/c/embedded/"
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


def test_a_lease_folds_into_the_line_by_time_alone_and_leaves_it_when_it_is_held(
    visits: Visits, api: LeaseApi
) -> None:
    page = visits.open_live(OVERVIEW)
    line = page.locator(FOLD)
    expect(line.locator(".name")).to_have_text("2 Leases abandoned")
    api.create("released", holder="pod-1")
    api.patch("released", holderIdentity="")
    expect(line.locator(".name")).to_have_text("3 Leases abandoned")
    api.take("released", holder="pod-2", transitions=1)
    expect(line.locator(".name")).to_have_text("2 Leases abandoned")
    api.delete("released")


def test_the_line_leads_by_keyboard_to_the_list_of_them(visits: Visits) -> None:
    page = visits.open_live(OVERVIEW)
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


def test_an_admin_says_that_one_may_be_vacant_and_takes_it_back(visits: Visits) -> None:
    line = visits.open_live(OVERVIEW).locator(f"{FOLD} .name")
    expect(line).to_have_text("2 Leases abandoned")
    page = visits.open_live(f"{OVERVIEW}leases/default/{OLD[0]}/")
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


def test_the_line_and_the_list_fit_every_size(visits: Visits) -> None:
    page = visits.open_live(OVERVIEW)
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        expect(page.locator(f"{FOLD} .name")).to_be_visible()
        # Scripts fit names to a new size in a frame of their own.
        wait_for(lambda: page.evaluate(FITS), what=f"a page within a screen of {width}")
    page.goto(f"{visits.url}{OVERVIEW}leases/?abandoned=true")
    expect(page.locator("[data-live-pill]")).to_contain_text("Live")
    state = page.locator(f'tr[data-key="default/{OLD[0]}"] .m-state .state')
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        expect(state).to_be_visible()
        wait_for(lambda: state.evaluate(INSIDE), what=f"a state inside its cell at {width}")
        wait_for(lambda: page.evaluate(FITS), what=f"a page within a screen of {width}")


def test_the_wall_says_how_many_and_shows_none_of_them(visits: Visits) -> None:
    page = visits.open(f"{OVERVIEW}wall/")
    expect(page.locator("[data-live=live]")).to_be_visible()
    line = page.locator(".w-abandoned")
    expect(line).to_have_text("2 Leases abandoned")
    for width, height in WALLS:
        page.set_viewport_size({"width": width, "height": height})
        expect(line).to_be_in_viewport()
    expect(page.locator('[data-count="unexcused.vacant"]')).to_have_text("0")
    expect(page.locator("[data-tile]")).to_have_count(1)
