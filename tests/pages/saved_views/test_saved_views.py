"""Saved views: named, opened, shared, started with, and never more than their pages show."""

from __future__ import annotations

import html
import time
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from dashboard.pages import saved_views
from dashboard.parts.saved_view import title_of
from leases.history.database import reach
from leases.models import Person, SavedView
from tests.pages.conftest import HTMX, text_of
from tests.support.board import browser_of, member

FILTER = "phase=expired&kind=election&q=sched"


@pytest.fixture
def olga(store, operator) -> User:
    return User.objects.get(username="olga")


def a_view(owner: User, name: str = "mine", query: str = FILTER, **more) -> SavedView:
    known = {"page": "leases", "cluster": "a", "created_at": datetime.now(UTC)}
    return SavedView.objects.create(owner=owner, name=name, query=query, **(known | more))


def save(browser: Client, address: str, name: str = "mine", **more: str):
    return browser.post("/views/new/", {"name": name, "address": address, **more})


def start(browser: Client, view: SavedView | None) -> None:
    answer = browser.post("/views/start/", {"number": view.pk if view else ""})
    assert (answer.status_code, answer["Location"]) == (302, "/views/")


def said(answer) -> str:
    return " ".join(html.unescape(text_of(answer)).split())


@pytest.mark.parametrize(
    "path",
    [
        "/?q=a",
        "/c/a/leases/?phase=held",
        "/c/a/leases/?at=2026-11-20",
        "/audit/?user=ada",
        "/c/a/timeline/?kind=election",
        "/c/a/history/?range=1h",
        "/c/a/history/stretch/?range=1h",
        "/c/a/incidents/?range=7d",
        "/c/a/holders/?q=a",
        "/c/a/nodes/?group=none",
        "/c/a/reliability/?period=day",
    ],
)
def test_each_page_with_a_filter_offers_to_save_it_as_it_is(olga, operator, path):
    link = f"/views/new/?from={quote(path, safe='')}"
    assert f'href="{link}" data-save-view' in text_of(operator.get(path))
    form = said(operator.get(link))
    name, _, value = path.partition("?")[2].partition("=")
    assert f'<li class="mono">{name}: {value}</li>' in form
    assert f'value="{path}"' in form
    save(operator, path)
    answer = operator.get(f"/views/{SavedView.objects.get().pk}/")
    assert (answer.status_code, answer["Location"]) == (302, path)


def test_a_view_keeps_the_name_of_its_url_and_what_its_page_reads(olga, operator):
    more = "&page=3&format=json&limit=100&nonsense=1&namespace="
    address = f"http://testserver/c/a/leases/?{FILTER}{more}"
    assert save(operator, address, shared="on")["Location"] == "/views/"
    view = SavedView.objects.get()
    kept = FILTER + "&limit=100"
    assert (view.page, view.cluster, view.query, view.shared) == ("leases", "a", kept, True)
    assert view.owner == olga
    assert operator.get(f"/views/{view.pk}/")["Location"] == (
        f"{reverse('leases', args=['a'])}?{kept}"
    )


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("/c/a/leases/?phase=nonsense", "Its filter cannot be used: phase cannot be 'nonsense'"),
        ("/c/nowhere/leases/", "Leaseboard does not watch a cluster 'nowhere'."),
        ("https://evil.example/c/a/leases/", "This is the address of another site."),
        ("//evil.example/c/a/leases/", "This is the address of another site."),
        ("javascript:alert(1)", "This is the address of another site."),
        ("http://[/c/a/leases/", "This address cannot be read."),
        ("/no/such/page/", "No page of this board has this address."),
        ("/tokens/", "This page has no filter to save."),
        ("/c/a/leases/kube-system/scheduler/", "This page has no filter to save."),
        ("/admin/", "This page has no filter to save."),
        ("/c/a/search/?q=x", "This page has no filter to save."),
        ("/security-log/?who=ada", "You may not read this page."),
        ("/c/a/leases/?" + "&".join(["a"] * 1500), "This address cannot be read."),
        ("/c/a/leases/?q=" + "x" * 4000, "at most 4000 characters"),
    ],
)
def test_what_does_not_read_is_refused_in_a_sentence(olga, operator, address, sentence):
    answer = save(operator, address)
    assert answer.status_code == 422
    assert sentence in said(answer)
    assert sentence.split(":")[0][:20] in said(operator.get("/views/new/", {"from": address})) or (
        "at most" in sentence
    )
    assert not SavedView.objects.exists()


