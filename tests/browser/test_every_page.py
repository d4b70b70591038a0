"""Every page in light and in dark, with its menus shut and open: axe-core finds nothing, no figure
wraps and no label hides another at six widths, every
control is where it belongs and is called as it looks, nothing is wider than a phone, nothing breaks
the content security policy, no error stands in the console, and no other host is asked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.urls import URLPattern, URLResolver
from playwright.sync_api import Browser, BrowserContext

from dashboard import urls
from tests.browser.looking import Watched, axe, look
from tests.browser.sizes.long_names import OF_253, TEAM, UUID
from tests.support.api_client import LeaseApi, leases, timestamp
from tests.support.processes import Server, serving, wait_for
from tests.support.signing_in import form_of, sign_in_page

__all__ = ["axe"]
HELD, FREE = "default/held", "default/free"
OF_CLUSTER = {
    "overview": "",
    "leases": "leases/",
    "leases (a filter without a match)": "leases/?q=nothing-is-called-so",
    "leases (a bad filter)": "leases/?sort=age",
    "leases (by changes in a range)": "leases/?sort=changes&range=1h",
    "leases (as they stood)": "leases/?at=2026-11-20T12:00:00Z",
    "new_lease": "leases/new/",
    "lease": f"leases/{HELD}/",
    "lease (as it stood)": f"leases/{HELD}/?at=2026-11-20T12:00:00Z",
    "lease (deleted)": "leases/default/gone/",
    "lease_asked": f"leases/{HELD}/asked/",
    "lease_edit": f"leases/{HELD}/edit/",
    "lease_release": f"leases/{HELD}/release/",
    "lease_hand_over": f"leases/{HELD}/hand-over/",
    "lease_yaml": f"leases/{HELD}/edit/yaml/",
    "lease_delete": f"leases/{HELD}/delete/",
    "delete_many": "leases/delete/?namespace=default&held=delete",
    "delete_many (ready selections)": "leases/delete/",
    "deletions": "deletions/",
    "deletion": "deletions/1/",
    "lease_outcome": f"leases/{FREE}/written/1/",
    "timeline": "timeline/",
    "timeline (as a table)": "timeline/?view=table",
    "timeline (an empty one)": "timeline/?q=nothing-is-called-so",
    "timeline (a bad stretch)": "timeline/?range=2h",
    "holders": "holders/",
    "holder": "holders/web-59d4c9cf7d-9tqqs/",
    "holder_place": "holders/web-59d4c9cf7d-9tqqs/place/",
    "nodes": "nodes/",
    "incidents": "incidents/",
    "incidents (a filter without a match)": "incidents/?cause=crash&lease=nothing-is-called-so",
    "incidents (a bad filter)": "incidents/?from=yesterday",
    "incident": "incidents/{incident}/",
    "near_misses": "incidents/near-misses/",
    "reliability": "reliability/",
    "reliability (a quarter of namespaces)": "reliability/?period=quarter&by=namespace",
    "reliability (a bad objective)": "reliability/?objective=much",
    "history": "history/",
    "history (with what is asked for rarely)": "history/?kind=election",
    "stretch": "history/stretch/?range=1h",
    "history (in sentences)": "history/?view=sentences",
    "history (a filter without a match)": "history/?lease=nothing-is-called-so",
    "history (a bad filter)": "history/?since=yesterday",
    "wall": "wall/",
    "search": "search/?q=held",
    "search (nothing found)": "search/?q=nothing-is-called-so",
}
PAGES = {name: f"c/embedded/{path}" for name, path in OF_CLUSTER.items()} | {
    "audit": "audit/",
    "audit_row": "audit/1/",
    "wall_links": "wall-links/",
    "people": "people/",
    "person": "people/1/",
    "own_password": "account/password/",
    "time_zone": "account/time-zone/",
    "revoke_wall_link": "wall-links/1/revoke/",
    "wall_screens": "wall-links/1/screens/",
    "fleet_wall": "wall/fleet/",
    "screen": "wall/",
    "security_log": "security-log/",
    "api": "api/",
    "api_tokens": "tokens/",
    "revoke_api_token": "tokens/1/revoke/",
    "badges": "badges/",
    "clusters": "clusters/",
    "new_cluster": "clusters/new/",
    "cluster": "clusters/1/",
    "remove_cluster": "clusters/1/remove/",
    "notifications": "notifications/",
    "new_receiver": "notifications/receivers/new/?sort=email",
    "receiver": "notifications/receivers/1/",
    "delete_receiver": "notifications/receivers/1/delete/",
    "notification_log": "notifications/log/",
    "quiet_times": "notifications/quiet/",
    "saved_views": "views/",
    "save_view": "views/new/?from=/c/embedded/leases/%3Fphase%3Dheld",
    "edit_view": "views/1/edit/",
    "components": "components/",
    "404": "c/nowhere/",
}
# Not pages of their own: what forms post to, what programs read, what is drawn inside a page.
NO_PAGES = {
    "home", "search_all", "history_all", "incidents_all", "openapi", "healthz", "readyz", "metrics",
    "timeline_all", "sign_out", "sign_in_by_link",
    "node_cells", "lease_kind", "lease_vacancy", "redeem_sign_in_link", "switch_cluster",
    "stop_deletion", "write_rights", "test_receiver", "end_quiet_time", "holder_pods",
    "acknowledge_incident", "revoke_badge", "badge_svg", "badge_json", "reliability_objective",
    "saved_view", "start_view", "remove_view",
    "revoke_screen", "screen_code",
    "pause_cluster", "resume_cluster",
}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A cluster with one Lease of each sort that matters to a page."""
    folder = tmp_path_factory.mktemp("every-page")
    with serving(folder / "data", "--no-demo") as one:
        api = LeaseApi(one.kubeconfig)
        api.create("held", holder="web-59d4c9cf7d-l4xvb_8c2e41f0-5b1d-4f0e-9a57-2d9a3c1b7e44")
        api.take("held", holder="web-59d4c9cf7d-9tqqs", transitions=1)
        api.create("free", holder="one")
        api.patch("free", holderIdentity="")
        api.send("POST", "/api/v1/namespaces", {"metadata": {"name": TEAM}})
        spec = {"holderIdentity": f"{OF_253[0][:60]}_{UUID}", "leaseDurationSeconds": 3600}
        times = {"acquireTime": timestamp(), "renewTime": timestamp(), "leaseTransitions": 1}
        body = {"metadata": {"name": OF_253[0]}, "spec": spec | times}
        api.send("POST", f"{leases(TEAM)}?fieldManager=kubectl-create-from-a-laptop", body)
        api.create("brief", holder="one", duration=1)
        api.create("gone", holder="one")
        api.delete("gone")
        api.create("doomed", holder="")
        about = {"kind": "Lease", "namespace": "default", "name": "held"}
        event = {"involvedObject": about, "reason": "LeaderElection", "message": "became leader"}
        event |= {"metadata": {"name": "held.1"}, "lastTimestamp": f"{long_ago():%FT%TZ}"}
        api.send("POST", "/api/v1/namespaces/default/events", event)
        one.wait_synced()
        yield one


