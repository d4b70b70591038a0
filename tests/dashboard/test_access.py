"""Who may see what: strangers sign in, guests are refused, a wall link reads the wall alone."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dashboard.access.wall_links import key_of
from leases.models import Edit, WallLink
from tests.dashboard.conftest import a_lease, fill

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("board")]

PAGES = ["/c/a/", "/c/a/leases/", "/c/a/history/", "/c/a/wall/", "/audit/"]


@pytest.fixture
def wall_link(db):
    return WallLink.objects.create(name="lobby", created_at=timezone.now())


@pytest.mark.parametrize("path", PAGES)
def test_a_stranger_is_led_to_sign_in_and_back(path):
    answer = Client().get(path)
    assert answer.status_code == 302
    assert answer.url == f"/sign-in/?next={path}"


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


def test_a_wall_link_reads_the_wall_and_nothing_else(wall_link):
    key = key_of(wall_link)
    stranger = Client()
    assert stranger.get("/c/a/wall/", {"key": key}).status_code == 200
    for path in PAGES:
        if "wall" not in path:
            assert stranger.get(path, {"key": key}).status_code == 302


@pytest.mark.parametrize("key", ["", "1", "1:forged", "x:y:z", "\N{BULLET}"])
def test_a_forged_wall_key_is_refused(wall_link, key):
    assert Client().get("/c/a/wall/", {"key": key}).status_code == 403


def test_a_wall_link_that_ended_or_was_revoked_opens_nothing(wall_link, admin):
    key = key_of(wall_link)
    WallLink.objects.filter(pk=wall_link.pk).update(expires_at=timezone.now() - timedelta(days=1))
    assert Client().get("/c/a/wall/", {"key": key}).status_code == 403
    WallLink.objects.filter(pk=wall_link.pk).update(expires_at=None)
    assert Client().get("/c/a/wall/", {"key": key}).status_code == 200
    admin.post(f"/wall-links/{wall_link.pk}/revoke/")
    answer = Client().get("/c/a/wall/", {"key": key})
    assert answer.status_code == 403
    assert b"has ended or was revoked" in answer.content


def test_an_admin_makes_a_wall_link_that_opens(admin):
    assert admin.post("/wall-links/", {"name": "lobby", "days": "7"}).status_code == 302
    link = WallLink.objects.get(name="lobby")
    assert link.expires_at is not None
    assert key_of(link) in admin.get("/wall-links/").content.decode()
    again = admin.post("/wall-links/", {"name": "lobby"})
    assert again.status_code == 422
    assert b"There is a link of this name already" in again.content


def test_the_audit_trail_tells_who_did_what_and_why(operator):
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
    assert "intended" in text


def test_an_address_that_no_database_could_look_up_is_nowhere(board, operator):
    answer = operator.get("/c/a/leases/a%00/b/")
    assert answer.status_code == 404
    assert b"NUL" in answer.content
