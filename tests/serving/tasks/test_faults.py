"""A fault in each task of a running server is shown everywhere and mended, and loses nothing."""

from __future__ import annotations

import json
import re
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.support.api_client import LeaseApi
from tests.support.processes import Server, ended, get, manage, wait_for
from tests.support.signing_in import signed_in

PROGRAM = ("-m", "tests.serving.tasks.serve_with_faults")
CLUSTER = "embedded"

# By fault: the task that dies of it, its cluster, and the sentence of every page meanwhile.
FAULTS = {
    "watch": ("watch", CLUSTER, "The Leases of embedded are not watched."),
    "watch-deadlines": ("watch", CLUSTER, "The Leases of embedded are not watched."),
    "watch-renewals": ("watch", CLUSTER, "The Leases of embedded are not watched."),
    "nodes": ("nodes", CLUSTER, "The Nodes of embedded are not read."),
    "version": ("version", CLUSTER, "The version of embedded is not read."),
    "publisher": ("publisher", CLUSTER, "Open pages of embedded do not follow what happens."),
    "fleet": ("fleet", "", "Open pages of all clusters do not follow what happens."),
    "strips": (
        "strips",
        "",
        "Some clusters are not drawn anew on the page of all of them.",
    ),
    "recorder": ("recorder", "", "History is not written; changes wait in memory."),
    "clock": ("clock", "", "A jump of the clock is noticed late."),
    "retention": ("retention", "", "Old history is not deleted."),
    "reliability": ("reliability", "", "Reliability is not counted."),
    "overrides": ("overrides", "", "Kinds that admins set at another replica are not taken over."),
    "added clusters": (
        "added clusters",
        "",
        "Clusters that admins add, change, pause or remove are not followed.",
    ),
    "renewals": ("renewals", "", "The renewals of Leases are not noted for their charts."),
    "deletions": ("deletions", CLUSTER, "Deletions of many Leases of embedded are interrupted."),
    "incidents": (
        "incidents",
        CLUSTER,
        "Changes of embedded get no cause, and its incidents stand still.",
    ),
    "evidence": (
        "evidence",
        CLUSTER,
        "Pods, Nodes and Events of embedded are not asked for the causes of changes.",
    ),
    "audit": ("audit", "", "Open rows of the audit trail are not resolved."),
    "notifications": ("notifications", "", "Incidents are not notified."),
    "database": ("database", "", "Pages wait for a database that does not answer."),
    "memory": ("memory", "", "Freed memory is not given back to the system."),
    "rights": ("rights", "", "Open pages whose right has ended are not closed."),
    "wall link use": ("wall link use", "", "When wall links were used is not noted."),
    "demo": ("demo", "", "The demo&#x27;s Leases stand still."),
    "lease-api": ("lease-api", "", "The embedded Lease API does not answer."),
    "regions": ("regions", CLUSTER, "Parts of open pages of embedded are not drawn anew."),
    "picture": ("picture", CLUSTER, "The picture of all heartbeats of embedded is not drawn anew."),
    "accept": ("accept", "", ""),  # of either port
    "sweep": ("sweep", "", "The embedded Lease API failed on a request or on an event."),
    "bookmarks": ("bookmarks", "", "The embedded Lease API failed on a request or on an event."),
    "publish": ("publish", "", "The embedded Lease API failed on a request or on an event."),
}
AT_START = ("version", "nodes", "retention", "reliability", "demo")  # these act once in a long time
ROUNDS = (
    ("watch", "publisher", "fleet", "recorder", "overrides", "rights", "wall link use", "clock"),
    (
        "watch-deadlines",
        "added clusters",
        "renewals",
        "strips",
        "database",
        "memory",
        "regions",
        "sweep",
        "audit",
        "notifications",
        "deletions",
        "incidents",
        "evidence",
    ),
    ("watch-renewals", "accept", "lease-api"),
    ("bookmarks",),
    ("publish",),
)


class Faulty:
    """A server in which faults are put, and what was seen of them."""

    def __init__(self, server: Server, faults: Path) -> None:
        self.server = server
        self._faults = faults
        self.browser = signed_in(server)
        self.leaked = False
        self._seen: set[tuple[str, str]] = set()  # faults, and where each was shown

    def put(self, *names: str) -> None:
        for name in names:
            (self._faults / name).touch()

    def look(self) -> None:
        """Note what the overview, the audit page, the wall, `/readyz`, metrics and log show now."""
        pages = get(self.server.printed("Wall"))[1]
        for path in ("/c/embedded/", "/audit/"):
            with suppress(OSError), self.browser.open(self.server.url + path, timeout=60) as page:
                pages += page.read().decode()
        with self.browser.open(f"{self.server.url}/readyz", timeout=60) as answer:
            ready = answer.read().decode()
        restarts, log = self.restarts(), self.server.text
        self.leaked = self.leaked or "a secret of" in pages + ready
        for name, (task, cluster, sentence) in FAULTS.items():
            of = f" of {cluster}" if cluster else ""
            shown = {
                "pages": sentence in pages,
                "ready": f"task {task}{of}: " in ready,
                "metrics": restarts.get((task, cluster), 0) > 0,
                "log": f"Injected: a secret of {name}" in log,
            }
            self._seen |= {(name, where) for where, is_there in shown.items() if is_there}

    def restarts(self) -> dict[tuple[str, str], float]:
        text = get(f"{self.server.url}/metrics")[1]
        found = re.findall(
            r'^leaseboard_task_restarts_total\{cluster="([^"]*)",task="([^"]*)"\} (\S+)$',
            text, re.MULTILINE,
        )  # fmt: skip
        return {(task, cluster): float(number) for cluster, task, number in found}

    def is_reported(self, name: str) -> bool:
        """Whether pages, `/readyz`, metrics and log have shown a fault."""
        where = [where for one, where in self._seen if one == name]
        return len(where) == 4 and not (self._faults / name).exists()

    def wait_reported(self, *names: str) -> None:
        left = set(names)

        def all_reported() -> bool:
            self.look()
            left.difference_update([name for name in left if self.is_reported(name)])
            return not left

        try:
            wait_for(all_reported, what="every fault to be shown", every=0.2)
        except AssertionError as error:
            log = self.server.text[-5000:]
            raise AssertionError(f"not shown: {left}\n{self.restarts()}\n{log}") from error


