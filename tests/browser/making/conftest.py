"""A server without a demo, its API, and pages of a signed-in admin with and without scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.visits import Visits
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, serving

REFUSED_FORM = "Failed to load resource"  # Chromium says so of a page with status 4xx
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("making")
    with serving(folder / "data", "--no-demo") as one:
        one.wait_synced()
        yield one


@pytest.fixture(scope="module")
def api(server: Server) -> LeaseApi:
    return LeaseApi(server.kubeconfig)


@pytest.fixture
def visit(signed_in: Visits) -> Iterator[Open]:
    """Opens a path of the embedded cluster; `options` are those of a browser context."""

    def open_path(path: str, **options: Any) -> Page:
        return signed_in.open(f"/c/embedded/{path}", **options)

    yield open_path
    assert [text for text in signed_in.leave() if REFUSED_FORM not in text] == []