def long_ago() -> datetime:
    """The last moment before today whose date is as long as any: its day has two digits."""
    days = (datetime.now(UTC) - timedelta(days=before) for before in range(1, 11))
    return next(day for day in days if day.day > 9)


def make_old(server: Server) -> None:
    """What happened to one Lease, and every incident, is of another day."""
    with closing(sqlite3.connect(server.data / "leaseboard.sqlite3")) as database:
        at = (f"{long_ago():%F %T}",)
        database.execute("UPDATE leases_change SET at = ? WHERE name = 'gone'", at)
        database.execute("UPDATE leases_incident SET began = ?", at)
        database.commit()


def release_by_form(context: BrowserContext, server: Server, key: str) -> None:
    """The first write of a form, for the page that says what happened."""
    assert send_form(context, server, f"{key}/release/", confirm="yes").endswith("/written/1/")


def delete_many_by_form(context: BrowserContext, server: Server, key: str) -> None:
    """The first deletion of many, for the page of its report."""
    address = send_form(context, server, f"delete/?lease={key}", typed_number="1")
    assert address.endswith("/deletions/1/")

    def over() -> bool:
        return ">Report</h2>" in context.request.get(address, timeout=60_000).text()

    wait_for(over, what="the report")


def make_token_by_form(context: BrowserContext, server: Server) -> None:
    """The first API token."""
    url = f"{server.url}/tokens/"
    typed = form_of(context.request.get(url, timeout=60_000).text()) | {"name": "ci"}
    fields = dict(typed | {"role": "operator", "days": "30"})
    assert "lbt_" in context.request.post(url, form=fields, timeout=60_000).text()


def save_view_by_form(context: BrowserContext, server: Server) -> None:
    """The first saved view."""
    url = f"{server.url}/views/new/"
    typed = form_of(context.request.get(url, timeout=60_000).text())
    typed |= {"name": "held", "address": "/c/embedded/leases/?phase=held"}
    assert context.request.post(url, form=dict(typed), timeout=60_000).url.endswith("/views/")


