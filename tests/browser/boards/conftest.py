"""Three elections and three heartbeats, and pages of a signed-in admin."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visits import Visits
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("boards")
    with serving(folder / "data", "--no-demo") as one:
        one.wait_synced()
        yield one


@pytest.fixture(scope="module")
def api(server: Server) -> LeaseApi:
    """Elections web-1 to web-3 and heartbeats node-1 to node-3."""
    api = LeaseApi(server.kubeconfig)
    for number in (1, 2, 3):
        api.create(f"web-{number}", holder=f"pod-{number}")
        api.create(f"node-{number}", holder=f"node-{number}")
    api.send(
        "PATCH",
        "/apis/coordination.k8s.io/v1/namespaces/default/leases/web-2",
        {"metadata": {"labels": {"app": "shop"}}},
        "application/merge-patch+json",
    )
    return api


@pytest.fixture
def page(visits: Visits, api: LeaseApi) -> Page:
    return visits.page()


def visit(page: Page, server: Server, path: str) -> None:
    """Open a page and wait until it is live."""
    page.goto(f"{server.url}/c/embedded/{path}")
    expect(page.locator("[data-live-pill]")).to_contain_text("Live")


def names(page: Page) -> list[str]:
    return page.locator("tbody tr .name").all_inner_texts()
