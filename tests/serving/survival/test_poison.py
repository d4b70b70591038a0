"""Forty odd Leases, written, renewed, released and deleted while the process is stopped and killed.

Every page answers, every change of another Lease is recorded, and history is complete. What
PostgreSQL makes of them is in test_odd_holders.py.
"""

from __future__ import annotations

import json
import signal
import time
import urllib.error
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.serving.survival.poison import FIRST, LAST, MARKUP, ODD, Odd, spec, time_of
from tests.support.api_client import LeaseApi, leases
from tests.support.processes import Server, ended, get, manage, wait_for
from tests.support.programs.lease_apis import context_file, lease_api
from tests.support.signing_in import signed_in

STOPPED = 4.0  # seconds
PAGES = (
    "", "leases/", "leases/?holder=odd-holder", "timeline/", "history/", "holders/", "nodes/",
    "wall/", *(f"{page}/?format=json" for page in ("leases", "timeline", "history", "holders")),
    "history/?format=csv", "history/?format=ndjson",
)  # fmt: skip


class Cluster:
    """A Lease API with the odd Leases, and a witness: a Lease like any other."""

    def __init__(self, api: LeaseApi) -> None:
        self._api = api
        self._turns = 0
        api.create("witness", holder="w-0")

    @property
    def witness(self) -> str:
        """Who holds the witness now."""
        return f"w-{self._turns}"

    @property
    def turns(self) -> list[str]:
        """Who has held it."""
        return [f"w-{number}" for number in range(self._turns + 1)]

    def hand_on(self) -> None:
        self._turns += 1
        self._api.take("witness", holder=self.witness, transitions=self._turns)

    def write(self, odd: Odd) -> None:
        body = {"metadata": {"name": odd.name, **odd.metadata}, "spec": spec(odd)}
        self._api.send("POST", leases(), body)

    def renew(self, odd: Odd, moment: str | None = None) -> None:
        self._replace(odd, renewTime=moment or time_of(odd.renewed))

    def release(self, odd: Odd) -> None:
        self._replace(odd, holderIdentity="", leaseDurationSeconds=1)

    def delete(self, odd: Odd) -> None:
        self._api.delete(odd.name)

    def _replace(self, odd: Odd, **changed: Any) -> None:
        """Not a patch: an API server cannot read its own output of the years 0 and 10000."""
        path = f"{leases()}/{odd.name}"
        metadata = self._api.send("GET", path)["metadata"]
        self._api.send("PUT", path, {"metadata": metadata, "spec": {**spec(odd), **changed}})


def check_pages(browser: Any, server: Server, names: list[str]) -> None:
    """Every page answers 200, and none lets markup through."""
    paths = [*PAGES, *(f"leases/default/{name}/" for name in names)]
    paths += [f"leases/default/{name}/edit/" for name in names[::3]]
    refused, injected = {}, []
    for path in paths:
        try:
            with browser.open(f"{server.url}/c/p/{path}", timeout=60) as answer:
                text = answer.read().decode()
                if "html" in answer.headers["Content-Type"] and MARKUP[2:27] in text:
                    injected.append(path)
        except urllib.error.HTTPError as error:
            refused[path] = error.code
    assert (refused, injected) == ({}, []), server.text[-4000:]


def check_metrics(server: Server) -> None:
    """Prometheus can read them, and every Lease was understood."""
    status, text = get(f"{server.url}/metrics")
    assert status == 200
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert "leaseboard_election_holder_info" in families, sorted(families)
    (skipped,) = families["leaseboard_events_not_understood"].samples
    assert skipped.value == 0


def history(server: Server) -> dict[str, list[tuple[str, str | None]]]:
    """Of each Lease the changes, oldest first, with the holder of each."""
    _, _, extra = server._arguments
    done = manage(server.data, "export_history", **extra)
    assert done.returncode == 0, done.stderr
    stored: dict[str, list[tuple[str, str | None]]] = {}
    for line in filter(None, done.stdout.split("\n")):  # a holder may hold other ends of lines
        change = json.loads(line)
        stored.setdefault(change["name"], []).append((change["change"], change["holder"]))
    return stored


