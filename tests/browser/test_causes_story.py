"""Holders stop, are killed, run out of memory, freeze and come back, and a person meddles: each
Lease's incident appears on the open page with its true cause, once where Pods, Nodes and Events may
be read, and once where they are forbidden.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from dashboard.parts.cause_words import CAUSE_WORDS
from leases.domain.incident import Cause
from tests.browser.contender_pods import HASH, ContenderPods
from tests.browser.visits import Visits
from tests.clients.kubectl.runner import Kubectl
from tests.support.api_client import LeaseApi, leases, timestamp
from tests.support.processes import Server, StartedProcess, serving, wait_for
from tests.support.programs.contender import contending
from tests.support.programs.forbidding_proxy import ForbiddingProxy, forbidding_proxy

ALL, LEASES_ONLY = "embedded", "narrow"  # what may be read of the same cluster
# How many contend for each Lease. A second one takes over from a holder that is gone.
CONTENDERS = {
    "stop": 2, "kill": 2, "memory": 2, "freeze": 2,
    "thaw": 1, "theft": 1, "release": 1, "delete": 1,
}  # fmt: skip
WRITERS = {"theft": "kubectl-edit", "release": "kubectl-patch"}
# By what may be read: the causes that are true, and may be told as likely or certain.
TRUE = {
    "stop": {"graceful_stop"},
    "thaw": {"partition", "starved"},
    "theft": {"by_hand"},
    "release": {"by_hand"},
    "delete": {"by_hand"},
}
TRUE_WITH_PODS = TRUE | {
    "kill": {"crash"},
    "memory": {"oom_killed"},
    "freeze": {"partition"},  # its Pod runs on
}
# What else may be told as possible, of Leases of which too little is known.
POSSIBLE = {"crash", "unknown", "partition"}
# A process that stands still and one that is cut off look the same from outside.
TOO_LITTLE = {ALL: {"freeze", "thaw"}, LEASES_ONLY: {"freeze", "thaw", "kill", "memory"}}
# A Pod that is evicted or deleted releases its Lease as one that stops: Leases cannot tell.
LOOKS_ALIKE = {ALL: {}, LEASES_ONLY: {"stop": ("graceful_stop", "possible")}}
DURATION, DEADLINE = 8, 6.0
RENEWING = 4.0  # seconds that each holder renews before anything happens to it
moment = datetime.fromisoformat


class Contenders:
    """The processes by the Pod that each stands for."""

    def __init__(self, server: Server, stack: ExitStack) -> None:
        self.api = LeaseApi(server.kubeconfig)
        self.pods = ContenderPods(self.api)
        self._processes: dict[str, StartedProcess] = {}
        for lease, number in CONTENDERS.items():
            for letter in "bcd"[:number]:
                pod = f"{lease}-{HASH}-{letter * 5}"
                identity = f"{pod}_{uuid4()}"
                self.pods.start(pod)
                self._processes[identity] = stack.enter_context(
                    contending(
                        server.kubeconfig,
                        "default",
                        lease,
                        identity,
                        duration=DURATION,
                        deadline=DEADLINE,
                    )
                )

    def holder(self, lease: str) -> str:
        found = self.api.send("GET", leases())["items"]
        by_name = {one["metadata"]["name"]: one["spec"].get("holderIdentity") for one in found}
        return by_name.get(lease) or ""

    def everybody_renewed(self) -> bool:
        found = self.api.send("GET", leases())["items"]
        specs = [one["spec"] for one in found if one["metadata"]["name"] in CONTENDERS]
        times = [(moment(spec["acquireTime"]), moment(spec["renewTime"])) for spec in specs]
        return len(specs) == len(CONTENDERS) and all(
            (renewed - acquired).total_seconds() >= RENEWING for acquired, renewed in times
        )

    def signal(self, lease: str, number: signal.Signals) -> str:
        """Send it to the holder. Returns its Pod."""
        holder = self.holder(lease)
        self._processes[holder].send_signal(number)
        return holder.partition("_")[0]


@contextmanager
def bystander(server: Server) -> Iterator[None]:
    """A holder to whom nothing happens.

    Of those that contend, soon a single one renews, about once a second. On a busy machine nobody
    at all may then be heard of for seconds, which does look like an outage of the API.
    """
    api, stopped = LeaseApi(server.kubeconfig), Event()
    api.create("calm", holder="calm-0", duration=60)

    def renew() -> None:
        while not stopped.wait(0.25):
            api.patch("calm", renewTime=timestamp())

    thread = Thread(target=renew)
    thread.start()
    yield
    stopped.set()
    thread.join()


@pytest.fixture(scope="module")
def proxy() -> Iterator[ForbiddingProxy]:
    with forbidding_proxy() as one:
        yield one


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, proxy: ForbiddingProxy) -> Iterator[Server]:
    clusters = ("--cluster", "embedded=embedded", "--cluster", f"{LEASES_ONLY}=url:{proxy.url}")
    data = tmp_path_factory.mktemp("causes") / "data"
    proxy.kubeconfig = data / "kubeconfig"
    with serving(data, "--no-demo", *clusters) as one:
        one.wait_synced()
        yield one


@pytest.fixture(scope="module")
def visits(signed_in: Visits) -> Iterator[Visits]:
    yield signed_in
    assert signed_in.leave() == []


@pytest.fixture(scope="module")
def open_pages(visits: Visits) -> dict[str, Page]:
    """The incidents of both clusters, open since before anything happened."""
    pages = {
        name: visits.open_live(f"/c/{name}/incidents/?show=all") for name in (ALL, LEASES_ONLY)
    }
    for page in pages.values():
        page.evaluate("window.loadedOnce = true")
    return pages


@pytest.fixture(scope="module", autouse=True)
def story(server: Server, open_pages: dict[str, Page]) -> Iterator[None]:
    """All of it at the same time, each to a Lease of its own."""
    with ExitStack() as stack:
        stack.enter_context(bystander(server))
        play = Contenders(server, stack)
        wait_for(play.everybody_renewed, what="a holder of each Lease, and its renewals")
        kubectl = Kubectl(server.kubeconfig, "default")
        play.signal("thaw", signal.SIGSTOP)
        play.signal("freeze", signal.SIGSTOP)
        killed = play.signal("kill", signal.SIGKILL)
        play.pods.fail(killed, "Error", 137)
        killed = play.signal("memory", signal.SIGKILL)
        play.pods.fail(killed, "OOMKilled", 137)
        stopped = play.holder("stop").partition("_")[0]
        play.pods.delete(stopped)
        play.signal("stop", signal.SIGTERM)
        thief = f"sed -i s/{play.holder('theft')}/debug-shell/"
        kubectl.run("edit", "lease", "theft", KUBE_EDITOR=thief)
        kubectl.run(
            "patch", "lease", "release", "--type=merge", "-p", '{"spec":{"holderIdentity":""}}'
        )
        kubectl.run("delete", "lease", "delete")
        page = open_pages[ALL]
        wait_for(lambda: changes(page, server, "thaw", "expired"), what="thaw to run out")
        play.signal("thaw", signal.SIGCONT)
        play.pods.remove(stopped)
        yield


def changes(page: Page, server: Server, lease: str, change: str) -> list[Any]:
    url = f"{server.url}/c/{ALL}/history/?format=json&lease={lease}&change={change}"
    found: list[Any] = page.request.get(url).json()["items"]
    return found


def incidents(page: Page, server: Server, cluster: str) -> dict[str, list[dict[str, Any]]]:
    """Those of each Lease, newest first."""
    url = f"{server.url}/c/{cluster}/incidents/?format=json&limit=100"
    found: dict[str, list[dict[str, Any]]] = {lease: [] for lease in CONTENDERS}
    for one in page.request.get(url).json()["items"]:
        for lease in one["leases"]:
            found[lease["name"]].append(one)
    return found


def untrue(page: Page, server: Server, cluster: str) -> dict[str, list[str]]:
    """The Leases whose cause is not told as it should be, with what is told."""
    wrong = {}
    for lease, told in incidents(page, server, cluster).items():
        true = (TRUE_WITH_PODS if cluster == ALL else TRUE).get(lease, set())
        expected = {(cause, how) for cause in true for how in ("certain", "likely")}
        if lease in TOO_LITTLE[cluster]:
            expected |= {(cause, "possible") for cause in POSSIBLE}
        if lease in LOOKS_ALIKE[cluster]:
            expected = {LOOKS_ALIKE[cluster][lease]}
        if len(told) != 1 or (told[0]["cause"], told[0]["confidence"]) not in expected:
            wrong[lease] = [
                f"{one['cause']} {one['confidence']}: {one['sentence']}" for one in told
            ]
    return wrong


@pytest.mark.parametrize("cluster", [ALL, pytest.param(LEASES_ONLY, marks=pytest.mark.long)])
def test_each_cause_appears_on_the_open_page(
    server: Server, open_pages: dict[str, Page], cluster: str
) -> None:
    page = open_pages[cluster]
    seen: list[dict[str, list[str]]] = []

    def all_true() -> bool:
        seen.append(untrue(page, server, cluster))
        return not seen[-1]

    try:
        wait_for(all_true, what="the true cause of each change", every=0.5)
    except AssertionError as error:
        error.add_note(f"wrong or missing: {seen[-1]}")
        raise
    for lease, (found,) in incidents(page, server, cluster).items():
        assert [one["name"] for one in found["leases"]] == [lease], "the others are not part of it"
        assert found["writer"] == WRITERS.get(lease)
        row = page.locator(f'tr[data-href="/c/{cluster}/incidents/{found["id"]}/"]')
        words = CAUSE_WORDS[Cause(found["cause"])]
        expect(row).to_contain_text(re.compile(words, re.IGNORECASE))
    assert page.evaluate("window.loadedOnce"), "the page was reloaded"


def test_the_page_says_which_evidence_it_had_to_do_without(
    server: Server, visits: Visits, open_pages: dict[str, Page], proxy: ForbiddingProxy
) -> None:
    for cluster, source in ((ALL, "Pods"), (LEASES_ONLY, "Leases")):
        (found,) = incidents(open_pages[cluster], server, cluster)["kill"]
        page = visits.open_live(f"/c/{cluster}/incidents/{found['id']}/")
        expect(page.locator("#evidence")).to_contain_text(source)
        missing = page.get_by_role("heading", name="could not be read")
        if cluster == ALL:
            expect(missing).to_have_count(0)
        else:
            expect(missing.first).to_be_visible()
            expect(page.get_by_role("heading", name="Pods could not be read")).to_be_visible()
    assert any("/pods/" in path for path in proxy.refused)
    assert len(proxy.refused) < 10, "a refusal is asked again and again"
