"""Nothing that was acknowledged is lost, and no resourceVersion is given twice, whatever ends the
process.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from tests.apiserver.clients import LEASES, Client, Process, lease
from tests.processes import wait_for

ROUNDS = int(os.environ.get("LEASE_API_KILL_ROUNDS", "4"))
WRITERS = 4


class Writer(threading.Thread):
    """Renews one Lease until the server is gone; remembers what was acknowledged."""

    def __init__(self, url: str, name: str, versions: set[int]) -> None:
        super().__init__(daemon=True)
        self.client = Client(url)
        self.lease = name
        self.versions = versions
        self.acknowledged = 0
        self.count = 0

    def run(self) -> None:
        path = f"{LEASES}/{self.lease}"
        found = self.client.call("GET", path)
        self.count = found.json["spec"]["leaseTransitions"] if found.status == 200 else 0
        try:
            if found.status != 200:
                found = self.client.call("POST", LEASES, lease(self.lease, leaseTransitions=0))
            while True:
                body = found.json
                body["spec"]["leaseTransitions"] = self.count + 1
                found = self.client.call("PUT", path, body)
                assert found.status == 200, found.text
                version = int(found.json["metadata"]["resourceVersion"])
                assert version not in self.versions
                self.versions.add(version)
                self.count += 1
                self.acknowledged = version
        except (OSError, EOFError, ValueError, AttributeError):
            self.client.close()
        except Exception as error:
            if type(error).__module__ != "http.client":
                raise
            self.client.close()


def test_acknowledged_writes_survive_kill_nine(tmp_path: Path) -> None:
    api = Process(tmp_path / "data")
    versions: set[int] = set()
    known: dict[str, tuple[int, int]] = {}
    for _ in range(ROUNDS):
        with api:
            check(api.url, known)
            writers = [Writer(api.url, f"lease-{index}", versions) for index in range(WRITERS)]
            for writer in writers:
                writer.start()
            wait_for(lambda: all(writer.acknowledged for writer in writers), what="writes")  # noqa: B023
            api.kill()
            for writer in writers:
                writer.join(timeout=30)
                assert not writer.is_alive()
                known[writer.lease] = (writer.count, writer.acknowledged)
    with api:
        check(api.url, known)
        client = Client(api.url)
        made = client.call("POST", LEASES, lease("after"))
        client.close()
    assert int(made.json["metadata"]["resourceVersion"]) > max(versions)


def check(url: str, known: dict[str, tuple[int, int]]) -> None:
    """Each Lease is at least where its last acknowledged write left it."""
    client = Client(url)
    for name, (count, version) in known.items():
        found = client.call("GET", f"{LEASES}/{name}").json
        assert found["spec"]["leaseTransitions"] in (count, count + 1)
        assert int(found["metadata"]["resourceVersion"]) >= version
    client.close()


def test_objects_outlive_a_clean_stop(tmp_path: Path) -> None:
    api = Process(tmp_path / "data")
    with api:
        before = write_some(api.url)
        assert api.stop() == 0
    with api:
        client = Client(api.url)
        after = client.call("GET", LEASES).json
        client.close()
    assert after["items"] == before["items"]
    assert int(after["metadata"]["resourceVersion"]) >= int(before["metadata"]["resourceVersion"])


def write_some(url: str) -> dict[str, Any]:
    client = Client(url)
    for name in ("b", "a", "c"):
        client.call("POST", LEASES, lease(name, holderIdentity=f"é-{name}"))
    client.call("DELETE", f"{LEASES}/c")
    found = client.call("GET", LEASES).json
    client.close()
    return found


def test_a_watch_from_before_a_restart_is_gone(tmp_path: Path) -> None:
    api = Process(tmp_path / "data")
    with api:
        write_some(api.url)
        api.kill()
    with api:
        client = Client(api.url)
        line = client.call("GET", LEASES, watch="1", resourceVersion="2")
        client.close()
    assert line.status == 200
    assert line.json["type"] == "ERROR"
    assert line.json["object"]["code"] == 410
    assert line.json["object"]["message"].startswith("too old resource version: 2 (")