def test_a_name_is_one_line_of_its_own_and_escaped(olga, operator, monkeypatch):
    save(operator, "/c/a/leases/", "<script>x")
    page = text_of(operator.get("/views/"))
    assert "&lt;script&gt;x</a>" in page
    assert "<script>x" not in page
    for name, sentence in {
        "<script>x": "You have a view of this name already",
        "a\u202eb": "one line of printable characters",
        "x" * 101: "at most 100 characters",
        "": "Write a name",
    }.items():
        assert sentence in said(save(operator, "/c/a/leases/", name)), name
    assert save(browser_of(member("tom", "operator")), "/", "<script>x").status_code == 302
    monkeypatch.setattr(saved_views, "MAX_VIEWS", 1)
    assert "You have 1 views, which is the most." in said(save(operator, "/", "one more"))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"page": "gone"}, "Leaseboard has no page 'gone' any more."),
        ({"page": "overview"}, "has no filter any more."),
        ({"cluster": "old"}, "Leaseboard does not watch a cluster 'old'."),
        ({"query": "phase=asleep"}, "Its filter cannot be used: phase cannot be 'asleep'"),
        ({"query": "colour=red"}, "The page does not read 'colour' any more."),
        ({"page": "security_log", "cluster": "", "query": ""}, "You may not read this page."),
    ],
)
def test_a_view_that_cannot_be_opened_says_what_it_was_and_is_kept(
    olga, operator, changed, sentence
):
    view = a_view(olga, **changed)
    answer = operator.get(f"/views/{view.pk}/")
    assert answer.status_code == 404
    assert "The saved view 'mine' (" in said(answer)
    assert ") is kept, but cannot be opened: " in said(answer)
    assert sentence in said(answer)
    assert sentence in said(operator.get("/views/"))
    item = operator.get("/views/?format=json").json()["items"][0]
    assert sentence in item["problem"]
    assert SavedView.objects.filter(pk=view.pk).exists()


def test_a_page_is_called_by_its_name():
    named = {"home": "All clusters", "near_misses": "Near misses"}
    named["history_all"] = "History of all clusters"
    assert {page: title_of(page) for page in named} == named


def test_others_see_what_is_shared_and_nothing_else(olga, operator, admin):
    private, shared = a_view(olga, "private"), a_view(olga, "common", shared=True)
    tom = browser_of(member("tom", "operator"))
    page = said(tom.get("/views/"))
    assert "common" in page
    assert "private" not in page
    assert [one["name"] for one in tom.get("/views/?format=json").json()["items"]] == ["common"]
    assert tom.get(f"/views/{shared.pk}/").status_code == 302
    for one in (private, shared):
        assert tom.post(f"/views/{one.pk}/edit/", {"name": "taken"}).status_code == 404
        assert tom.post(f"/views/{one.pk}/remove/").status_code == 404
    assert tom.get(f"/views/{private.pk}/").status_code == 404
    assert tom.post("/views/start/", {"number": private.pk}).status_code == 404
    assert admin.post(f"/views/{private.pk}/remove/").status_code == 404
    assert "End sharing" not in page
    assert "End sharing" in said(admin.get("/views/"))
    assert admin.post(f"/views/{shared.pk}/remove/").status_code == 302
    shared.refresh_from_db()
    assert not shared.shared


def test_the_owner_renames_shares_and_removes(olga, operator):
    view = a_view(olga)
    a_view(olga, "other")
    path = f"/views/{view.pk}/edit/"
    assert 'value="mine"' in text_of(operator.get(path))
    assert operator.post(path, {"name": "other"}).status_code == 422
    assert operator.post(path, {"name": "ours", "shared": "on"}).status_code == 302
    view.refresh_from_db()
    assert (view.name, view.shared) == ("ours", True)
    assert operator.post(f"/views/{view.pk}/remove/").status_code == 302
    assert not SavedView.objects.filter(pk=view.pk).exists()


