"""A wall link is a random secret: it opens the walls of its clusters and nothing else."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.utils import timezone

from dashboard.access import links, screens
from dashboard.access.known_rights import KNOWN
from leases.history.database import reach
from leases.models import WallLink
from tests.access.wall.one_link import link, opened

pytestmark = pytest.mark.django_db


# What differs between any two answers.
MOMENT = re.compile(r'nonce="[^"]+"|content="\d+\.\d+"|As of [\d:]+')
OTHER_PAGES = ["/", "/c/a/", "/c/a/leases/", "/c/a/history/?format=json", "/audit/", "/wall-links/"]


def comparable(answer: tuple[int, str]) -> tuple[int, str]:
    return answer[0], MOMENT.sub("", answer[1])


def test_a_link_reads_the_walls_of_its_clusters_and_nothing_else(board):
    _, token = link("lobby", "a")
    assert opened(token)[0] == 200
    assert opened(token, "b")[0] == 403
    assert links.OTHER_CLUSTER in opened(token, "b")[1]
    assert comparable(opened(token, "nowhere")) == comparable(opened(token, "b"))
    for path in OTHER_PAGES:
        assert Client().get(path, {"key": token}).status_code == 302
    assert opened(link("both", "a", "b")[1], "b")[0] == 200


def test_a_closed_wall_names_no_cluster(board):
    _, token = link("lobby", "b")
    for answer in (opened(token, "a")[1], opened("nonsense", "a")[1]):
        assert "Watched:" not in answer
        assert not re.search(r"/c/[ab]/(?!wall/)", answer)


@pytest.mark.parametrize("key", ["", "1", "x", "a\0b", "\N{BULLET}"])
def test_a_key_that_nobody_made_opens_nothing(board, key):
    link()
    status, text = opened(key)
    assert status == 403
    assert links.UNKNOWN in text


def test_a_link_of_an_earlier_version_says_that_it_ended(board, admin):
    WallLink.objects.create(name="old", created_at=timezone.now(), clusters=["a"])
    status, text = opened("1:c2lnbmF0dXJl")
    assert status == 403
    assert links.OUTDATED in text
    listed = admin.get("/wall-links/").content.decode()
    assert "made by an earlier version" in listed
    assert "ended with the upgrade" in listed


def test_a_revoked_link_stays_closed_in_a_database_made_anew(board):
    one, token = link()
    WallLink.objects.all().delete()
    with connection.cursor() as cursor:  # as if the table began again with number 1
        if connection.vendor == "sqlite":
            cursor.execute("DELETE FROM sqlite_sequence WHERE name = 'leases_walllink'")
    other, _ = link()
    assert opened(token)[0] == 403
    assert connection.vendor != "sqlite" or other.pk <= one.pk


def test_a_link_that_ended_or_was_revoked_says_since_when(board):
    one, token = link(expires_at=datetime(2026, 11, 20, 3, 4, tzinfo=UTC))
    assert "This wall link ended on 2026-11-20 at 03:04 UTC. Ask an admin" in opened(token)[1]
    links.revoke(one.pk, now=timezone.now() - timedelta(seconds=1))
    links.revoke(one.pk, now=timezone.now() + timedelta(days=1))  # the first time counts
    assert re.search(r"This wall link was revoked (on \S+ )?at \d\d:\d\d UTC\.", opened(token)[1])


def test_the_database_holds_no_key(board):
    one, token = link()
    assert token not in f"{vars(one)}"
    assert re.fullmatch("[0-9a-f]{64}", one.digest)


def test_an_admin_makes_a_link_sees_its_address_once_and_it_opens(board, admin):
    answer = admin.post("/wall-links/", {"name": "lobby", "days": "7", "clusters": ["a", "b"]})
    assert answer.status_code == 200
    assert answer["Cache-Control"].find("no-store") >= 0
    urls = re.findall(r'value="(http://testserver[^"]+)"', answer.content.decode())
    assert [url.split("?")[0] for url in urls] == [
        "http://testserver/c/a/wall/", "http://testserver/c/b/wall/",
    ]  # fmt: skip
    assert [Client().get(url).status_code for url in urls] == [200, 200]
    later = admin.get("/wall-links/").content.decode()
    assert urls[0].partition("key=")[2] not in later
    for comparable in ("lobby", "a, b", "ada", "never"):
        assert comparable in later
    one = WallLink.objects.get(name="lobby")
    assert one.expires_at > timezone.now() + timedelta(days=6)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": "taken", "clusters": ["a"]}, "There is a link of this name already"),
        ({"name": "x"}, "Choose a cluster: a wall link opens those that it names alone."),
        ({"name": "x", "clusters": ["zz"]}, "zz is no cluster here."),
        ({"name": "x", "fleet": "on", "kinds": ["lock"]}, "A wall of all clusters counts whole"),
        (
            {"name": "x", "clusters": ["a"], "namespace": " ".join(map(str, range(17)))},
            "Write 16 names at most. These are 17.",
        ),
        ({"name": "x", "clusters": ["a"], "days": "0"}, "Write days from 1 to 3,650"),
    ],
)
def test_a_form_that_cannot_be_used_says_why(board, admin, fields, said):
    link("taken")
    answer = admin.post("/wall-links/", fields)
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert WallLink.objects.count() == 1


def test_a_link_of_all_clusters_opens_their_one_wall_and_no_other(board, admin):
    answer = admin.post("/wall-links/", {"name": "noc", "fleet": "on"})
    (url,) = re.findall(r'value="(http://testserver[^"]+)"', answer.content.decode())
    assert url.startswith("http://testserver/wall/fleet/?key=")
    assert "one wall of all clusters" in answer.content.decode()
    page = Client().get(url)
    assert page.status_code == 200
    assert re.findall(r'data-cluster="(\w)"', page.content.decode()) == ["a", "b"]
    key = url.partition("key=")[2]
    for path in ("/c/a/wall/", "/c/a/", "/"):
        assert Client().get(path, {"key": key}).status_code in (302, 403), path
    _, of_one = link("lobby", "a")
    refused = Client().get("/wall/fleet/", {"key": of_one})
    assert refused.status_code == 403
    assert "This wall link does not open this" in refused.content.decode()


def test_a_wall_of_chosen_clusters_names_no_other(board):
    _, token = link("noc", "b", fleet=True)
    page = Client().get("/wall/fleet/", {"key": token}).content.decode()
    assert re.findall(r'data-cluster="(\w)"', page) == ["b"]
    assert '<h1 class="w-cluster">1 cluster</h1>' in page


def test_a_link_shows_several_namespaces_and_kinds(board, admin):
    shown = {"namespace": "team-a, team-b team-a", "kinds": ["lock", "election"]}
    answer = admin.post("/wall-links/", {"name": "lobby", "clusters": ["a"], **shown})
    assert "Kind is lock or election, namespace is team-a or team-b" in answer.content.decode()
    one = WallLink.objects.get(name="lobby")
    assert one.namespace == "team-a,team-b"
    assert screens.path_of("a", one).startswith("/c/a/wall/?screen=1&namespace=team-a%2Cteam-b&")


def test_a_link_whose_cluster_is_not_watched_says_so(board, admin):
    link("lobby", "gone")
    assert "its cluster is not watched" in admin.get("/wall-links/").content.decode()


def test_revoking_asks_first(board, admin):
    one, token = link()
    page = admin.get("/wall-links/").content.decode()
    path = f"/wall-links/{one.pk}/revoke/"
    assert f'href="{path}"' in page
    assert f'action="{path}"' not in page, "no button of the list revokes"
    asked = admin.get(path)
    assert "stops within 5 seconds" in asked.content.decode()
    assert opened(token)[0] == 200, "asking revokes nothing"
    assert admin.post(path).status_code == 302
    assert opened(token)[0] == 403
    assert link("lobby")[0].pk != one.pk, "its name is free again"


def test_two_open_links_of_one_name_are_refused_by_the_database(board):
    link()
    with pytest.raises(IntegrityError), transaction.atomic():
        link()


def test_an_upgrade_ends_the_links_of_before():
    old = WallLink.objects.create(name="old", created_at=timezone.now())
    module = import_module("leases.migrations.0008_wall_link_secret")
    module.end_old_links(apps, SimpleNamespace(connection=connection))
    old.refresh_from_db()
    assert old.revoked_at is not None


def test_revoking_a_link_leaves_the_others_open(board):
    now = timezone.now()
    made = [links.create(name=n, clusters=["a"], created_by="ada", now=now) for n in ("x", "y")]
    links.revoke(made[0][0].pk, now=now)
    with pytest.raises(links.WallLinkClosed):
        links.open_link(made[0][1], cluster="a")
    opened = links.open_link(made[1][1], cluster="a")
    assert (opened.name, opened.created_by, opened.revoked_at) == ("y", "ada", None)
    links.revoke(made[0][0].pk, now=now + timedelta(days=1))
    assert WallLink.objects.get(name="x").revoked_at == now  # the first time counts


def test_a_link_is_closed_from_its_last_instant_on(board):
    now = timezone.now()
    link = WallLink(clusters=["a"], created_at=now, expires_at=now, digest="d")
    assert links.why_closed(link, cluster="a", now=now) is not None
    assert links.why_closed(link, cluster="a", now=now - timedelta(seconds=1)) is None


def test_who_is_signed_in_stays_so_where_a_link_leads_nowhere(board, admin):
    _, token = link("gone", "elsewhere")
    answer = admin.get(links.path_of(token, cluster="elsewhere"))
    assert answer.status_code == 404
    assert "No role" not in answer.content.decode()


def test_a_wall_asks_nobody_for_the_person_who_opens_it(board, operator, django_assert_num_queries):
    """Of whom a replica knows nothing that began while the database was away."""
    _, token = link()
    assert opened(token)[0] == 200
    KNOWN.forget(("session", operator.session.session_key))
    reach.failed("It does not answer.")
    try:
        with django_assert_num_queries(0):
            answer = operator.get(links.path_of(token, cluster="a"))
    finally:
        reach.answered()
    assert answer.status_code == 200
