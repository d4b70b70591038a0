"""The pages as a browser and a program get them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from dashboard.board import running_board
from dashboard.parts.frame import responses
from dashboard.parts.frame.live_html import render_row
from leases.domain.changes.change import Change, ChangeType
from leases.domain.connection import Connection, ConnectionState
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.history.change_row import to_row
from leases.history.read.hourly_activity import Activity
from tests.support.board import KEY, a_lease, browser_of, fill, member
from tests.support.page_paths import PATHS

HTMX = {"HX-Request": "true"}


@pytest.fixture
def store(board):
    """Cluster a, live, with two held elections and one vacant."""
    store = board.clusters["a"].store
    free = ObjectName("apps", "free")
    fill(store, a_lease(free, holder=None), a_lease(ObjectName("apps", "other")), a_lease())
    store.connection = Connection(state=ConnectionState.LIVE, since=datetime.now(UTC))
    return store


def remember(change: ChangeType, *, seconds_ago: float = 60, **more) -> None:
    at = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    known = {
        "cluster": "a",
        "namespace": KEY.namespace,
        "name": KEY.name,
        "uid": "u",
        "kind": Kind.ELECTION,
        "at": at,
        "observed_at": at,
        "resource_version": str(seconds_ago),
    }
    to_row(Change(change=change, **(known | more))).save()


def text_of(response) -> str:
    return response.content.decode()


@pytest.mark.parametrize("path", PATHS)
def test_no_page_has_a_style_attribute_or_an_inline_handler(path, store, admin):
    html = text_of(admin.get(path))
    assert " style=" not in html
    assert not re.search(r"\son[a-z]+=", html)
    inline = re.findall(r"<script(?![^>]*\bsrc=)([^>]*)>", html)
    assert all('type="importmap"' in tag and "nonce=" in tag for tag in inline)


@pytest.mark.parametrize("path", PATHS)
def test_every_icon_on_a_page_is_in_its_sprite(path, store, admin):
    html = text_of(admin.get(path))
    wanted = set(re.findall(r'<use href="#([^"]+)"', html))
    assert wanted <= set(re.findall(r'<symbol id="([^"]+)"', html))


def test_the_overview_tells_figures_trouble_and_changes(store, operator):
    remember(ChangeType.RELEASED, previous_holder="cp-9", namespace="apps", name="free")
    html = text_of(operator.get("/c/a/"))
    assert re.search(r'data-figure="total".*?<span class="v">3</span>', html, re.DOTALL)
    assert "Changes of holder per hour over 24 h: 0 in total" in html
    assert "Age of the last renewal of" in html
    assert "was released by <code>cp-9</code>" in html


def test_a_quiet_cluster_needs_nothing(board, operator):
    store = board.clusters["a"].store
    fill(store, a_lease())
    store.connection = Connection(state=ConnectionState.LIVE, since=datetime.now(UTC))
    assert "Nothing needs attention" in text_of(operator.get("/c/a/"))


def test_a_cluster_that_nobody_watches_claims_nothing(board, operator):
    store = board.clusters["a"].store
    store.connection = Connection(
        state=ConnectionState.REFUSED, since=datetime.now(UTC), detail="Bind the ClusterRole."
    )
    html = text_of(operator.get("/c/a/"))
    assert "Nothing needs attention" not in html
    assert "No access since" in html
    assert "Bind the ClusterRole." in html


def test_the_list_draws_the_very_rows_that_the_socket_sends(store, operator):
    html = text_of(operator.get("/c/a/leases/"))
    drawn = re.search(rf'<tr role="row" id="row-{KEY}".*?</tr>', html, re.DOTALL)
    sent = render_row("a", store.get(KEY), datetime.now(UTC), Activity())

    def without_ages(row: str) -> str:
        row = re.sub(r'width="[\d.]+"', "", row)
        return re.sub(r">[\d.]+ s( ago)?<|>\d+ h \d+ m<", "><", row).strip()

    assert without_ages(drawn[0]) == without_ages(sent)


def test_htmx_gets_the_part_that_a_filter_changes(store, operator):
    response = operator.get("/c/a/leases/?phase=vacant&q=", headers=HTMX)
    html = text_of(response)
    assert html.lstrip().startswith('<div id="board"')
    assert "apps/free" in html
    assert str(KEY) not in html
    assert response["HX-Push-Url"] == "/c/a/leases/?phase=vacant"
    assert "HX-Request" in response["Vary"]


def test_going_back_in_history_gets_the_whole_page(store, operator):
    headers = HTMX | {"HX-History-Restore-Request": "true"}
    response = operator.get("/c/a/leases/", headers=headers)
    assert "<!doctype html>" in text_of(response)
    assert "HX-Request" in response["Vary"]


def test_an_empty_filter_says_what_was_asked_and_how_to_widen_it(store, operator):
    html = text_of(operator.get("/c/a/leases/?phase=expired&namespace=apps"))
    assert "State is expired, namespace is apps." in html
    assert 'href="/c/a/leases/?phase=expired"' in html


def test_a_bad_filter_is_400_with_one_sentence(store, operator):
    response = operator.get("/c/a/leases/?phase=heldd")
    assert response.status_code == 400
    assert "phase cannot be &#x27;heldd&#x27;: use one of held" in text_of(response)
    response = operator.get("/c/a/leases/?phase=heldd&format=json")
    assert response.status_code == 400
    assert response.json()["error"].startswith("phase cannot be 'heldd'")


def test_the_json_of_a_lease_is_the_contract(store, operator):
    answer = operator.get("/c/a/leases/?format=json&q=scheduler").json()
    assert list(answer) == ["items", "total", "next", "now"]
    assert (answer["total"], answer["next"]) == (1, None)
    (item,) = answer["items"]
    assert list(item) == [
        "cluster", "namespace", "name", "uid", "kind", "kind_reason", "phase", "holder",
        "acquire_time", "renew_time", "observed_at", "duration_seconds", "transitions",
        "cadence_seconds", "expires_at", "resource_version",
    ]  # fmt: skip
    assert (item["cluster"], item["name"], item["phase"]) == ("a", "scheduler", "held")
    assert (item["holder"], item["duration_seconds"]) == ("cp-1", 15)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", item["expires_at"])


def test_a_vacant_lease_has_no_holder_and_no_end_in_json(store, operator):
    (item,) = operator.get("/c/a/leases/?format=json&phase=vacant").json()["items"]
    assert (item["holder"], item["expires_at"]) == (None, None)


def test_json_pages_lead_to_each_other_until_all_are_read(store, operator):
    url, names = "/c/a/leases/?format=json&sort=name&limit=2", []
    while url:
        answer = operator.get(url).json()
        names += [item["name"] for item in answer["items"]]
        url = answer["next"]
    assert names == ["free", "other", "scheduler"]


def test_a_lease_has_its_seven_fields_its_changes_and_its_yaml(store, operator):
    remember(ChangeType.TAKEN_OVER, previous_holder="cp-2", holder="cp-1", gap_seconds=12.4)
    html = text_of(operator.get(f"/c/a/leases/{KEY}/"))
    for field in (
        "holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime",
        "leaseTransitions", "strategy", "preferredHolder",
    ):  # fmt: skip
        assert f"<dt>{field}</dt>" in html
    assert "was taken over by <code>cp-1</code> from <code>cp-2</code>" in html
    assert '<span class="key">holderIdentity</span>: cp-1' in html
    assert "others may take it in" in html


def test_a_deleted_lease_keeps_its_page(store, operator):
    remember(ChangeType.DELETED, previous_holder="cp-1", name="past")
    html = text_of(operator.get(f"/c/a/leases/{KEY.namespace}/past/"))
    assert "The Lease is not in the cluster." in html
    assert "last held by <code>cp-1</code>" in html


def test_a_lease_that_nobody_knows_is_404_in_one_sentence(store, operator):
    response = operator.get("/c/a/leases/no/such/")
    assert response.status_code == 404
    assert "There is no Lease no/such in a" in text_of(response)


def test_only_an_admin_is_told_that_he_may_edit(store, operator, admin):
    assert "<body data-may-edit" in text_of(admin.get(f"/c/a/leases/{KEY}/"))
    assert "<body data-may-edit" not in text_of(operator.get(f"/c/a/leases/{KEY}/"))


def test_history_pages_back_to_the_oldest_change(store, operator):
    for seconds in (10, 20, 30):
        remember(ChangeType.TAKEN_OVER, seconds_ago=seconds, holder=f"cp-{seconds}")
    first = text_of(operator.get("/c/a/history/?limit=2"))
    assert first.index("cp-10") < first.index("cp-20")
    assert "cp-30" not in first
    older = re.search(r'href="(/c/a/history/\?[^"]*before=[^"]+)"', first)[1]
    second = text_of(operator.get(older.replace("&amp;", "&")))
    assert "cp-30" in second
    assert "cp-20" not in second


def test_history_filters_in_json_as_on_the_page(store, operator):
    remember(ChangeType.EXPIRED, seconds_ago=10, holder="cp-1")
    remember(ChangeType.RELEASED, seconds_ago=20, previous_holder="cp-1")
    answer = operator.get("/c/a/history/?format=json&change=released").json()
    assert [item["change"] for item in answer["items"]] == ["released"]
    assert (answer["total"], answer["next"]) == (1, None)
    assert "Released" in text_of(operator.get("/c/a/history/?change=released", headers=HTMX))


def test_the_strip_of_history_counts_what_the_filter_leaves(store, operator):
    remember(ChangeType.EXPIRED, seconds_ago=10, holder="cp-1")
    remember(ChangeType.RELEASED, seconds_ago=20, previous_holder="cp-1")
    assert "2 changes in the last 24 h" in text_of(operator.get("/c/a/history/"))
    assert "2 changes in the last 1 h" in text_of(operator.get("/c/a/history/?range=1h"))
    released = text_of(operator.get("/c/a/history/?change=released"))
    assert "1 matching change in the last 24 h" in released


@pytest.mark.parametrize(("query", "shown"), [("change=released", False), ("kind=election", True)])
def test_what_is_asked_for_rarely_is_folded_until_it_is_chosen(query, shown, store, operator):
    html = text_of(operator.get(f"/c/a/history/?{query}"))
    assert ('<details class="more-filters" open>' in html) is shown


@pytest.mark.parametrize("kind", ["csv", "ndjson"])
def test_history_is_exported_with_the_same_filters(kind, store, operator):
    remember(ChangeType.EXPIRED, seconds_ago=10, holder="cp-1")
    remember(ChangeType.RELEASED, seconds_ago=20, previous_holder="cp-1")
    response = operator.get(f"/c/a/history/?format={kind}&change=expired")
    lines = response.getvalue().decode().splitlines()
    assert response["Content-Disposition"] == f'attachment; filename="a-history.{kind}"'
    if kind == "csv":
        assert lines[0].startswith("cluster,namespace,name,uid,kind,change,at,")
        assert len(lines) == 2
    else:
        assert [msgspec.json.decode(line)["change"] for line in lines] == ["expired"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["csv", "ndjson"])
async def test_an_export_is_sent_while_it_is_read(kind, board, monkeypatch):
    monkeypatch.setattr(responses, "LINES_AT_ONCE", 10)
    user = await sync_to_async(member)("olga", "operator")
    await sync_to_async(remember_many)(95)
    browser = AsyncClient()
    await browser.aforce_login(user)
    response = await browser.get(f"/c/a/history/?format={kind}")
    assert response.is_async, "Django would gather all of it first"
    parts = [part async for part in response.streaming_content]
    header = kind == "csv"
    assert len(b"".join(parts).splitlines()) == 95 + header
    assert max(len(part.splitlines()) for part in parts) <= 10 + header


def remember_many(number):
    for seconds in range(number):
        remember(ChangeType.EXPIRED, seconds_ago=seconds + 1, holder="cp-1")


@pytest.mark.parametrize("query", ["since=yesterday", "before=nonsense", "format=html&limit=0"])
def test_a_bad_history_filter_is_400(query, store, operator):
    response = operator.get(f"/c/a/history/?{query}")
    assert response.status_code == 400
    assert "This filter cannot be used" in text_of(response)


def test_a_wall_that_never_saw_its_cluster_claims_nothing(board, operator):
    connection = Connection(
        state=ConnectionState.CONNECTING, since=datetime.now(UTC), detail="Cannot reach it."
    )
    board.clusters["b"].store.connection = connection
    html = text_of(operator.get("/c/b/wall/"))
    assert "No list of Leases yet." in html
    assert "Cannot reach it." in html
    assert "All in time" not in html


def test_the_wall_has_trouble_first_and_its_filter_only_in_the_url(store, operator):
    html = text_of(operator.get("/c/a/wall/"))
    assert re.findall(r'data-tile="([^"]+)"', html)[0] == "apps/free"
    assert "<form" not in html
    html = text_of(operator.get("/c/a/wall/?namespace=kube-system"))
    assert re.findall(r'data-tile="([^"]+)"', html) == [str(KEY)]


def test_a_change_that_is_not_written_yet_is_in_the_feed_once(store, operator):
    running_board().publisher.hubs["a"].recent.clear()
    remember(ChangeType.EXPIRED, holder="cp-1")
    change = Change(
        cluster="a", namespace=KEY.namespace, name=KEY.name, uid="u", kind=Kind.ELECTION,
        change=ChangeType.RELEASED, at=datetime.now(UTC), observed_at=datetime.now(UTC),
        previous_holder="cp-7",
    )  # fmt: skip
    running_board().publisher.hubs["a"].recent.append((5, change))
    assert text_of(operator.get("/c/a/")).count("<code>cp-7</code>") == 1
    to_row(change).save()
    assert text_of(operator.get("/c/a/")).count("<code>cp-7</code>") == 1


def test_the_theme_of_the_cookie_is_drawn_by_the_server(store, db):
    client = browser_of(member("tom", "operator"))
    client.cookies["theme"] = "dark"
    assert '<html lang="en" data-theme="dark"' in text_of(client.get("/c/a/"))
    client.cookies["theme"] = '"><script>'
    assert "data-theme" not in text_of(client.get("/c/a/"))[:200]


def test_who_may_read_nothing_is_told_whom_to_ask(store, guest):
    response = guest.get("/c/a/")
    assert response.status_code == 403
    html = text_of(response)
    assert "Ask an admin for the role <b>operator</b>" in " ".join(html.split())
    assert str(KEY) not in html
