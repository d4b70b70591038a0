"""What a URL chooses to delete, what the page says of it, and what a confirmation starts."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from dashboard import clock
from leases.actions.delete_many import unpack
from leases.domain.lease import Node, ObjectName
from leases.domain.watched_times import Connection, ConnectionState
from leases.models import Deletion, Edit
from tests.support.board import a_lease, browser_of, fill, member

pytestmark = pytest.mark.django_db

PATH = "/c/a/leases/delete/"


@pytest.fixture
def admin(db):
    return browser_of(member("ada", "admin"))


@pytest.fixture
def store(board):
    """Live: two vacant and one held in apps, one heartbeat without a Node, one with."""
    store = board.clusters["a"].store
    names = ["free-1", "free-2", "busy"]
    apps = [
        a_lease(ObjectName("apps", name), holder="cp-1" if name == "busy" else None)
        for name in names
    ]
    old = datetime.now(UTC) - timedelta(days=2)
    beats = [
        a_lease(ObjectName("kube-node-lease", name), holder=name, now=old)
        for name in ("node-1", "node-9")
    ]
    fill(store, *apps, *beats)
    now = datetime.now(UTC)
    store.turn(now)
    store.connection = Connection(state=ConnectionState.LIVE, since=now)
    book = board.publisher.hubs["a"].nodes
    book.nodes, book.read_at = {"node-1": Node(name="node-1")}, now
    return store


def page_of(client: Client, query: str) -> str:
    answer = client.get(f"{PATH}?{query}")
    assert answer.status_code == 200, answer.content
    return re.sub(r"\s+", " ", answer.content.decode())


def hidden(page: str) -> dict[str, str]:
    found = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))
    return {name: found[name] for name in ("seen", "once")}


def confirm(client: Client, query: str, number: str, **more: str):
    sent = hidden(page_of(client, query)) | {"typed_number": number, "reason": "drill"} | more
    return client.post(f"{PATH}?{query}", sent)


def names(row: Deletion) -> list[str]:
    return [str(one.key) for one in unpack(bytes(row.chosen))]


def test_without_a_choice_the_page_offers_ready_ones(store, admin):
    page = page_of(admin, "")
    assert "Abandoned" in page
    assert "Heartbeats of nodes that do not exist" in page
    assert "will be removed" not in page


def test_a_filter_chooses_and_leaves_out_the_held(store, admin):
    page = page_of(admin, "namespace=apps")
    assert "2 Leases will be removed" in page
    assert "2 vacant." in page
    assert "All in the namespace apps." in page
    assert "Leave out the 1 held" in page
    answer = confirm(admin, "namespace=apps", "2")
    row = Deletion.objects.get()
    assert answer["Location"] == f"/c/a/deletions/{row.pk}/"
    assert names(row) == ["apps/free-1", "apps/free-2"]
    assert {one.resource_version for one in unpack(bytes(row.chosen))} == {"1"}
    assert (row.username, row.reason, row.words) == ("ada", "drill", "Namespace is apps")
    assert not Edit.objects.exists()


def test_the_held_are_deleted_too_if_asked_for(store, admin):
    assert "3 Leases will be removed" in page_of(admin, "namespace=apps&held=delete")
    confirm(admin, "namespace=apps&held=delete", "3")
    chosen = unpack(bytes(Deletion.objects.get().chosen))
    assert {one.name: bool(one.term) for one in chosen} == {
        "busy": True,
        "free-1": False,
        "free-2": False,
    }


def test_ticked_leases_are_chosen_by_name(store, admin):
    query = "lease=apps/free-2&lease=apps/free-2&lease=apps/gone"
    page = page_of(admin, query)
    assert "1 Lease will be removed" in page
    assert "1 of those chosen is not there any more." in page
    confirm(admin, query, "1")
    assert names(Deletion.objects.get()) == ["apps/free-2"]


def test_heartbeats_without_a_node_are_a_ready_selection(store, admin):
    page = page_of(admin, "ready=orphaned")
    assert "1 Lease will be removed" in page
    assert "1 is named after nodes that do not exist." in page
    confirm(admin, "ready=orphaned", "1")
    assert names(Deletion.objects.get()) == ["kube-node-lease/node-9"]


def test_abandoned_ones_are_a_ready_selection(board, admin):
    store = board.clusters["a"].store
    old = datetime.now(UTC) - timedelta(days=2)
    fill(store, a_lease(ObjectName("apps", "old"), holder=None, now=old), a_lease())
    store.connection = Connection(state=ConnectionState.LIVE, since=datetime.now(UTC))
    store.turn(datetime.now(UTC))
    abandoned = [str(one.key) for one in store.snapshot() if one.abandoned]
    assert abandoned == ["apps/old"]
    confirm(admin, "ready=abandoned", "1")
    assert names(Deletion.objects.get()) == abandoned


@pytest.mark.parametrize(
    ("number", "more", "said"),
    [
        ("3", {}, "This is not 2."),
        ("", {}, "Type the number"),
        ("2", {"reason": ""}, "Say why"),
        ("2", {"seen": "x"}, "The choice changed since this page was drawn"),
    ],
)
def test_an_incomplete_confirmation_starts_nothing(store, admin, number, more, said):
    answer = confirm(admin, "namespace=apps", number, **more)
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert not Deletion.objects.exists()


def test_a_choice_that_grew_is_shown_again_and_then_confirmed(store, admin):
    sent = hidden(page_of(admin, "namespace=apps")) | {"typed_number": "2", "reason": "drill"}
    kept = [one.lease for one in store.snapshot()]
    fill(store, *kept, a_lease(ObjectName("apps", "free-3"), holder=None))
    store.connection = Connection(state=ConnectionState.LIVE, since=datetime.now(UTC))
    answer = admin.post(f"{PATH}?namespace=apps", sent)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "The choice changed" in page
    assert "3 Leases will be removed" in page
    assert not Deletion.objects.exists()
    again = hidden(page) | {"typed_number": "3", "reason": "drill"}
    assert admin.post(f"{PATH}?namespace=apps", again).status_code == 302


def test_a_renewal_in_between_is_no_reason_to_look_again(store, admin):
    sent = hidden(page_of(admin, "namespace=apps")) | {"typed_number": "2", "reason": "drill"}
    kept = [one.lease for one in store.snapshot() if one.key.name != "free-1"]
    fill(store, *kept, a_lease(ObjectName("apps", "free-1"), holder=None, version="9"))
    store.connection = Connection(state=ConnectionState.LIVE, since=datetime.now(UTC))
    assert admin.post(f"{PATH}?namespace=apps", sent).status_code == 302
    versions = [one.resource_version for one in unpack(bytes(Deletion.objects.get().chosen))]
    assert versions == ["9", "1"]


def test_a_resend_starts_once(store, admin):
    sent = hidden(page_of(admin, "namespace=apps")) | {"typed_number": "2", "reason": "drill"}
    first, again = (admin.post(f"{PATH}?namespace=apps", sent) for _ in range(2))
    assert first["Location"] == again["Location"]
    assert Deletion.objects.count() == 1


def test_nothing_is_started_while_the_cluster_is_not_live(store, admin):
    sent = hidden(page_of(admin, "namespace=apps")) | {"typed_number": "2", "reason": "drill"}
    store.connection = Connection(state=ConnectionState.STALE, since=datetime.now(UTC))
    answer = admin.post(f"{PATH}?namespace=apps", sent)
    assert answer.status_code == 409
    assert "not live" in answer.content.decode()
    assert "drill" in answer.content.decode()
    assert not Deletion.objects.exists()


@pytest.mark.parametrize(
    "query", ["lease=apps", "ready=all", "held=maybe", "again=x", "again=77", "phase=nonsense"]
)
def test_a_bad_choice_is_one_sentence(store, admin, query):
    answer = admin.get(f"{PATH}?{query}")
    assert answer.status_code == 400
    assert f"{query.partition('=')[0]} cannot be" in answer.content.decode()


def test_only_who_may_edit_sees_or_starts_deletions(store, admin, operator, guest, board):
    confirm(admin, "namespace=apps", "2")
    number = Deletion.objects.get().pk
    paths = [PATH, "/c/a/deletions/", f"/c/a/deletions/{number}/"]
    for client in (operator, guest):
        assert {client.get(path).status_code for path in paths} == {403}
        assert client.post(f"{PATH}?namespace=apps").status_code == 403
        assert client.post(f"/c/a/deletions/{number}/stop/").status_code == 403
    assert {Client().get(path).status_code for path in paths} == {302}
    forger = Client(enforce_csrf_checks=True)
    forger.force_login(member("eve", "admin"))
    assert forger.post(f"{PATH}?namespace=apps").status_code == 403
    assert forger.post(f"/c/a/deletions/{number}/stop/").status_code == 403
    assert not Deletion.objects.get().stop_asked
    board.clusters["a"].read_only = True
    assert admin.get(f"{PATH}?namespace=apps").status_code == 403
    assert admin.get(f"/c/a/deletions/{number}/").status_code == 200
    assert Deletion.objects.count() == 1


def test_a_deletion_is_of_its_cluster(store, admin):
    confirm(admin, "namespace=apps", "2")
    number = Deletion.objects.get().pk
    assert admin.get(f"/c/b/deletions/{number}/").status_code == 404
    assert admin.post(f"/c/b/deletions/{number}/stop/").status_code == 404


def test_progress_is_drawn_alone_for_the_script_and_whole_otherwise(store, admin):
    confirm(admin, "namespace=apps", "2")
    path = f"/c/a/deletions/{Deletion.objects.get().pk}/"
    whole = admin.get(path).content.decode()
    assert "Deleting 0 of 2" in whole
    assert '<meta http-equiv="refresh" content="2">' in whole
    part = admin.get(path, headers={"HX-Request": "true"})
    assert part.content.decode().lstrip().startswith("<section")
    assert "HX-Push-Url" not in part.headers
    assert "Waiting for its turn" in part.content.decode()
    listed = admin.get("/c/a/deletions/").content.decode()
    assert "Namespace is apps" in listed


def test_the_list_offers_its_filter_and_ticks_to_admins(store, admin):
    page = admin.get("/c/a/leases/?namespace=apps").content.decode()
    assert f'href="{PATH}?namespace=apps"' in page
    assert 'name="lease" value="apps/free-1"' in page
    assert 'id="choose"' in page
    assert f'href="{PATH}?"' not in admin.get("/c/a/leases/").content.decode()


def test_another_admin_may_stop_it(store, admin):
    confirm(admin, "namespace=apps", "2")
    row = Deletion.objects.get()
    other = browser_of(member("bob", "admin"))
    assert other.post(f"/c/a/deletions/{row.pk}/stop/").status_code == 302
    assert Deletion.objects.get().stop_asked


def test_a_stop_that_comes_too_late_says_so(store, admin):
    confirm(admin, "namespace=apps", "2")
    stop = f"/c/a/deletions/{Deletion.objects.get().pk}/stop/"
    assert "It had ended before" not in admin.post(stop, follow=True).content.decode()
    Deletion.objects.update(state=Deletion.DONE, ended_at=clock.now())
    page = admin.post(stop, follow=True).content.decode()
    assert "It had ended before. Nothing was stopped." in page
    assert "The stop came too late: every Lease had its request." in page


def test_what_the_cluster_would_refuse_is_said_beforehand(board, store, admin):
    verdicts = board.clusters["a"].verdicts
    verdicts["", "apps", "delete"] = verdicts["", "", "delete"] = (clock.now(), False)
    page = page_of(admin, "namespace=apps")
    assert "Leaseboard may not delete leases in apps" in page
    assert "btn danger solid" not in page
    page = page_of(admin, "q=free")
    assert "It may refuse some of these" in page
    assert "btn danger solid" in page
