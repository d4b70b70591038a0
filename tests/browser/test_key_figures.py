"""The overview while Leases come and go: a figure and its caption never disagree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.api_client import LeaseApi
from tests.support.processes import Server, ended
from tests.support.signing_in import sign_in_page

MANY = 3
ROUNDS = 12

# Looks at the strip a hundred times a second: each figure with its caption.
WATCH = """() => {
  window.looks = new Set();
  const text = (el, css) => el.querySelector(css).textContent;
  setInterval(() => {
    const figures = [...document.querySelectorAll("#kpis .kpi")].slice(0, 6);
    looks.add(JSON.stringify(figures.map((el) => [text(el, ".v"), text(el, ".d")])));
  }, 10);
}"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with ended(Server(tmp_path / "data", "--no-demo")) as server:
        server.wait_synced()
        yield server


def test_a_figure_and_its_caption_never_disagree(server: Server, page: Page) -> None:
    api = LeaseApi(server.kubeconfig)
    for number in range(MANY):
        api.create(f"lease-{number}", holder="h")
    sign_in_page(page, server.printed("Sign in"))
    page.goto(f"{server.url}/c/embedded/")
    expect(page.locator("html")).to_have_attribute("data-live", "live")
    page.evaluate(WATCH)
    total = page.locator("#kpis .v").first
    for number in range(ROUNDS):
        api.patch(f"lease-{number % MANY}", holderIdentity="" if number % 2 else "h")
        api.create(f"more-{number}", holder="h")
        expect(total).to_have_text(str(MANY + number + 1))
    looks = [json.loads(look) for look in page.evaluate("[...looks]")]
    assert len(looks) > ROUNDS / 2
    for look in looks:
        (every, elections), (held, share), late, expired, vacant, untimed = look
        assert elections == f"{every} elections", look
        assert abs(int(share.split()[0]) - 100 * int(held) / int(every)) <= 0.5, look
        assert vacant[1].split()[0] == vacant[0] or vacant == ["0", "none"], look
        phases = [held, late[0], expired[0], vacant[0], untimed[0]]
        assert sum(map(int, phases)) == int(every), look
