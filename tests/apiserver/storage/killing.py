"""Writers and watchers who keep their own books while the server is killed and started again."""

from __future__ import annotations

import http.client
import json
import threading
from typing import Any

from tests.apiserver.clients import LEASES, Client, lease

# Every so many writes a Lease is deleted and created again.
LIFE = 7
GONE = None


class Books:
    """The one state that each resourceVersion stands for, among all that anybody received."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._meant: dict[int, tuple[str, int]] = {}

    def note(self, obj: dict[str, Any]) -> int:
        """The version of an object; fails when it was given for another one."""
        version = int(obj["metadata"]["resourceVersion"])
        meaning = obj["metadata"]["name"], obj["spec"]["leaseTransitions"]
        with self._lock:
            known = self._meant.setdefault(version, meaning)
        assert known == meaning, f"{version} is given for {known} and {meaning}"
        return version

    @property
    def last(self) -> int:
        return max(self._meant, default=0)


class Party(threading.Thread):
    """Something that uses the server until that is gone. `failure` is what went wrong before."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.client = Client(url)
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self.work()
        except (OSError, http.client.HTTPException):
            pass  # killed
        except BaseException as error:
            self.failure = error
        finally:
            self.client.close()

    def work(self) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        self.join(timeout=60)
        assert not self.is_alive()
        if self.failure is not None:
            raise self.failure


class Account:
    """One Lease as its writer knows it: the count in it (GONE: none) that was acknowledged last,
    and the one that was asked for last.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = f"{LEASES}/{name}"
        self.acknowledged: int | None = GONE
        self.asked: int | None = GONE
        self.writes = 0

    def check(self, client: Client) -> None:
        """After a start: the Lease is as acknowledged, or as asked for at the moment of death."""
        found = client.call("GET", self.path)
        assert found.status in (200, 404), found.text
        count = found.json["spec"]["leaseTransitions"] if found.status == 200 else GONE
        assert count in (self.acknowledged, self.asked), (self.name, count)
        self.acknowledged = self.asked = count


class Writer(Party):
    """Counts one Lease up, and now and then deletes it and makes it anew."""

    def __init__(self, url: str, account: Account, books: Books) -> None:
        super().__init__(url)
        self.account = account
        self.books = books
        self.versions: list[int] = []

    def work(self) -> None:
        account = self.account
        found: dict[str, Any] = {}
        if account.acknowledged is not GONE:
            found = self.client.call("GET", account.path).json
        while True:
            account.writes += 1
            if not found:
                made = lease(account.name, leaseTransitions=account.writes)
                found = self.ask("POST", LEASES, made, account.writes)
            elif account.writes % LIFE == 0:
                self.ask("DELETE", account.path, None, GONE)
                found = {}
            else:
                found["spec"]["leaseTransitions"] = account.writes
                found = self.ask("PUT", account.path, found, account.writes)

    def ask(self, method: str, path: str, body: Any, count: int | None) -> dict[str, Any]:
        self.account.asked = count
        answer = self.client.call(method, path, body)
        assert answer.status in (200, 201), answer.text
        found = answer.json
        self.account.acknowledged = count
        if count is not GONE:
            self.versions.append(self.books.note(found))
        return found


class Watcher(Party):
    """Watches from a version on and notes every event."""

    def __init__(self, url: str, since: int, books: Books) -> None:
        super().__init__(url)
        self.since = since
        self.books = books
        self.seen: list[int] = []
        self.gone = False

    def work(self) -> None:
        stream = self.client.send("GET", LEASES, watch="1", resourceVersion=str(self.since))
        while line := stream.readline():
            event = json.loads(line) if line.endswith(b"\n") else {"type": "cut short"}
            if event["type"] == "ERROR":
                assert event["object"]["code"] == 410, line
                self.gone = True
            elif event["type"] != "cut short":
                self.seen.append(self.books.note(event["object"]))

    @property
    def last(self) -> int:
        return self.seen[-1] if self.seen else self.since