class Writer(threading.Thread):
    """Gives one Lease a new holder again and again, also while the API restarts."""

    def __init__(self, kubeconfig: Path) -> None:
        super().__init__()
        self._api = LeaseApi(kubeconfig)
        self.holders = ["h0"]
        self._ended = threading.Event()
        self._api.create("passed-on", holder="h0")

    def run(self) -> None:
        while not self._ended.wait(0.1):
            number = len(self.holders)
            with suppress(OSError):
                self._api.take("passed-on", holder=f"h{number}", transitions=number)
                self.holders.append(f"h{number}")

    def end(self) -> list[str]:
        self._ended.set()
        self.join()
        return self.holders


class OpenPage(threading.Thread):
    """The socket of an open overview with the picture of all heartbeats, or of the page of all
    clusters; comes back when cut."""

    def __init__(self, server: Server, cookies: str, path: str = "/c/embedded/live/page/") -> None:
        super().__init__()
        self._url = f"ws://{urlsplit(server.url).netloc}{path}"
        self._headers = {"Cookie": cookies, "Origin": server.url}
        self._ended = threading.Event()
        self.closed: list[int] = []

    def run(self) -> None:
        show = json.dumps({"show": {}, "groups": ["overview"], "field": "none"})
        while not self._ended.is_set():
            with suppress(OSError), connect(self._url, additional_headers=self._headers) as page:
                page.send(show)
                try:
                    while not self._ended.is_set():
                        with suppress(TimeoutError):
                            page.recv(timeout=0.2)
                except ConnectionClosed as closed:
                    self.closed.append(closed.rcvd.code if closed.rcvd else 1006)

    def end(self) -> None:
        self._ended.set()
        self.join()


@contextmanager
def faulty(tmp_path: Path) -> Iterator[Faulty]:
    faults = tmp_path / "faults"
    faults.mkdir()
    for name in AT_START:
        (faults / name).touch()
    with ended(Server(tmp_path / "data", program=PROGRAM, FAULTS=str(faults))) as server:
        yield Faulty(server, faults)


def cookies_of(one: Faulty) -> str:
    handlers = one.browser.handlers  # type: ignore[attr-defined]
    (keeper,) = [one for one in handlers if isinstance(one, urllib.request.HTTPCookieProcessor)]
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in keeper.cookiejar)


def exported_holders(data: Path) -> list[str]:
    done = manage(data, "export_history", "--cluster", CLUSTER)
    assert done.returncode == 0, done.stderr
    changes = [json.loads(line) for line in done.stdout.splitlines()]
    mine = [change for change in changes if change["name"] == "passed-on"]
    return [c["holder"] for c in mine if c["change"] in ("created", "replaced")]


def test_a_fault_in_each_task_is_shown_and_mended_and_no_change_is_lost(tmp_path: Path) -> None:
    with faulty(tmp_path) as one:
        one.wait_reported(*AT_START)
        server = one.server
        unknown = {task for task, _ in one.restarts()} - {task for task, *_ in FAULTS.values()}
        assert not unknown, "put a fault into each task"
        writer = Writer(server.kubeconfig)
        page = OpenPage(server, cookies_of(one))
        of_all = OpenPage(server, cookies_of(one), "/live/fleet/")
        one.put("picture")  # drawn whole when the page opens
        writer.start()
        page.start()
        of_all.start()
        try:
            one.wait_reported("picture")
            for names in ROUNDS:
                if "sweep" in names:
                    delete_a_namespace(LeaseApi(server.kubeconfig))
                one.put(*names)
                one.wait_reported(*names)
            one.put("socket")
            wait_for(lambda: one.restarts().get(("socket", CLUSTER)), what="the socket to fail")
            wait_for(lambda: 1011 in page.closed, what="the page to be closed")
            one.put("settle")
            server.wait_synced()  # all tasks run again
        finally:
            page.end()
            of_all.end()
            holders = writer.end()
        assert len(holders) > 20
        wait_for(lambda: exported_holders(server.data)[-1:] == holders[-1:], what="the last change")
        assert server.interrupt() == 0
        is_reported = exported_holders(server.data)
        assert is_reported == holders
        assert not one.leaked


def delete_a_namespace(api: LeaseApi) -> None:
    meta = {"metadata": {"name": "brief"}}
    api.send("POST", "/api/v1/namespaces", meta)
    spec = {"holderIdentity": "x"}
    leases = "/apis/coordination.k8s.io/v1/namespaces/brief/leases"
    api.send("POST", leases, {"metadata": {"name": "one"}, "spec": spec})
    api.send("DELETE", "/api/v1/namespaces/brief")
