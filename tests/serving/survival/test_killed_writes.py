"""kill -9 at each step of a write: after the restart the audit trail tells what the cluster has."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
from typing import Any

import pytest

from tests.apiserver.clients import ADMIN, LEASES, Client
from tests.serving.survival.killed_server import PROGRAM, drawn, read
from tests.support.page_fields import Fields
from tests.support.processes import Server, ended, wait_for
from tests.support.signing_in import Opener, cookie_keeper, press_button

STEPS = {  # and the outcome
    "opened": "not_done",
    "sending": "not_done",
    "written": "done",
    "answered": "done",
    "closed": "done",
}
# What a step leaves behind does not depend on the verb; whether it was carried out does.
OF = {"edit": (*STEPS,), "create": ("sending", "written"), "delete": ("sending", "written")}
RESOLVED = {"opened", "sending", "written", "answered"}
SPEC = {"holderIdentity": "cp-1", "leaseDurationSeconds": 15}


class Write:
    """A form that is saved, and whether the cluster has what it asked for."""

    def __init__(self, verb: str, number: int, api: Client) -> None:
        self.verb, self.api = verb, api
        self.name = f"{verb}-{number}"
        self.path = "new/" if verb == "create" else f"default/{self.name}/{verb}/"
        if verb != "create":
            body = {"metadata": {"name": self.name}, "spec": SPEC}
            assert api.call("POST", LEASES, body).status == 201

    @property
    def typed(self) -> dict[str, str]:
        return {
            "create": {"namespace": "default", "name": self.name, "duration_seconds": "15"},
            "edit": {"duration_seconds": "30"},
            "delete": {"typed_name": f"default/{self.name}"},
        }[self.verb]

    def happened(self) -> bool:
        answer = self.api.call("GET", f"{LEASES}/{self.name}")
        if self.verb == "edit":
            return bool(answer.json["spec"]["leaseDurationSeconds"] == 30)
        return (answer.status == 200) == (self.verb == "create")


def save(opener: Opener, url: str, fields: dict[str, str]) -> None:
    """Send the form to a server that dies meanwhile."""
    body = urllib.parse.urlencode(fields).encode()
    try:
        opener.open(url, body, timeout=120).read()
    except urllib.error.HTTPError as error:
        raise AssertionError(error.read().decode()) from error
    except (urllib.error.URLError, ConnectionError):
        return
    raise AssertionError("the server still lives")


def row_of(opener: Opener, server: Server, name: str) -> dict[str, Any]:
    query = urllib.parse.urlencode({"format": "json", "lease": f"default/{name}"})
    (item,) = json.loads(read(opener, f"{server.url}/audit/?{query}"))["items"]
    found: dict[str, Any] = item
    return found


@pytest.mark.parametrize(
    "verb", ["create", *(pytest.param(verb, marks=pytest.mark.long) for verb in ("edit", "delete"))]
)
def test_the_trail_tells_the_truth_after_a_kill_at_each_step(api, tmp_path, verb):
    die_at = tmp_path / "die-at"
    address = api.url.replace("//", f"//{ADMIN}@")
    options = ("--cluster", f"a=url:{address}", "--no-demo")
    server = Server(tmp_path / "data", *options, program=PROGRAM, DIE_AT=str(die_at))
    client, opener = Client(api.url, ADMIN), cookie_keeper()
    press_button(opener, server.printed("Sign in"))
    try:
        for number, step in enumerate(OF[verb]):
            outcome = STEPS[step]
            write = Write(verb, number, client)
            url = f"{server.url}/c/a/leases/{write.path}"
            fields = Fields(drawn(opener, url)).values
            fields |= write.typed | {"reason": "drill", "confirm": "yes"}
            die_at.write_text(step)
            save(opener, url, fields)
            server.process.wait(timeout=60)
            die_at.unlink()
            server = server.again()

            def closed(name: str = write.name) -> dict[str, Any] | None:
                row = row_of(opener, server, name)  # noqa: B023 - called in this turn only
                return None if row["outcome"] == "intended" else row

            row = wait_for(closed, what=f"the outcome of {write.name}, killed when {step}")
            assert (row["outcome"], write.happened()) == (outcome, outcome == "done"), (step, row)
            assert (row["resolved_at"] is not None) == (step in RESOLVED), (step, row)
            assert row["reason"] == "drill"
    finally:
        with ended(server):
            client.close()