def make_receiver_by_form(context: BrowserContext, server: Server) -> None:
    """The first receiver, switched off, with a message in the log."""
    page = f"{server.url}/notifications/"
    url = f"{page}receivers/new/"
    typed = form_of(context.request.get(url, timeout=60_000).text())
    typed |= {"name": "ops", "url": "http://127.0.0.1:9/", "group_seconds": "0"}
    assert "Send test" in context.request.post(url, form=dict(typed), timeout=60_000).text()
    token = dict(form_of(context.request.get(page, timeout=60_000).text()))
    context.request.post(f"{page}receivers/1/test/", form=token, timeout=60_000)


def add_cluster_by_form(context: BrowserContext, server: Server) -> None:
    """The first cluster that an admin added: the embedded one again, and paused."""
    page = f"{server.url}/clusters/"
    typed = form_of(context.request.get(f"{page}new/", timeout=60_000).text())
    typed |= {"name": "again", "labels": "env=prod", "kubeconfig": server.kubeconfig.read_text()}
    added = context.request.post(f"{page}new/", form=dict(typed), timeout=60_000).text()
    assert "The cluster again is added." in added
    token = dict(form_of(context.request.get(page, timeout=60_000).text()))
    context.request.post(f"{page}1/pause/", form=token, timeout=60_000)


def newest_incident(context: BrowserContext, server: Server) -> str:
    """The id of what the writes of this test became."""
    url = f"{server.url}/c/embedded/incidents/?format=json"

    def found() -> list[dict[str, str]]:
        items: list[dict[str, str]] = context.request.get(url, timeout=60_000).json()["items"]
        return items

    return wait_for(found, what="an incident")[0]["id"]


def send_form(context: BrowserContext, server: Server, path: str, **typed: str) -> str:
    """Fill in a form and send it; returns the address of the answer."""
    url = f"{server.url}/c/embedded/leases/{path}"
    fields = form_of(context.request.get(url, timeout=60_000).text()) | {"reason": "drill"} | typed
    return str(context.request.post(url, form=dict(fields), timeout=60_000).url)


@pytest.fixture(scope="module")
def watched(server: Server, browser: Browser) -> Iterator[Watched]:
    """The page of an admin, which the tests lead from one path to the next."""
    with closing(Watched(browser)) as one:
        sign_in_page(one.page, server.printed("Sign in"))
        release_by_form(one.page.context, server, FREE)
        delete_many_by_form(one.page.context, server, "default/doomed")
        make_token_by_form(one.page.context, server)
        save_view_by_form(one.page.context, server)
        make_receiver_by_form(one.page.context, server)
        add_cluster_by_form(one.page.context, server)
        one.incident = newest_incident(one.page.context, server)
        make_old(server)
        yield one


FORMS_AND_LISTS = {"overview", "leases", "lease_edit"}  # looked at whole in each run


def looks() -> Iterator[Any]:
    """Each page but for its odd states briefly, a few whole, and all whole, which is long."""
    for name in PAGES:
        if "(" not in name and name not in FORMS_AND_LISTS:
            yield pytest.param(name, True, id=name, marks=pytest.mark.brief)
        marks = () if name in FORMS_AND_LISTS else pytest.mark.long
        yield pytest.param(name, False, id=f"{name}, whole", marks=marks)


@pytest.mark.parametrize(("name", "brief"), list(looks()))
def test_a_page_is_accessible_and_keeps_to_itself(
    name: str, server: Server, watched: Watched, axe: str, *, brief: bool
) -> None:
    path = PAGES[name].format(incident=watched.incident)
    assert look(watched, server, path, "" if brief else axe) == []
    assert watched.complaints == []
    assert watched.hosts == {urlsplit(server.url).netloc}


def test_the_sign_in_page_too(server: Server, browser: Browser, axe: str) -> None:
    with closing(Watched(browser)) as stranger:
        assert look(stranger, server, "sign-in/", axe) == []
        assert stranger.complaints == []


def test_no_page_is_left_out() -> None:
    names = {name for name in _names(urls.urlpatterns) if name}
    assert names - NO_PAGES - {"sign_in"} <= set(PAGES)


def _names(patterns: list[URLPattern | URLResolver]) -> Iterator[str | None]:
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            yield pattern.name
        elif not pattern.app_name:  # Django's own admin is not ours to judge
            yield from _names(pattern.url_patterns)
