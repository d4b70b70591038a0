"""A cluster that falls silent: what ran out since its last sign of life is no fact."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

from tests.support.api_client import LeaseApi
from tests.support.processes import manage, serving, wait_for
from tests.support.programs.api_process import ApiProcess
from tests.support.programs.lease_apis import changes_in


def test_what_runs_out_while_the_api_stands_still_is_inferred(tmp_path: Path) -> None:
    process = ApiProcess(tmp_path / "api")
    api = LeaseApi(process.data / "kubeconfig")
    api.create("long", holder="one", duration=600)
    address = api.url.replace("https://", f"http://{api.token}@")
    data = tmp_path / "data"
    with serving(data, "--cluster", f"c=url:{address}") as server:
        server.wait_synced()
        api.create("short", holder="one", duration=6)
        wait_for(lambda: changes_in(data, "c", "short"), what="the Lease to be seen")
        process.signal(signal.SIGSTOP)
        try:
            wait_for(lambda: "watch broke" in server.text, what="the silence to be noticed")
            assert changes_in(data, "c", "short") == ["created"]
        finally:
            process.signal(signal.SIGCONT)
        wait_for(lambda: len(changes_in(data, "c", "short")) == 2, what="the expiry")
        _, expired = _changes(data, "short")
        assert (expired["change"], expired["inferred"]) == ("expired", True)
    process.kill()


def test_a_quiet_cluster_that_answers_has_its_expiry_told(tmp_path: Path) -> None:
    process = ApiProcess(tmp_path / "api")
    api = LeaseApi(process.data / "kubeconfig")
    address = api.url.replace("https://", f"http://{api.token}@")
    data = tmp_path / "data"
    with serving(data, "--cluster", f"c=url:{address}") as server:
        server.wait_synced()
        api.create("short", holder="one", duration=2)
        wait_for(lambda: len(changes_in(data, "c", "short")) == 2, what="the expiry")
        _, expired = _changes(data, "short")
        assert (expired["change"], expired["inferred"]) == ("expired", False)
    process.kill()


def _changes(data: Path, name: str) -> list[dict[str, Any]]:
    kept = manage(data, "export_history", "--cluster", "c").stdout.splitlines()
    return [one for one in map(json.loads, kept) if one["name"] == name]
