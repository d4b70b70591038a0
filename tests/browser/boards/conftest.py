"""Three elections and three heartbeats, and pages of a signed-in admin."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.api_client import LeaseApi
from tests.support.processes import Server, serving
from tests.support.signing_in import sign_in_page


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


@pytest.fixture(scope="module")
def signed_in(server: Server, browser: Browser) -> str:
    context = browser.new_context()
    page = context.new_page()
    sign_in_page(page, server.printed("Sign in"))
    state = json.dumps(context.storage_state())
    context.close()
    return state


@pytest.fixture
def page(browser: Browser, signed_in: str, api: LeaseApi) -> Iterator[Page]:
    context = browser.new_context(
        storage_state=json.loads(signed_in), viewport={"width": 1440, "height": 900}
    )
    fresh = context.new_page()
    errors: list[str] = []
    fresh.on("pageerror", lambda error: errors.append(str(error)))
    yield fresh
    context.close()
    assert errors == []


def visit(page: Page, server: Server, path: str) -> None:
    """Open a page and wait until it is live."""
    page.goto(f"{server.url}/c/embedded/{path}")
    expect(page.locator("[data-live-pill]")).to_contain_text("Live")


def names(page: Page) -> list[str]:
    return page.locator("tbody tr .name").all_inner_texts()
