"""Leaseboard with its Lease API is stopped, killed or suspended while Leases are held: one incident
says so, and no change across the pause has another cause.
"""

from __future__ import annotations

import itertools
import json
import signal
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.api_client import LeaseApi, timestamp
from tests.support.processes import Server, ended, wait_for
from tests.support.signing_in import Opener, signed_in

NAMES = tuple(f"app-{letter}" for letter in "bcdfghjk")
PAUSE = 6.0  # seconds; each Lease lasts 3
ROUNDS = 8


class Holders:
    """Renew every Lease of NAMES in turn; a second life takes over as other holders."""

    def __init__(self, api: LeaseApi) -> None:
        self._api = api
        self._life = 0
        for name in NAMES:
            api.create(name, holder=self._holder(name), duration=3, transitions=0)

    def _holder(self, name: str) -> str:
        return f"{name}-6bcjktn59v-x2x4{'bcd'[self._life]}"

    def renew(self, rounds: int) -> None:
        for _, name in itertools.product(range(rounds), NAMES):
            self._api.patch(name, renewTime=timestamp())

    def live_again(self, api: LeaseApi) -> None:
        self._api = api
        self._life += 1
        for name in NAMES:
            api.take(name, holder=self._holder(name), transitions=self._life)


def items(opener: Opener, server: Server, page: str, cluster: str) -> list[dict[str, Any]]:
    with opener.open(f"{server.url}/c/{cluster}/{page}/?format=json", timeout=60) as answer:
        found: list[dict[str, Any]] = json.loads(answer.read())["items"]
    return found


def passed(seconds: float) -> None:
    end = time.monotonic() + seconds
    wait_for(lambda: time.monotonic() >= end, what="the pause to pass")


@pytest.mark.parametrize("how", ["SIGTERM", "SIGKILL", "SIGSTOP"])
def test_one_incident_spans_a_pause_of_everything(how: str, tmp_path: Path) -> None:
    server = Server(tmp_path / "data", "--no-demo")
    server.wait_synced()
    holders = Holders(LeaseApi(server.kubeconfig))
    opener = signed_in(server)
    wait_for(lambda: len(items(opener, server, "history", "embedded")) == len(NAMES), what="Leases")
    holders.renew(ROUNDS)
    stopped = datetime.fromisoformat(timestamp())
    server.process.send_signal(getattr(signal, how))
    try:
        if how != "SIGSTOP":
            server.process.wait(timeout=60)
        passed(PAUSE)
        if how == "SIGSTOP":
            server.process.send_signal(signal.SIGCONT)
        else:
            server = server.again()
        server.wait_synced()
        holders.live_again(LeaseApi(server.kubeconfig))

        def told() -> list[dict[str, Any]]:
            found = items(opener, server, "incidents", "embedded")
            return [one for one in found if len(one["leases"]) == len(NAMES) and one["ended"]]

        (incident,) = wait_for(told, what="the incident of all Leases")
        assert incident["cause"] == "api_outage"
        kind = "stood still" if how == "SIGSTOP" else "were stopped"
        assert f"Leaseboard and its Lease API {kind} from " in incident["sentence"]
        assert incident["sentence"].endswith(f"; {len(NAMES)} Leases changed")

        def causes() -> set[tuple[str, str]]:
            changes = items(opener, server, "history", "embedded")
            across = [one for one in changes if datetime.fromisoformat(one["at"]) >= stopped]
            found = {(one["cause"], one["incident"]) for one in across}
            return found if len(found) == 1 else set()

        assert wait_for(causes, what="one cause of every change") == {
            ("api_outage", incident["id"])
        }
        (only,) = [one["id"] for one in items(opener, server, "incidents", "embedded")]
        assert only == incident["id"]
    finally:
        server.process.send_signal(signal.SIGCONT)
        with ended(server):
            pass
