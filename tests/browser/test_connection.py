"""A page whose server dies says so; when it is back, nothing is lost or repeated."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.api_client import LeaseApi
from tests.processes import ROOT, Server, environment, free_port, get, wait_for


@pytest.fixture
def api_process(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A Lease API that outlives the dashboard."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "manage.py", "lease_api", "--port", str(port)],
        cwd=ROOT,
        env=environment(tmp_path / "api"),
        stdout=subprocess.DEVNULL,
    )
    wait_for(lambda: get(f"http://127.0.0.1:{port}/livez")[0] == 200, what="the Lease API")
    yield process
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=15)


@pytest.fixture
def api(tmp_path: Path, api_process: subprocess.Popen[bytes]) -> LeaseApi:
    return LeaseApi(tmp_path / "api/kubeconfig")


def start(tmp_path: Path, api: LeaseApi, port: int | None = None) -> Server:
    address = api.url.replace("https://", f"http://{api.token}@")
    server = Server(tmp_path / "data", "--cluster", f"c=url:{address}", port=port)
    server.wait_synced()
    return server


def pill(page: Page) -> str:
    return page.locator("[data-live-pill]").inner_text()


def sentences(page: Page) -> list[str]:
    lines = page.locator("[data-feed] > li p").all_inner_texts()
    return [re.sub(r"\s+", " ", line).strip() for line in lines]


def test_a_page_survives_its_server(tmp_path: Path, api: LeaseApi, page: Page) -> None:
    api.create("story", holder="one")
    server = start(tmp_path, api)
    page.goto(server.printed("Sign in"))
    page.goto(f"{server.url}/c/c/")
    wait_for(lambda: pill(page).startswith("Live"), what="a live page")
    api.take("story", holder="two", transitions=1)
    wait_for(lambda: "two" in page.locator('[data-key="default/story"]').inner_text(), what="two")
    wait_for(lambda: len(sentences(page)) == 2, what="the change in the feed")
    loaded_at = page.evaluate("performance.timeOrigin")

    server.kill()
    expect(page.locator("[data-live-pill]")).to_contain_text("Reconnecting", timeout=3000)
    api.take("story", holder="three", transitions=2)
    api.create("born", holder="one")

    again = start(tmp_path, api, port=server.port)
    try:
        wait_for(lambda: pill(page).startswith("Live"), what="the page to be live again")
        row = page.locator('[data-key="default/story"]')
        wait_for(lambda: "three" in row.inner_text(), what="what happened meanwhile")
        page.mouse.move(0, 0)
        wait_for(lambda: page.locator('[data-key="default/born"]').count(), what="the new Lease")
        wait_for(lambda: len(sentences(page)) == 4, what="both changes in the feed")
        told = sentences(page)
        assert len(set(told)) == 4
        assert page.evaluate("performance.timeOrigin") == loaded_at
        page.reload()
        assert sorted(sentences(page)) == sorted(told)
    finally:
        assert again.interrupt() == 0


def told(page: Page, path: str) -> str:
    """What a board says of the Lease `story` and of the heartbeat `node`."""
    if path == "nodes/":
        script = "import('leaseboard/field').then(({field}) => [...field.phases].join())"
        phases: str = page.evaluate(script)
        return phases
    return page.locator('[data-key="default/story"]').inner_text()


@pytest.mark.parametrize("path", ["leases/", "nodes/"])
def test_boards_come_back_with_their_server_and_stand_still_without_the_cluster(
    path: str, tmp_path: Path, api: LeaseApi, api_process: subprocess.Popen[bytes], page: Page
) -> None:
    api.create("story", holder="one")
    api.create("node", holder="node")
    server = start(tmp_path, api)
    page.goto(server.printed("Sign in"))
    page.goto(f"{server.url}/c/c/{path}")
    wait_for(lambda: pill(page).startswith("Live"), what="a live page")
    wait_for(lambda: told(page, path), what="the board")
    loaded_at = page.evaluate("performance.timeOrigin")
    server.kill()
    expect(page.locator("[data-live-pill]")).to_contain_text("Reconnecting", timeout=3000)
    api.take("story", holder="two", transitions=1)
    api.create("node-2", holder="node-2")

    again = start(tmp_path, api, port=server.port)
    try:
        wait_for(lambda: pill(page).startswith("Live"), what="the page to be live again")
        now = "0,0" if path == "nodes/" else "two"
        wait_for(lambda: now in told(page, path), what="what happened meanwhile")
        assert page.evaluate("performance.timeOrigin") == loaded_at

        api_process.kill()
        api_process.wait()
        wait_for(lambda: pill(page).startswith("Stale since"), what="a page that says it is stale")
        expect(page.locator("[data-stale-banner]")).to_be_visible()
        assert page.locator("html").get_attribute("data-live") == "stale"
        ages = "() => [...document.querySelectorAll('.age')].map((age) => age.textContent).join()"
        before = page.evaluate(ages)
        page.wait_for_timeout(1500)
        assert page.evaluate(ages) == before
    finally:
        assert again.interrupt() == 0
