"""kill -9 before an incident is written: the next start finds it in the changes of history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dashboard import clock
from leases.wire.microtime import format_microtime
from tests.apiserver.clients import ADMIN, LEASES, Client, Process
from tests.serving.survival.killed_server import PROGRAM, read
from tests.support.processes import Server, ended, wait_for
from tests.support.signing_in import Opener, cookie_keeper, press_button

NAMES = ("scheduler", "web")


def items(opener: Opener, server: Server, page: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(read(opener, f"{server.url}/c/a/{page}/?format=json"))[
        "items"
    ]
    return found


def test_an_incident_that_was_not_written_is_found_again(api: Process, tmp_path: Path) -> None:
    die_at = tmp_path / "die-at"
    die_at.write_text("incident")
    address = api.url.replace("//", f"//{ADMIN}@")
    options = ("--cluster", f"a=url:{address}", "--no-demo")
    server = Server(tmp_path / "data", *options, program=PROGRAM, DIE_AT=str(die_at))
    client, opener = Client(api.url, ADMIN), cookie_keeper()
    press_button(opener, server.printed("Sign in"))
    try:
        now = format_microtime(clock.now())
        for name in NAMES:
            spec = {
                "holderIdentity": f"{name}-5d8f7c9b6f-x2x4z", "leaseDurationSeconds": 1,
                "acquireTime": now, "renewTime": now, "leaseTransitions": 0,
            }  # fmt: skip
            body = {"metadata": {"name": name}, "spec": spec}
            assert client.call("POST", LEASES, body).status == 201
        server.process.wait(timeout=120)
        die_at.unlink()
        server = server.again()
        told = wait_for(lambda: items(opener, server, "incidents"), what="the incidents")
        assert {one["leases"][0]["name"] for one in told} == set(NAMES)
        assert {one["cause"] for one in told} == {"crash"}
        assert all(one["ended"] is None for one in told)

        def explained() -> bool:
            expired = [
                one for one in items(opener, server, "history") if one["change"] == "expired"
            ]
            known = {one["incident"] for one in expired}
            return known == {one["id"] for one in told}

        wait_for(explained, what="the causes of the changes")
    finally:
        with ended(server):
            client.close()
