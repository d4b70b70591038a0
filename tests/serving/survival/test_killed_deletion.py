"""kill -9 in the middle of "Delete many": its report then tells what the cluster has."""

from __future__ import annotations

import csv
import io
import urllib.parse
from collections import Counter
from pathlib import Path

import pytest

from tests.apiserver.clients import ADMIN, LEASES, Client, Process
from tests.serving.survival.killed_server import PROGRAM, drawn, read
from tests.support.page_fields import Fields
from tests.support.processes import Server, ended, wait_for
from tests.support.signing_in import Opener, cookie_keeper, press_button

MANY, WRITTEN = 70, 45  # two rounds of 20 are over, and the third is under way


def confirm(opener: Opener, url: str, number: int) -> str:
    """Confirm the choice as a person does; returns the address of the deletion."""

    def chosen() -> str | None:
        page = drawn(opener, url)
        return page if f"{number} Leases will be removed" in page else None

    page = wait_for(chosen, what=f"a choice of {number}")
    fields = Fields(page).values | {"typed_number": str(number), "reason": "drill"}
    with opener.open(url, urllib.parse.urlencode(fields).encode(), timeout=120) as answer:
        address: str = answer.url
    assert "/deletions/" in address
    return address


def report(opener: Opener, address: str) -> dict[str, str]:
    """What became of each Lease, by name, once the deletion is over and nothing is unknown."""

    def known() -> dict[str, str] | None:
        if ">Report</h2>" not in read(opener, address):
            return None
        lines = csv.DictReader(io.StringIO(read(opener, f"{address}?format=csv")))
        fates = {line["name"]: line["outcome"] for line in lines}
        return None if "unknown" in fates.values() else fates

    return wait_for(known, what="a report without open rows")


@pytest.mark.long
def test_the_report_tells_the_truth_after_a_kill(api: Process, tmp_path: Path) -> None:
    die_at = tmp_path / "die-at"
    address = api.url.replace("//", f"//{ADMIN}@")
    options = ("--cluster", f"a=url:{address}", "--no-demo")
    server = Server(tmp_path / "data", *options, program=PROGRAM, DIE_AT=str(die_at))
    client, opener = Client(api.url, ADMIN), cookie_keeper()
    press_button(opener, server.printed("Sign in"))

    def there() -> set[str]:
        items = client.call("GET", LEASES).json["items"]
        return {item["metadata"]["name"] for item in items}

    try:
        names = {f"n-{number:03}" for number in range(MANY)}
        for name in sorted(names):
            body = {"metadata": {"name": name}, "spec": {"holderIdentity": ""}}
            assert client.call("POST", LEASES, body).status == 201
        die_at.write_text(f"written {WRITTEN}")
        started = confirm(opener, f"{server.url}/c/a/leases/delete/?namespace=default", MANY)
        server.process.wait(timeout=120)
        die_at.unlink()
        server = server.again()
        left = there()  # by now what was on its way has arrived
        assert MANY - 60 <= len(left) <= MANY - WRITTEN

        fates = report(opener, started)
        assert fates.keys() == names
        assert {name for name, fate in fates.items() if fate == "deleted"} == names - left
        assert Counter(fates.values())["not tried"] == MANY - 60
        assert set(fates.values()) <= {"deleted", "not deleted", "not tried"}
        page = read(opener, started)
        assert "Leaseboard stopped before the end." in page
        assert f"{MANY - len(left)} deleted" in page
        assert f"Try the {len(left)} again" in page

        # It does not go on by itself: whoever tries again finds each of the rest.
        number = started.rstrip("/").rpartition("/")[2]
        again = confirm(opener, f"{server.url}/c/a/leases/delete/?again={number}", len(left))
        assert report(opener, again) == dict.fromkeys(left, "deleted")
        assert there() == set()
        assert report(opener, started) == fates
    finally:
        with ended(server):
            client.close()
