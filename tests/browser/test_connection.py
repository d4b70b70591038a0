"""A page whose server dies says so; when it is back, nothing is lost or repeated."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visits import Profiles
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, wait_for
from tests.support.programs.api_process import ApiProcess, pill
from tests.support.signing_in import sign_in_page


@pytest.fixture
def api_process(tmp_path: Path) -> Iterator[ApiProcess]:
    process = ApiProcess(tmp_path / "api")
    yield process
    process.end(signal.SIGTERM)


@pytest.fixture
def api(tmp_path: Path, api_process: ApiProcess) -> LeaseApi:
    return LeaseApi(tmp_path / "api/kubeconfig")


def start(tmp_path: Path, api: LeaseApi, port: int | None = None) -> Server:
    address = api.url.replace("https://", f"http://{api.token}@")
    server = Server(tmp_path / "data", "--cluster", f"c=url:{address}", port=port)
    server.wait_synced()
    return server


SENTENCES = """() => [...document.querySelectorAll('[data-feed] > li p')].map((line) => {
  const copy = line.cloneNode(true);
  copy.querySelector('.why-link')?.remove();  // it comes later
  return copy.textContent;
})"""


def sentences(page: Page) -> list[str]:
    """Each change of the feed, without its cause."""
    return [re.sub(r"\s+", " ", line).strip() for line in page.evaluate(SENTENCES)]


def leave(page: Page, profiles: Profiles) -> None:
    """Leave all pages before their server ends, and forget that it was away."""
    for one in page.context.pages:
        one.goto("about:blank")
    profiles.complaints.clear()


def test_a_page_survives_its_server(
    tmp_path: Path, api: LeaseApi, page: Page, profiles: Profiles
) -> None:
    api.create("story", holder="one")
    server = start(tmp_path, api)
    sign_in_page(page, server.printed("Sign in"))

    page.goto(f"{server.url}/c/c/")
    wait_for(lambda: len(sentences(page)) == 1, what="the first sight")
    wait_for(lambda: pill(page).startswith("Live"), what="a live page")
    api.take("story", holder="two", transitions=1)
    wait_for(lambda: "two" in page.locator('[data-key="default/story"]').inner_text(), what="two")
    wait_for(lambda: len(sentences(page)) == 2, what="the change in the feed")
    loaded_at = page.evaluate("performance.timeOrigin")

    server.kill()
    expect(page.locator("[data-live-pill]")).to_contain_text("Stale since")
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
        said_on = sentences(page)
        assert len(set(said_on)) == 4
        assert page.evaluate("performance.timeOrigin") == loaded_at
        page.reload()
        assert sorted(sentences(page)) == sorted(said_on)
        leave(page, profiles)
    finally:
        assert again.interrupt() == 0


def said_on(page: Page, path: str) -> str:
    """What a board says of the Lease `story` and of the heartbeat `node`."""
    if path == "nodes/":
        script = "import('leaseboard/field').then(({field}) => [...field.phases].join())"
        phases: str = page.evaluate(script)
        return phases
    return page.locator('[data-key="default/story"]').inner_text()


def all_live(pages: dict[str, Page]) -> bool:
    return all(pill(page).startswith("Live") for page in pages.values())


AGES = "() => [...document.querySelectorAll('.age')].map((age) => age.textContent).join()"


def test_boards_come_back_with_their_server_and_stand_still_without_the_cluster(
    tmp_path: Path, api: LeaseApi, api_process: ApiProcess, page: Page, profiles: Profiles
) -> None:
    api.create("story", holder="one")
    api.create("node", holder="node")
    server = start(tmp_path, api)
    sign_in_page(page, server.printed("Sign in"))
    pages = {"": page, "leases/": page.context.new_page(), "nodes/": page.context.new_page()}
    for path, one in pages.items():
        one.goto(f"{server.url}/c/c/{path}")
    wait_for(lambda: all_live(pages), what="live pages")
    wait_for(lambda: all(said_on(one, path) for path, one in pages.items()), what="the boards")
    loaded_at = [one.evaluate("performance.timeOrigin") for one in pages.values()]
    server.kill()
    for one in pages.values():
        expect(one.locator("[data-live-pill]")).to_contain_text("Stale since")
    api.take("story", holder="two", transitions=1)
    api.create("node-2", holder="node-2")

    def show(holder: str, nodes: str) -> bool:
        now = {"": holder, "leases/": holder, "nodes/": nodes}
        return all(now[path] in said_on(one, path) for path, one in pages.items())

    again = start(tmp_path, api, port=server.port)
    try:
        wait_for(lambda: all_live(pages), what="the pages to be live again")
        wait_for(lambda: show("two", "0,0"), what="what happened meanwhile")

        api_process.end(signal.SIGKILL)
        for one in pages.values():
            expect(one.locator("[data-live-pill]")).to_contain_text("Stale since")
            expect(one.locator("[data-stale-banner]")).to_be_visible()
            expect(one.locator("html")).to_have_attribute("data-live", "stale")
        before = [one.evaluate(AGES) for one in pages.values()]
        page.wait_for_timeout(1500)
        assert [one.evaluate(AGES) for one in pages.values()] == before

        api_process.start()
        api.take("story", holder="three", transitions=2)
        api.create("node-3", holder="node-3")
        wait_for(lambda: all_live(pages), what="the pages to be live with the cluster")
        wait_for(lambda: show("three", "0,0,0"), what="what happened since")
        for one in pages.values():
            expect(one.locator("[data-stale-banner]")).to_be_hidden()
        assert [one.evaluate("performance.timeOrigin") for one in pages.values()] == loaded_at
        leave(page, profiles)
    finally:
        assert again.interrupt() == 0