def seen(browser: Any, server: Server, cluster: Cluster) -> bool:
    url = f"{server.url}/c/p/leases/?format=json&q=witness"
    with browser.open(url, timeout=60) as answer:
        return [one["holder"] for one in json.load(answer)["items"]] == [cluster.witness]


def wait_shown(browser: Any, server: Server, cluster: Cluster) -> None:
    wait_for(lambda: seen(browser, server, cluster), what=f"{cluster.witness} on the page")


def live(browser: Any, server: Server, cluster: Cluster) -> None:
    """All are written and renewed, some between the two ends of the calendar."""
    for odd in ODD:
        cluster.write(odd)
        cluster.renew(odd)
    for number in range(6):
        for odd in ODD[:2]:
            cluster.renew(odd, (LAST, FIRST)[number % 2])
    cluster.hand_on()
    wait_shown(browser, server, cluster)
    check_pages(browser, server, [odd.name for odd in ODD])
    check_metrics(server)


def stopped(browser: Any, server: Server, cluster: Cluster) -> None:
    """The process stands still for four seconds, in which much is written."""
    server.process.send_signal(signal.SIGSTOP)
    try:
        began = time.monotonic()
        for odd in ODD:
            cluster.renew(odd)
        for odd in ODD[::4]:
            cluster.release(odd)
        cluster.hand_on()
        cluster.hand_on()
        time.sleep(max(0.0, STOPPED - (time.monotonic() - began)))
    finally:
        server.process.send_signal(signal.SIGCONT)
    wait_shown(browser, server, cluster)
    check_pages(browser, server, [])


def killed(server: Server, cluster: Cluster) -> None:
    """The process dies while much is written."""
    for odd in ODD[1::4]:
        cluster.release(odd)
    server.kill()
    for odd in ODD[2::4]:
        cluster.release(odd)
    for odd in ODD[::4]:
        cluster.delete(odd)
    cluster.hand_on()


def restarted(browser: Any, server: Server, cluster: Cluster) -> None:
    """The rest are released, and all deleted."""
    wait_shown(browser, server, cluster)
    for odd in ODD[3::4]:
        cluster.release(odd)
    left = [odd for number, odd in enumerate(ODD) if number % 4]
    check_pages(browser, server, [])
    for odd in left:
        cluster.delete(odd)
    cluster.hand_on()
    wait_shown(browser, server, cluster)


def check_history(server: Server, cluster: Cluster) -> None:
    """The ends of every odd Lease are recorded once and in order; of the witness all changes."""
    wait_for(lambda: len(_deleted(history(server))) == len(ODD), what="all deletions in history")
    stored = history(server)
    once = ["created", "released", "deleted"]
    ends = {name: [word for word, _ in stored[name] if word in once] for name in _deleted(stored)}
    assert {name: words for name, words in ends.items() if words != once} == {}
    assert [holder for _, holder in stored["witness"]] == cluster.turns


def _deleted(stored: dict[str, list[tuple[str, str | None]]]) -> list[str]:
    return [name for name, found in stored.items() if found[-1][0] == "deleted"]


@pytest.mark.long
def test_no_odd_lease_stops_a_page_a_change_or_history(tmp_path):
    assert len({odd.name for odd in ODD}) == 40
    with lease_api(tmp_path / "p") as (_process, _url):
        config = context_file(tmp_path / "kubeconfig-p", tmp_path / "p" / "kubeconfig")
        extra = {"KUBECONFIG": str(config)}
        cluster = Cluster(LeaseApi(config))
        with ended(Server(tmp_path / "a", "--cluster", "p=context:leaseboard", **extra)) as server:
            server.wait_synced()
            browser = signed_in(server)
            live(browser, server, cluster)
            stopped(browser, server, cluster)
            killed(server, cluster)
            with ended(server.again()) as again:
                again.wait_synced()
                restarted(signed_in(again), again, cluster)
                check_history(again, cluster)
                assert get(f"{again.url}/readyz") == (200, "ok\n")
                for bad in ("Traceback", "is not understood", "refuse"):
                    assert bad not in again.text
