"""The commands of docs/operations.md lead to two replicas behind a proxy, word for word."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.clients.presence import absent
from tests.deploy.shipped import commands_of
from tests.support.api_client import LeaseApi
from tests.support.processes import LIMIT, ROOT, environment, free_port, get, wait_for
from tests.support.signing_in import Opener, cookie_keeper, press_button

PORTS = ("PROXY_PORT", "ONE_PORT", "OTHER_PORT", "API_PORT")


def bash(script: str, log: Path, settings: dict[str, str]) -> str:
    """Run it in the checkout; what it printed."""
    with log.open("w") as said:  # not a pipe: what it starts would keep that open
        done = subprocess.run(
            ["bash", "-euo", "pipefail"], input=script, text=True, cwd=ROOT, stdout=said,
            stderr=said, env=settings, timeout=5 * LIMIT, check=False,
        )  # fmt: skip
    printed = log.read_text()
    logs = "\n".join(path.read_text() for path in log.parent.glob("*/log"))
    assert done.returncode == 0, printed + logs
    return printed


@pytest.fixture
def installed(tmp_path: Path, postgres) -> Iterator[tuple[dict[str, str], str]]:
    """The settings with which the commands ran, and what they printed."""
    for program in ("haproxy", "psql", "curl"):
        if shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin") is None:
            absent(program)
    settings = environment(tmp_path) | {
        "BASE": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PSQL": f"psql --host 127.0.0.1 --port {postgres.port} --username leaseboard",
        "DATABASE": f"127.0.0.1:{postgres.port}",
        **{name: str(free_port()) for name in PORTS},
    }
    *steps, stop = commands_of("docs/operations.md", "Two replicas, step by step")
    try:
        yield settings, bash("\n".join(steps), tmp_path / "said", settings)
    finally:
        bash(stop, tmp_path / "said-at-the-end", settings)
        for name in PORTS:
            url = f"http://127.0.0.1:{settings[name]}/"
            wait_for(lambda url=url: get(url)[0] == 0, what=f"the end of {name}")


@pytest.mark.long
def test_the_steps_lead_to_two_replicas_behind_a_proxy(installed):
    settings, printed = installed
    base = Path(settings["BASE"])
    proxy, one, other = (f"http://127.0.0.1:{settings[name]}" for name in PORTS[:3])
    assert [get(f"{url}/readyz")[0] for url in (one, other, proxy)] == [200, 200, 200]
    browser = cookie_keeper()
    press_button(browser, printed.strip().splitlines()[-1])
    LeaseApi(base / "api" / "kubeconfig").create("spoken-of", holder="somebody")

    def changes(url: str) -> list[dict[str, object]]:
        """Those of the Lease, once its board has it too."""
        held = fetched(browser, f"{url}/c/lab/leases/")
        return fetched(browser, f"{url}/c/lab/history/") if held else []

    seen = [wait_for(partial(changes, url), what=f"it on {url}") for url in (one, other, proxy)]
    assert [(one["change"], one["holder"]) for one in seen[0]] == [("created", "somebody")]
    assert seen[0] == seen[1] == seen[2]


def fetched(browser: Opener, url: str) -> list[dict[str, object]]:
    with browser.open(f"{url}?format=json&q=spoken-of", timeout=60) as answer:
        items: list[dict[str, object]] = json.load(answer)["items"]
        return [item for item in items if item["name"] == "spoken-of"]
