"""Real Chromium for the tests that need one. Absent, they skip; in CI that is a failure."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.visits import PATIENCE, SIZE, Profiles, Visits
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, serving

expect.set_options(timeout=PATIENCE)

# Chromium draws what drops down from its address bar as pages of its own, which nobody sees here:
# they cost more than our pages do. The others are switched off by Playwright, whose list this
# flag replaces.
OFF = (
    "WebUIOmniboxPopup", "WebUIOmniboxAimPopup",
    "AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding",
    "ThirdPartyStoragePartitioning", "AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints",
    "NetworkTimeServiceQuerying", "AimEnabled", "PreconnectToSearch",
)  # fmt: skip
# One process draws all pages, and outlives them: to start one costs half a second of a core.
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--renderer-process-limit=1", "--disable-site-isolation-trials", "--animation-duration-scale=0",
    f"--disable-features={','.join(OFF)}",
]  # fmt: skip
# The first is Chromium without windows of its own: it does a quarter less work for each page.
NAMES = "chromium-headless-shell", "chromium", "chromium-browser"
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/browser/" in item.path.as_posix():
            item.add_marker("browser")


@pytest.fixture(scope="package")  # its event loop must not outlive the tests that want it
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        text = "Chromium is not on this machine: apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(text)
        pytest.skip(text)
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=CHROMIUM,
            args=FLAGS,
        )
        yield chromium
        chromium.close()


@pytest.fixture
def page(profiles: Profiles) -> Iterator[Page]:
    """The page of somebody who has not signed in yet; any error in its console fails the test."""
    yield profiles.stranger("", SIZE)
    assert profiles.leave() == []


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """No demo, and coordinated election switched on; a module may start another one."""
    gate = ("--feature-gates", "CoordinatedLeaderElection=true")
    with serving(tmp_path_factory.mktemp("server") / "data", "--no-demo", *gate) as one:
        one.wait_synced()
        yield one


@pytest.fixture
def api(server: Server) -> LeaseApi:
    return LeaseApi(server.kubeconfig)


@pytest.fixture(scope="package")
def profiles(browser: Browser) -> Profiles:
    return Profiles(browser)


@pytest.fixture(scope="module")
def signed_in(profiles: Profiles, server: Server) -> Iterator[Visits]:
    """An admin's ways into the pages of the module's `server`."""
    yield Visits(profiles, server)
    profiles.leave()


@pytest.fixture
def visits(signed_in: Visits) -> Iterator[Visits]:
    """The same for one test; a complaint in a console fails it."""
    yield signed_in
    assert signed_in.leave() == []
