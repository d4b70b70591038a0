"""Pages that were open before the board had read anything show what it then reads."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visits import Profiles, Visits
from tests.support.api_client import LeaseApi, timestamp
from tests.support.processes import Server
from tests.support.programs.api_process import ApiProcess

PATHS = ("", "incidents/", "nodes/", "history/", "leases/default/story/", "wall/")


@pytest.fixture
def api_process(tmp_path: Path) -> Iterator[ApiProcess]:
    process = ApiProcess(tmp_path / "api")
    yield process
    process.end(signal.SIGKILL)


@pytest.fixture
def visits(profiles: Profiles, tmp_path: Path, api_process: ApiProcess) -> Iterator[Visits]:
    """Pages of a board whose API server does not answer yet, and has no Lease."""
    api = LeaseApi(tmp_path / "api/kubeconfig")
    api_process.end(signal.SIGKILL)
    address = api.url.replace("https://", f"http://{api.token}@")
    server = Server(tmp_path / "board", "--cluster", f"c=url:{address}")
    yield Visits(profiles, server)
    profiles.leave()
    server.interrupt()


def test_they_show_what_is_read_later(
    visits: Visits, tmp_path: Path, api_process: ApiProcess
) -> None:
    pages: dict[str, Page] = {}
    for path in PATHS:
        pages[path] = visits.page()
        pages[path].goto(f"{visits.url}/c/c/{path}")
    expect(pages["incidents/"].locator("main")).to_contain_text("Not watched yet")
    expect(pages["leases/default/story/"].locator("h1")).to_have_text("There is nothing here")
    expect(pages["wall/"].locator(".w-comb")).to_have_count(0)

    api_process.start()
    for path in PATHS[:-1]:
        expect(pages[path].locator("[data-live-pill]")).to_contain_text("Live")
    expect(pages["incidents/"].locator("main")).not_to_contain_text("Not watched yet")
    expect(pages["nodes/"].locator("#no-heartbeats")).to_have_text("No heartbeat is known here.")
    expect(pages["history/"].locator("main")).to_contain_text("No change yet")

    api = LeaseApi(tmp_path / "api/kubeconfig")
    api.create("story", holder="cp-1", duration=3600)
    heartbeat = {
        "metadata": {"name": "n-1", "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": "n-1", "leaseDurationSeconds": 40, "renewTime": timestamp()},
    }
    collection = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    api.send("POST", collection, heartbeat)
    expect(pages["leases/default/story/"].locator("#facts")).to_contain_text("cp-1")
    expect(pages["history/"].locator("#board tbody")).to_contain_text("story")
    expect(pages["wall/"].locator(".w-comb")).to_contain_text("1 cell = 1 node")
    expect(pages["nodes/"].locator("#no-heartbeats")).to_be_empty()
