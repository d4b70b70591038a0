"""Who may see what: strangers sign in, guests are refused, a wall link reads the wall alone."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dashboard.access import links
from leases.models import Edit
from tests.support.board import a_lease, fill

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("board")]

PAGES = ["/c/a/", "/c/a/leases/", "/c/a/history/", "/c/a/wall/", "/audit/"]


@pytest.mark.parametrize("path", PAGES)
def test_a_stranger_is_led_to_sign_in_and_back(path):
    answer = Client().get(path)
    assert answer.status_code == 302
    assert answer.url == f"/sign-in/?next={path}"


def test_a_page_whose_person_was_signed_out_goes_to_sign_in_when_it_asks_for_a_part():
    shown = "/c/a/history/?q=x"
    asks = {"HX-Request": "true", "HX-Current-URL": f"http://testserver{shown}"}
    answer = Client(headers=asks).get("/c/a/leases/")
    assert (answer.status_code, answer["HX-Redirect"]) == (
        200,
        "/sign-in/?next=/c/a/history/%3Fq%3Dx",
    )
    followed = Client(headers=asks | {"X-Regions": "changes"}).get("/c/a/leases/")
    assert followed.url == "/sign-in/?next=/c/a/leases/"


@pytest.mark.parametrize("path", PAGES)
def test_a_guest_is_refused_with_the_way_out(guest, path):
    answer = guest.get(path)
    assert answer.status_code == 403
    assert b"Ask an admin" in answer.content


@pytest.mark.parametrize("path", PAGES)
def test_an_operator_reads_everything(operator, path):
    assert operator.get(path).status_code == 200


@pytest.mark.parametrize("path", ["/c/zz/", "/c/zz/leases/", "/c/zz/wall/"])
def test_an_unknown_cluster_is_404_and_names_those_watched(operator, path):
    answer = operator.get(path)
    assert answer.status_code == 404
    assert "No cluster is called &#x27;zz&#x27; here. Watched: a, b." in answer.content.decode()


def test_an_operator_may_neither_edit_nor_manage_wall_links(operator, board):
    fill(board.clusters["a"].store, a_lease())
    assert operator.get("/c/a/leases/kube-system/scheduler/edit/").status_code == 403
    assert operator.post("/c/a/leases/kube-system/scheduler/edit/", {}).status_code == 403
    assert operator.get("/wall-links/").status_code == 403


def test_the_audit_trail_shows_who_did_what_and_why(operator):
    Edit.objects.create(
        at=timezone.now(),
        user=User.objects.get(username="olga"),
        username="olga",
        cluster="a",
        namespace="kube-system",
        name="scheduler",
        action="lease.edit",
        reason="drill <1>",
    )
    text = operator.get("/audit/").content.decode()
    assert "kube-system" in text
    assert "drill &lt;1&gt;" in text
    assert "<span>Open</span>" in text


def test_an_address_that_no_database_could_look_up_is_nowhere(board, operator):
    answer = operator.get("/c/a/leases/a%00/b/")
    assert answer.status_code == 404
    assert b"NUL" in answer.content


def test_only_an_admin_may_open_the_edit_form(admin, operator, board):
    fill(board.clusters["a"].store, a_lease())
    path = "/c/a/leases/kube-system/scheduler/edit/"
    assert admin.get(path).status_code == 200
    refused = operator.get(path).content.decode()
    assert "olga may not edit Leases. Ask an admin for the role admin." in refused


def test_a_wall_link_of_a_cluster_that_is_no_longer_watched_says_so():
    _, token = links.create(name="w", clusters=["old"], created_by="x", now=timezone.now())
    answer = Client().get("/c/old/wall/", {"key": token})
    assert answer.status_code == 404
    said = "Leaseboard does not watch this cluster any more. Ask an admin."
    assert f">{said}<" in answer.content.decode()
