"""Nothing that was acknowledged is lost, and no resourceVersion is given twice, whatever ends the
process.
"""

from __future__ import annotations

import resource
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.apiserver.clients import LEASES, Client, Process, lease
from tests.apiserver.storage.killing import Account, Books, Watcher, Writer
from tests.support.processes import manage, wait_for

ROUNDS = 12
# Whether a watch can resume is up to the moment of the kill: so many rounds until one did.
MOST_ROUNDS = 60
WRITERS = 8
# Milliseconds of life that a round has at most once everybody writes.
LIFE_MS = 150


def test_acknowledged_writes_survive_kill_nine(tmp_path: Path) -> None:
    api = Process(tmp_path / "data")
    books = Books()
    accounts = [Account(f"lease-{number}") for number in range(WRITERS)]
    seen = 0
    rounds = resumed = gone = 0
    while rounds < ROUNDS or (rounds < MOST_ROUNDS and not resumed):
        rounds += 1
        with api:
            check(api.url, accounts, books)
            watcher = Watcher(api.url, seen or current(api.url), books)
            watcher.start()
            writers = [Writer(api.url, account, books) for account in accounts]
            for writer in writers:
                writer.start()
            wait_for(partial(everybody_writes, writers), what="everybody to write")
            time.sleep(secrets.randbelow(LIFE_MS) / 1000)
            api.kill()
            for party in (watcher, *writers):
                party.finish()
        expected = {version for writer in writers for version in writer.versions}
        if not watcher.gone:
            missed = {version for version in expected if version <= watcher.last} - {*watcher.seen}
            assert not missed
            assert watcher.seen == sorted(watcher.seen)
        gone += watcher.gone
        resumed += seen > 0 and not watcher.gone and bool(watcher.seen)
        seen = 0 if watcher.gone else watcher.last
    with api:
        check(api.url, accounts, books)
    print(f"{resumed} watches resumed, {gone} got 410")
    assert resumed
    assert sum(account.writes for account in accounts) > ROUNDS * WRITERS


def everybody_writes(writers: list[Writer]) -> bool:
    return all(writer.versions or not writer.is_alive() for writer in writers)


def check(url: str, accounts: list[Account], books: Books) -> None:
    """After a start: what was acknowledged is there, and versions go on from the last one sent."""
    client = Client(url)
    for account in accounts:
        account.check(client)
    client.close()
    assert current(url) >= books.last


def current(url: str) -> int:
    """The resourceVersion of a list."""
    client = Client(url)
    found = int(client.call("GET", LEASES).json["metadata"]["resourceVersion"])
    client.close()
    return found


def test_a_full_disk_refuses_writes_and_loses_none(tmp_path: Path) -> None:
    api = Process(tmp_path / "data")
    with api:
        client = Client(api.url)
        before = client.call("POST", LEASES, lease("before", leaseTransitions=1))
        with full_disk(api):
            for method, path, body in (
                ("POST", LEASES, lease("during")),
                ("PUT", f"{LEASES}/before", before.json | {"spec": {"holderIdentity": "x"}}),
                ("PUT", f"{LEASES}/before", before.json | {"spec": {"leaseTransitions": 2}}),
                ("DELETE", f"{LEASES}/before", None),
            ):
                refused = client.call(method, path, body)
                assert refused.status == 500
                assert "the write could not be stored" in refused.json["message"]
            assert client.call("GET", f"{LEASES}/during").status == 404
            assert client.call("GET", f"{LEASES}/before").text == before.text
        after = client.call("POST", LEASES, lease("after"))
        assert after.status == 201
        client.close()
        api.kill()
    with api:
        client = Client(api.url)
        found = client.call("GET", LEASES).json["items"]
        client.close()
    assert [item["metadata"]["name"] for item in found] == ["after", "before"]
    assert found[0]["metadata"] == after.json["metadata"]
    assert found[1]["metadata"] == before.json["metadata"]


@contextmanager
def full_disk(api: Process) -> Iterator[None]:
    """The kernel lets the server's files grow no further."""
    assert api.process is not None
    usual = resource.prlimit(api.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(api.process.pid, resource.RLIMIT_FSIZE, (0, usual[1]))
    yield
    resource.prlimit(api.process.pid, resource.RLIMIT_FSIZE, usual)


def test_a_second_server_on_the_same_data_is_refused(tmp_path: Path) -> None:
    with Process(tmp_path / "data") as api:
        second = manage(api.data, "lease_api", "--port", "0")
        assert second.returncode == 1
        assert "Another process serves" in second.stderr
        assert len(second.stderr.strip().splitlines()) == 1
        assert current(api.url) > 0


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
