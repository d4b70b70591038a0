"""What the cluster would refuse to this person is dimmed and says why; the form says so too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.making.conftest import Open
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The cluster is asked in the person's name, and it knows no admin."""
    data = tmp_path_factory.mktemp("refused") / "data"
    with serving(data, "--no-demo", LEASEBOARD_IMPERSONATE="true") as one:
        one.wait_synced()
        LeaseApi(one.kubeconfig).create("held", holder="cp-1")
        yield one


def expect_dimmed(page: Page, name: str, *, said: str) -> None:
    button = page.get_by_role("link", name=name)
    expect(button).to_have_css("border-style", "dashed")
    expect(button).to_have_accessible_description(said)


def test_buttons_to_forms_that_the_cluster_would_refuse_are_dimmed(visit: Open) -> None:
    page = visit("leases/?namespace=default")
    refused = "The cluster would refuse this: admin may not {} leases in default."
    for name, verb in (("New Lease", "create"), ("Delete many…", "delete")):
        expect(page.locator(f"#refused-{verb}")).to_contain_text(refused.format(verb))
        said = page.locator(f"#refused-{verb}").inner_text()
        expect_dimmed(page, name, said=said)
    page.goto(page.url.partition("leases/")[0] + "leases/")
    expect(page.locator("#refused-create")).to_contain_text("in every namespace")
    expect(page.get_by_role("link", name="New Lease")).to_have_css("border-style", "solid")

    page.goto(page.url + "default/held/")
    expect(page.locator("#refused-patch")).to_contain_text(refused.format("patch"))
    for name, verb in (("Edit", "patch"), ("Release", "patch"), ("Delete", "delete")):
        expect_dimmed(page, name, said=page.locator(f"#refused-{verb}").inner_text())
    page.get_by_role("link", name="Release").press("Enter")  # a click can be lost in a redraw
    expect(page.get_by_text("Saving would be refused")).to_be_visible()
    expect(page.get_by_role("button", name="Release Lease")).to_have_count(0)
