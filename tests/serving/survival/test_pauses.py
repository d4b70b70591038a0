"""Leaseboard with its Lease API is stopped, killed or suspended while Leases are held: one incident
says so, and no change across the pause has another cause.
"""

from __future__ import annotations

import json
import signal
import time
from datetime import datetime
from functools import partial
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

    def renew(self, rounds: int) -> str:
        """Returns when the last one renewed."""
        for _ in range(rounds):
            for name in NAMES:
                self._api.patch(name, renewTime=(now := timestamp()))
        return now

    def live_again(self, api: LeaseApi) -> None:
        self._api = api
        self._life += 1
        for name in NAMES:
            now = timestamp()
            api.patch(
                name, holderIdentity=self._holder(name), leaseTransitions=self._life,
                acquireTime=now, renewTime=now, leaseDurationSeconds=600,
            )  # fmt: skip


def items(opener: Opener, server: Server, page: str, cluster: str) -> list[dict[str, Any]]:
    with opener.open(f"{server.url}/c/{cluster}/{page}/?format=json", timeout=60) as answer:
        found: list[dict[str, Any]] = json.loads(answer.read())["items"]
    return found


def passed(seconds: float) -> None:
    end = time.monotonic() + seconds
    wait_for(lambda: time.monotonic() >= end, what="the pause to pass")


def second_board(data: Path, api: LeaseApi) -> Server:
    """Another board that watches the Lease API of the first."""
    source = api.url.replace("https://", f"http://{api.token}@")
    server = Server(data, "--no-demo", "--cluster", f"c=url:{source}")
    server.wait_synced()
    return server


def _all_are_known(opener: Opener, server: Server, cluster: str) -> bool:
    return len(items(opener, server, "history", cluster)) == len(NAMES)


def _has_seen(renewed: str, opener: Opener, server: Server, cluster: str) -> bool:
    return renewed in {one["renew_time"] for one in items(opener, server, "leases", cluster)}


def told_of_all(opener: Opener, server: Server, cluster: str) -> list[dict[str, Any]]:
    found = items(opener, server, "incidents", cluster)
    return [one for one in found if len(one["leases"]) == len(NAMES) and one["ended"]]


def causes_since(
    stopped: datetime, opener: Opener, server: Server, cluster: str
) -> set[tuple[str, str]]:
    """Cause and incident of the changes across the pause, once all have the same."""
    changes = items(opener, server, "history", cluster)
    across = [one for one in changes if datetime.fromisoformat(one["at"]) >= stopped]
    found = {(one["cause"], one["incident"]) for one in across}
    return found if len(found) == 1 else set()


@pytest.mark.parametrize(
    "how",
    [
        "SIGSTOP, watched",
        pytest.param("SIGTERM", marks=pytest.mark.long),
        pytest.param("SIGKILL on PostgreSQL", marks=pytest.mark.long),
    ],
)
def test_one_incident_spans_a_pause_of_everything(
    how: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    name = how.split()[0].strip(",")
    settings = {}
    if "PostgreSQL" in how:
        database = request.getfixturevalue("postgres").database()
        settings = {"LEASEBOARD_DATABASE_URL": database}
    server = Server(tmp_path / "data", "--no-demo", **settings)
    server.wait_synced()
    api = LeaseApi(server.kubeconfig)
    boards = [(signed_in(server), server, "embedded")]
    if "watched" in how:
        second = second_board(tmp_path / "second", api)
        boards.append((signed_in(second), second, "c"))
    holders = Holders(api)
    for board in boards:
        wait_for(partial(_all_are_known, *board), what="Leases")
    last = holders.renew(ROUNDS)
    for board in boards:
        wait_for(partial(_has_seen, last, *board), what="the last renewal")
    stopped = datetime.fromisoformat(timestamp())
    server.process.send_signal(getattr(signal, name))
    try:
        if name != "SIGSTOP":
            server.process.wait(timeout=60)
        passed(PAUSE)
        if name == "SIGSTOP":
            server.process.send_signal(signal.SIGCONT)
        else:
            boards[0] = (boards[0][0], server := server.again(), "embedded")
        server.wait_synced()
        holders.live_again(LeaseApi(server.kubeconfig))
        for opener, board, cluster in boards:
            seen = partial(told_of_all, opener, board, cluster)
            (incident,) = wait_for(seen, what="the incident of all Leases")
            assert incident["sentence"].endswith(f"; {len(NAMES)} Leases changed")
            assert incident["cause"] == "api_outage"
            if board is server:
                kind = "stood still" if name == "SIGSTOP" else "were stopped"
                assert f"Leaseboard and its Lease API {kind} from " in incident["sentence"]
            since = partial(causes_since, stopped, opener, board, cluster)
            assert wait_for(since, what="one cause of every change") == {
                (incident["cause"], incident["id"])
            }
            (only,) = [one["id"] for one in items(opener, board, "incidents", cluster)]
            assert only == incident["id"]
    finally:
        server.process.send_signal(signal.SIGCONT)
        for _, board, _ in boards[::-1]:
            with ended(board):
                pass