def test_a_person_starts_with_a_view_and_still_reaches_all_clusters(olga, operator):
    view = a_view(olga)
    start(operator, view)
    assert operator.get("/")["Location"] == f"/c/a/leases/?{FILTER}"
    olga.set_password("long enough to be good")
    olga.save()
    typed = {"username": "olga", "password": "long enough to be good"}
    answer = Client().post("/sign-in/", typed, follow=True)
    assert [url for url, _ in answer.redirect_chain] == ["/", f"/c/a/leases/?{FILTER}"]
    operator = browser_of(olga)
    assert 'href="/?all"' in text_of(operator.get("/c/a/leases/"))
    fleet = text_of(operator.get("/?all"))
    assert "<h1>Clusters</h1>" in fleet
    assert operator.get("/?q=a").status_code == 200
    # A choice on that page never leads to the bare `/`.
    assert 'href="/?all"' in text_of(operator.get("/?q=a", headers=HTMX))
    assert operator.get("/?q=", headers=HTMX)["HX-Push-Url"] == "/?all"
    assert operator.get("/?format=json").json()["total"] == 2
    start(operator, None)
    assert operator.get("/").status_code == 200


def test_a_start_that_cannot_be_opened_leads_to_all_clusters(olga, operator):
    of_tom = a_view(member("tom", "operator"), shared=True)
    start(operator, of_tom)
    assert "start page" in said(operator.get("/views/"))
    SavedView.objects.update(cluster="old")
    page = said(operator.get("/"))
    assert "<h1>Clusters</h1>" in page
    assert "You start with 'mine', but: Leaseboard does not watch a cluster 'old'." in page
    SavedView.objects.update(cluster="a", shared=False)
    assert operator.get("/").status_code == 200
    of_tom.delete()
    assert Person.objects.get(user=olga).start is None


def test_the_fleet_as_a_start_is_no_circle(olga, operator):
    start(operator, a_view(olga, page="home", cluster="", query=""))
    assert operator.get("/")["Location"] == "/?all"


def test_a_view_of_leases_opens_as_a_wall_of_the_same_filter(olga, operator):
    a_view(olga, query=f"{FILTER}&sort=name&limit=10")
    page = said(operator.get("/views/"))
    assert f'href="/c/a/wall/?{FILTER}"' in page
    wall = said(operator.get(f"/c/a/wall/?{FILTER}"))
    assert "State is expired, kind is election, name or holder contains “sched”" in wall
    SavedView.objects.update(query="holder=cp-1")  # a wall does not choose by holder
    assert "/wall/" not in said(operator.get("/views/")).partition("<main")[2]


def test_search_finds_own_and_shared_views(olga, operator):
    tom = member("tom", "operator")
    own = a_view(olga, "Night watch")
    a_view(tom, "night shared", shared=True)
    a_view(tom, "night private")
    items = operator.get("/c/a/search/?q=night&format=json").json()["items"]
    views = [(one["label"], one["detail"]) for one in items if one["group"] == "view"]
    detail = "Leases of a, phase: expired, kind: election, q: sched"
    assert views == [("Night watch", detail), ("night shared", detail)]
    assert items[0]["url"] == f"http://testserver/views/{own.pk}/"
    found = operator.get("/search/?q=all+clusters&format=json").json()["items"]
    assert found[0]["url"] == "http://testserver/?all"


def test_the_key_of_a_wall_is_not_saved(olga, operator):
    save(operator, "/c/a/wall/?kind=lock&key=secret")
    assert SavedView.objects.get().query == "kind=lock"


def test_without_the_database_a_person_starts_with_all_clusters(olga, operator, monkeypatch):
    start(operator, a_view(olga))
    assert operator.get("/").status_code == 302
    monkeypatch.setattr(reach, "_failed", ("gone", time.monotonic()))
    assert "<h1>Clusters</h1>" in text_of(operator.get("/"))
    found = operator.get("/search/?q=mine&format=json").json()["items"]
    assert not [one for one in found if one["group"] == "view"]


def test_a_nul_in_a_holder_is_kept(olga, operator):
    save(operator, "/c/a/history/?holder=a%00b")
    view = SavedView.objects.get()
    assert operator.get(f"/views/{view.pk}/")["Location"] == "/c/a/history/?holder=a%00b"
    assert "holder: a\N{SYMBOL FOR NULL}b" in said(operator.get("/views/"))
    assert save(operator, "/c/a/leases/?q=a%00b", "other").status_code == 422
