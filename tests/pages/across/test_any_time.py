"""Leases with times at the ends of the calendar in a running server: nothing stops, and every page
answers.
"""

from __future__ import annotations

import urllib.error
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from dashboard.pages.lease.fields import fact_groups, yaml_lines
from leases.domain.lease import Lease
from leases.domain.steady_clock import EARLIEST, LATEST
from leases.tracking.store import Store
from leases.wire.microtime import format_microtime
from leases.wire.watch_decoding import Listed
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, ended, get, wait_for
from tests.support.programs.lease_apis import changes_in, context_file, lease_api
from tests.support.signing_in import rows, signed_in
from tests.support.values.leases import NOON, lease

FIRST, LAST = "0001-01-02T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z"
# What an API server accepts and keeps though Python has no such year.
BEYOND = ("0000-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999-02:00")
NAMES = ("odd", "other", "beyond-0", "beyond-1")
PAGES = (
    "", "leases/", "timeline/", "history/", "holders/", "nodes/", "wall/",
    *(f"{page}/?format=json" for page in ("leases", "timeline", "history", "holders")),
    "history/?format=csv", "history/?format=ndjson",
    *(f"leases/default/{name}/{page}" for name in NAMES for page in ("", "edit/", "asked/")),
)  # fmt: skip


def check_pages(browser: Any, server: Server) -> None:
    """Every page answers 200."""
    refused = {}
    for page in PAGES:
        try:
            with browser.open(f"{server.url}/c/b/{page}", timeout=60) as answer:
                answer.read()
        except urllib.error.HTTPError as error:
            refused[page] = error.code
    assert refused == {}, server.text[-4000:]


def take(api: LeaseApi, browser: Any, server: Server, holder: str, *, transitions: int) -> None:
    """The other Lease changes hands, and the page shows it."""
    api.take("other", holder=holder, transitions=transitions)
    wait_for(
        lambda: rows(browser, server, "b").get("default/other", {}).get("holder") == holder,
        what=f"{holder} to hold the other Lease",
    )


def test_times_at_the_ends_of_the_calendar_stop_nothing_live_or_over_a_restart(tmp_path):
    with lease_api(tmp_path / "b") as (_process, _url):
        config = context_file(tmp_path / "kubeconfig-b", tmp_path / "b" / "kubeconfig")
        api = LeaseApi(config)
        given = ("--cluster", "b=context:leaseboard")
        with ended(Server(tmp_path / "a", *given, KUBECONFIG=str(config))) as server:
            server.wait_synced()
            browser = signed_in(server)
            api.create("odd", holder="a", duration=15)
            api.create("other", holder="one")
            for number, moment in enumerate(BEYOND):
                name, longest = f"beyond-{number}", 2**31 - 1
                api.create(name, holder="a", duration=longest, transitions=longest)
                api.patch(name, renewTime=moment, acquireTime=moment)
            for number in range(6):
                api.patch("odd", renewTime=(LAST, FIRST)[number % 2])
            take(api, browser, server, "two", transitions=1)
            wait_for(
                lambda: changes_in(server.data, "b", "other") == ["created", "replaced"],
                what="history",
            )
            check_pages(browser, server)
            assert get(f"{server.url}/readyz") == (200, "ok\n")
            assert "Traceback" not in server.text
            server.kill()

            api.patch("odd", renewTime=LAST)
            with ended(server.again()) as again:
                again.wait_synced()
                browser = signed_in(again)
                take(api, browser, again, "three", transitions=2)
                check_pages(browser, again)
                changes = ["created", "replaced", "replaced"]
                wait_for(lambda: changes_in(again.data, "b", "other") == changes, what="history")
                assert get(f"{again.url}/readyz") == (200, "ok\n")
                assert "Traceback" not in again.text


@pytest.mark.parametrize(
    ("renewed", "note"),
    [
        (EARLIEST, "or earlier: the calendar begins there"),
        (LATEST, "or later: the calendar ends there"),
        (NOON + timedelta(hours=2), "2 h 0 m ahead of our clock"),
    ],
)
def test_a_time_that_no_age_counts_up_from_says_why(renewed: datetime, note: str) -> None:
    store = Store("a")
    built = lease()
    spec = msgspec.structs.replace(built.spec, renew_time=renewed)
    store.replace(Listed((Lease(built.metadata, spec),), "7"), NOON)
    (tracked,) = store.snapshot()
    (fact,) = [one for one in fact_groups(tracked, NOON)[0][1] if one.label == "renewTime"]
    assert (fact.note, fact.since) == (note, None)
    (line,) = [line for line in yaml_lines(tracked.lease) if line.key == "renewTime"]
    assert line.value == f'"{format_microtime(renewed)}"'
