"""A search finds in all clusters: that of the page first, then the others, each for itself.

What is typed whole is led to at once.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from dashboard.access import links
from dashboard.board import install_board
from dashboard.config import ClusterSpec
from dashboard.pages.search import names
from dashboard.serving.runtime import Options, Runtime
from leases.domain.change import ChangeType
from leases.domain.incident import Cause, Standing
from leases.domain.lease import ObjectName
from leases.domain.watched_times import Connection, ConnectionState
from leases.kube.cluster_source import ClusterSource, SourceKind
from tests.pages.conftest import HTMX, text_of
from tests.support.board import KEY, a_lease, fill
from tests.support.values.change_rows import to_row
from tests.support.values.changes import a_change
from tests.support.values.incident_rows import incident_with
from tests.support.values.incident_rows import store as store_incidents

pytestmark = pytest.mark.django_db

HERE, EVERYWHERE = "/c/a/search/", "/search/"
NOW = datetime.now(UTC)
ONCE = ObjectName("apps", "only-here")
ID, OTHER_ID = "0123456789abcdef", "fedcba9876543210"


@pytest.fixture
def both(board):
    """Clusters a and b, live, with a Lease of the same name each, and one more of b."""
    for name, leases in (
        ("a", [a_lease(), a_lease(ObjectName("apps", "payments"), holder="pay-1_77aa")]),
        ("b", [a_lease(holder="pod-of-b_7f3e"), a_lease(ONCE, holder="pod-of-b_7f3e")]),
    ):
        fill(board.clusters[name].store, *leases)
        live = Connection(state=ConnectionState.LIVE, since=NOW)
        board.clusters[name].store.connection = live
    return board


def found(browser, text: str, path: str = HERE, *, group: str = "") -> list[dict[str, str]]:
    items = browser.get(path, {"q": text, "format": "json"}).json()["items"]
    return [one for one in items if group in ("", one["group"])]


def places(browser, text: str, path: str = HERE, *, group: str = "") -> list[tuple[str, str]]:
    return [(one["cluster"], one["label"]) for one in found(browser, text, path, group=group)]


def leads_to(browser, text: str, path: str = HERE) -> str:
    """Where Enter leads without a script, and what the dialog marks."""
    answer = browser.get(path, {"q": text, "go": "true"})
    marked = [one["url"] for one in found(browser, text, path) if one["whole"]]
    part = text_of(browser.get(path, {"q": text, "go": "true"}, headers=HTMX))
    options = re.findall(r'data-whole\s+href="([^"]+)"', part)
    where = answer.get("Location", "")
    assert [f"http://testserver{one}" for one in options] == marked
    assert options == [where] * bool(where)
    assert browser.get(path, {"q": text}).status_code == 200, "a link shows what was found"
    return where


def test_this_cluster_comes_first_and_each_other_one_for_itself(both, operator):
    assert places(operator, "sched", group="lease") == [("a", str(KEY)), ("b", str(KEY))]
    assert places(operator, "kube") == [
        ("a", "kube-system"), ("a", str(KEY)), ("b", "kube-system"), ("b", str(KEY)),
    ]  # fmt: skip
    assert places(operator, "kube", "/c/b/search/")[0] == ("b", "kube-system")
    assert places(operator, "only-he") == [("b", str(ONCE))]
    text = text_of(operator.get(HERE, {"q": "kube"}))
    headings = re.findall(
        r"<h[23][^>]*>(?:<a[^>]*>)?([^<]+)<", text.split("<main")[1].split("</main>")[0]
    )
    groups = ["Namespaces", "Leases"]
    assert [one.strip() for one in headings] == ["a", *groups, "b", *groups]
    assert 'href="/c/b/search/?q=kube"' in text


def test_a_page_of_no_cluster_searches_all(both, operator):
    assert places(operator, "kube", EVERYWHERE) == places(operator, "kube")
    assert places(operator, "only-here", EVERYWHERE)[0] == ("b", str(ONCE))
    assert places(operator, "timel", EVERYWHERE) == [
        (None, "Timeline of all clusters"), ("a", "Timeline"), ("b", "Timeline"),
    ]  # fmt: skip
    for page, action in (("/", EVERYWHERE), ("/audit/", EVERYWHERE), ("/c/b/", "/c/b/search/")):
        text = text_of(operator.get(page))
        assert text.count(f'action="{action}"') == 2, "the field of the head and the dialog"
        assert f'href="{action}" data-find' in text
    assert "<h1>Search</h1>" in text_of(operator.get(EVERYWHERE, {"q": "kube"}))
    pages = places(operator, "", EVERYWHERE, group="page")
    assert (None, "Cluster a") in pages
    assert {cluster for cluster, _ in pages} == {None}


def test_a_name_and_its_namespace_lead_to_the_lease(both, operator):
    assert leads_to(operator, str(ONCE)) == f"/c/b/leases/{ONCE}/"
    assert leads_to(operator, str(KEY)) == f"/c/a/leases/{KEY}/", "that of the page first"
    assert leads_to(operator, str(KEY).upper(), "/c/b/search/") == f"/c/b/leases/{KEY}/"
    assert leads_to(operator, str(KEY), EVERYWHERE) == "", "there are two"
    assert leads_to(operator, "apps/only") == ""


def test_a_name_that_is_there_once_leads_to_the_lease(both, operator):
    assert leads_to(operator, ONCE.name, EVERYWHERE) == f"/c/b/leases/{ONCE}/"
    assert leads_to(operator, ONCE.name) == f"/c/b/leases/{ONCE}/"
    assert leads_to(operator, KEY.name) == leads_to(operator, KEY.name, EVERYWHERE) == ""


def test_a_deleted_lease_is_led_to_while_no_other_one_is_there(both, operator):
    for name, cluster in (("gone", "b"), (ONCE.name, "a")):
        gone = a_change(1, cluster=cluster, namespace="apps", name=name, at=NOW)
        to_row(replace(gone, change=ChangeType.DELETED)).save()
    assert places(operator, "gone", EVERYWHERE) == [("b", "apps/gone")]
    assert leads_to(operator, "gone", EVERYWHERE) == "/c/b/leases/apps/gone/"
    assert leads_to(operator, ONCE.name) == f"/c/b/leases/{ONCE}/"


def test_a_deleted_lease_that_is_kept_no_name_of_is_found_whole(both, operator, monkeypatch):
    monkeypatch.setattr(names, "MAX_GONE", 0)
    to_row(a_change(1, cluster="b", name="gone", namespace="apps", at=NOW)).save()
    to_row(
        a_change(2, cluster="b", name="gone", namespace="apps", at=NOW, change=ChangeType.DELETED)
    ).save()
    assert places(operator, "gone") == []
    assert leads_to(operator, "apps/gone") == "/c/b/leases/apps/gone/"


def test_a_whole_identity_leads_to_its_holder(both, operator):
    assert leads_to(operator, "pod-of-b_7f3e") == "/c/b/holders/pod-of-b/"
    assert leads_to(operator, "pod-of-b", EVERYWHERE) == "/c/b/holders/pod-of-b/"
    assert leads_to(operator, "pod-of-b_no-such") == ""
    (one,) = found(operator, "pay-1_77aa", EVERYWHERE)
    assert (one["label"], one["detail"]) == ("pay-1_77aa", "host pay-1")
    to_row(
        a_change(
            1, cluster="b", change=ChangeType.RELEASED, holder=None, previous_holder="old_77aa"
        )
    ).save()
    names._names.clear()
    assert leads_to(operator, "old_77aa", EVERYWHERE) == "/c/b/holders/old/"


@pytest.fixture
def incidents(both) -> None:
    at = NOW - timedelta(minutes=5)
    store_incidents(
        incident_with(id=ID, cluster="b", began=at, sentence="worker-7's heartbeat stopped"),
        incident_with(
            id=OTHER_ID, cluster="a", began=at, ended=None, cause=Cause.OOM_KILLED,
            sentence="payments\u202e ate all memory", standing=Standing.PLANNED,
        ),
        incident_with(id="remark", began=at, standing=Standing.REMARK, sentence="worker-7 relabel"),
    )  # fmt: skip


def test_incidents_are_found_by_id_by_cause_and_by_their_words(incidents, operator):
    (one,) = found(operator, "heartbeat worker", group="incident")
    assert (one["cluster"], one["label"]) == ("b", "worker-7's heartbeat stopped")
    assert one["detail"].startswith("Node down, ")
    assert one["url"].endswith(f"/c/b/incidents/{ID}/")
    for text in ("oom", "oom_killed", "fedcb", "payments memory"):
        (one,) = found(operator, text, EVERYWHERE, group="incident")
        assert one["label"] == r"payments\u202e ate all memory", text
        assert one["detail"].endswith(", goes on")
    assert found(operator, "relabel") == [], "a remark is no incident"
    assert found(operator, "payments")[0]["group"] == "lease", "a name before a sentence"
    assert leads_to(operator, ID) == f"/c/b/incidents/{ID}/"
    assert leads_to(operator, OTHER_ID.upper(), EVERYWHERE) == f"/c/a/incidents/{OTHER_ID}/"
    assert leads_to(operator, ID[:-1]) == ""


def test_an_old_incident_is_found_by_its_id(incidents, operator, monkeypatch):
    monkeypatch.setattr(names, "MAX_INCIDENTS", 1)
    store_incidents(incident_with(id="newer", cluster="b", began=NOW, sentence="another one"))
    assert found(operator, "heartbeat", group="incident") == []
    assert leads_to(operator, ID) == f"/c/b/incidents/{ID}/"


def test_an_incident_that_begins_and_ends_later_is_found_as_it_is(
    incidents, both, operator, monkeypatch
):
    monkeypatch.setattr(names, "MAX_LATE", 1)
    assert found(operator, "later") == []
    new = incident_with(id="later", began=NOW, ended=None, sentence="later came")
    for ended in (None, NOW):
        store_incidents(replace(new, ended=ended))
        both.feeds["a"].moves.add(seq=1, turn=1, incidents=True)
        names._names[both.feeds["a"]].incidents._until = 0.0
        (one,) = found(operator, "later", group="incident")
        assert one["detail"].endswith(", goes on") is (ended is None)
    assert len(found(operator, "oom", group="incident")) == 1, "the others stay"


def test_incidents_that_go_on_come_before_newer_ones(incidents, operator):
    store_incidents(
        incident_with(id="older", began=NOW - timedelta(hours=1), sentence="payments slow"),
        incident_with(id="newer", began=NOW, sentence="payments stopped"),
    )
    found_ones = found(operator, "payments", group="incident")
    assert [one["label"].split()[-1] for one in found_ones] == ["memory", "stopped", "slow"]


def test_actions_are_those_that_one_may_do_there(both, operator, admin):
    edits = [("a", f"Edit {KEY}"), ("b", f"Edit {KEY}")]
    assert places(admin, "edit sched", group="action") == edits
    assert places(admin, "edit sched", EVERYWHERE, group="action") == edits
    assert places(admin, "create a", EVERYWHERE, group="action") == [
        ("a", "Create a Lease"), ("b", "Create a Lease"),
    ]  # fmt: skip
    (one,) = found(admin, "mute", EVERYWHERE, group="action")
    assert (one["cluster"], one["label"]) == (None, "Mute notifications")
    both.clusters["b"].read_only = True
    assert places(admin, "create a", EVERYWHERE, group="action") == [("a", "Create a Lease")]
    for text in ("edit sched", "create a", "mute", "people", "deletions"):
        assert found(operator, text, EVERYWHERE, group="action") == []
        for line in found(operator, text, EVERYWHERE):
            assert operator.get(line["url"]).status_code == 200, line


def test_who_may_not_read_finds_nothing(both, client, guest):
    _, link = links.create(name="lobby", clusters=["a"], created_by="ada", now=NOW)
    for query in ({"q": str(ONCE), "go": "true"}, {"q": "sched", "key": link}):
        answer = client.get(EVERYWHERE, query)
        assert answer.status_code == 302
        assert answer["Location"].startswith("/sign-in/")
        assert guest.get(EVERYWHERE, query).status_code == 403
        assert client.get(EVERYWHERE, query | {"format": "json"}).status_code == 401


def test_a_cluster_that_is_not_live_says_how_old_its_lines_are(both, operator):
    heard = NOW - timedelta(minutes=20)
    cut = Connection(state=ConnectionState.STALE, since=heard, heard_at=heard)
    both.clusters["b"].store.connection = cut
    (here, there) = found(operator, "sched", group="lease")
    assert "connection" not in here
    assert there["connection"] == "stale"
    text = text_of(operator.get(EVERYWHERE, {"q": "sched"}, headers=HTMX))
    assert text.count("<small>As of ") == 1


def clusters(folder: Path, number: int) -> Runtime:
    sources = [SourceKind.EMBEDDED, *[SourceKind.IN_CLUSTER] * (number - 1)]
    specs = [ClusterSpec(f"c{n:02}", ClusterSource(one)) for n, one in enumerate(sources)]
    one = Runtime(Options(clusters=tuple(specs), data=folder))
    install_board(one)
    return one


def test_one_cluster_is_searched_as_a_page_of_its_own(board, tmp_path, operator):
    store = clusters(tmp_path, 1).clusters["c00"].store
    fill(store, a_lease(), a_lease(ONCE))
    path = "/c/c00/search/"
    answer = operator.get(EVERYWHERE, {"q": "sched"})
    assert (answer.status_code, answer["Location"]) == (302, f"{path}?q=sched")
    assert places(operator, "sched", EVERYWHERE, group="lease") == [("c00", str(KEY))]
    assert "found-cluster" not in text_of(operator.get(path, {"q": "sched"}))
    assert f'action="{path}"' in text_of(operator.get("/audit/"))


def test_of_many_clusters_a_few_lines_of_each_are_shown(board, tmp_path, operator):
    many = clusters(tmp_path, 20)
    for watched in many.clusters.values():
        keys = [ObjectName("workers", f"worker-{n}") for n in range(20)]
        fill(watched.store, *(a_lease(key, holder=f"{key.name}-pod") for key in keys))
    fill(many.clusters["c19"].store, a_lease(ObjectName("workers", "worker")))
    lines = places(operator, "worker", "/c/c03/search/", group="lease")
    shown = [*dict.fromkeys(cluster for cluster, _ in lines)]
    assert shown == ["c03", "c19", *(f"c{n:02}" for n in range(10) if n != 3)]
    assert [sum(one == name for one, _ in lines) for name in shown] == [8] + [1] * 10
    text = text_of(operator.get("/c/c03/search/", {"q": "worker"}))
    assert 'href="/c/c10/search/?q=worker">c10</a>' in text
    part = text_of(operator.get("/c/c03/search/", {"q": "worker"}, headers=HTMX))
    assert re.search(r"more in\s+9 other clusters", part)
