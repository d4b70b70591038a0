"""Whoever is not signed in learns no cluster's name, no address and no error of the database."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from django.conf import settings
from django.db import DatabaseError, OperationalError
from django.test import Client
from django.urls import URLPattern, URLResolver

from dashboard import health as health_view
from dashboard import urls
from dashboard.board import install_board
from dashboard.config import ClusterSpec
from dashboard.serving.runtime import Options, Runtime
from leases.domain.watched_times import Connection, ConnectionState
from leases.history.database import Reach
from leases.kube.cluster_source import ClusterSource, SourceKind
from tests.support.board import browser_of, member

pytestmark = pytest.mark.django_db

SECRET = "prod-eu-secret"
ADDRESS = "https://10.1.2.3:6443 does not answer"


@pytest.fixture
def secretive(board, tmp_path):
    """A cluster with a name and a problem that nobody else must read."""
    specs = tuple(
        ClusterSpec(name, ClusterSource(SourceKind.IN_CLUSTER)) for name in (SECRET, f"{SECRET}-2")
    )
    now = datetime.now(UTC)
    one = Runtime(Options(clusters=specs, data=tmp_path))
    install_board(one)
    lost = Connection(state=ConnectionState.CONNECTING, since=now, detail=ADDRESS)
    one.clusters[SECRET].store.connect(lost, now)
    one.supervisor.failed("watch", OSError(), effect=f"{SECRET} is not watched.", cluster=SECRET)
    one.supervisor.failed("recorder", OSError(), effect=f"History of {SECRET} is not written.")
    return one


def paths() -> list[str]:
    """One address of each pattern, of the cluster and of one that there is not."""
    found = []
    for pattern in _walk(urls.urlpatterns, ""):
        filled = re.sub(r"<(?:\w+:)?number>", "1", pattern)
        for cluster in (SECRET, "nowhere"):
            one = re.sub(r"<slug:cluster>", cluster, filled)
            found.append("/" + re.sub(r"<[^>]+>", "x", one))
    return sorted(set(found))


def _walk(patterns: list[URLPattern | URLResolver], before: str) -> list[str]:
    found = []
    for one in patterns:
        route = before + str(one.pattern)
        if isinstance(one, URLPattern):
            found.append(route)
        elif not one.app_name:
            found += _walk(one.url_patterns, route)
    return found


ODD = ["/admin/", "/admin/auth/user/", "/nowhere/", "/c/", f"/c/{SECRET}/nowhere/", "/c/a%00/"]


@pytest.mark.parametrize("path", [*paths(), *ODD])
def test_no_answer_to_a_stranger_names_a_cluster_or_its_problem(secretive, path):
    browser = Client(raise_request_exception=False)
    answers = browser.get(path), browser.post(path, {"next": "/"})
    if path == "/metrics":
        return  # README: open to all unless LEASEBOARD_METRICS_TOKEN is set
    for answer in answers:
        said = f"{answer.headers}{answer.content.decode()}".replace(path, "").replace(
            f"/c/{SECRET}/".replace("/", "%2F"), ""
        )
        assert SECRET not in said, answer.request["REQUEST_METHOD"]
        assert ADDRESS not in said, answer.request["REQUEST_METHOD"]


@pytest.mark.parametrize("rest", ["", "leases/", "wall/", "history/?format=json", "nowhere/"])
def test_strangers_cannot_find_out_which_clusters_exist(secretive, rest):
    def reported(cluster: str) -> tuple[int, str, str]:
        answer = Client().get(f"/c/{cluster}/{rest}")
        moving = r'nonce="[^"]+"|content="\d+\.\d+"'
        body = re.sub(moving, "", answer.content.decode())
        return answer.status_code, answer.get("Location", "").replace(cluster, "x"), body

    assert reported(SECRET) == reported("nowhere")


def test_the_front_door_leads_a_stranger_to_sign_in_and_others_in(secretive):
    assert Client().get("/").url == "/sign-in/?next=/"
    reader = browser_of(member("olga", "operator"))
    assert f'href="/c/{SECRET}/"' in reader.get("/").content.decode()


def test_strangers_get_readiness_in_numbers_only(secretive):
    answer = Client().get("/readyz")
    assert answer.status_code == 200
    assert answer.content.decode() == "ok\n2 of 2 clusters not listed, 2 tasks down\n"


def test_readers_and_the_token_get_readiness_in_full(secretive, monkeypatch):
    reported = browser_of(member("olga", "operator")).get("/readyz").content.decode()
    assert ADDRESS in reported
    assert f"task watch of {SECRET}" in reported
    config = replace(settings.LEASEBOARD, metrics_token="s3cret")
    monkeypatch.setattr(settings, "LEASEBOARD", config)
    by_token = {"headers": {"Authorization": "Bearer s3cret"}}
    assert Client().get("/readyz", **by_token).content.decode() == reported
    wrong = {"headers": {"Authorization": "Bearer other"}}
    assert SECRET not in Client().get("/readyz", **wrong).content.decode()
    assert SECRET not in browser_of(member("gil", None)).get("/readyz").content.decode()


def test_no_token_in_the_settings_is_no_token_to_send(secretive):
    answer = Client().get("/readyz", headers={"Authorization": "Bearer "})
    assert SECRET not in answer.content.decode()


def test_only_readers_see_the_database_error(secretive, monkeypatch, operator):
    reader = operator
    monkeypatch.setattr(health_view, "reach", reach := Reach())
    reach.failed("no route to 10.9.9.9")
    assert "10.9.9.9" in reader.get("/readyz").content.decode()
    answer = Client().get("/readyz")
    assert answer.status_code == 200
    known = answer.content.decode()
    assert known.startswith("ok\nhistory is not reachable: the database does not answer\n")
    assert "10.9.9.9" not in known


def test_an_error_page_shows_strangers_nothing_of_the_database(secretive, monkeypatch):
    def refuse(*_args: object, **_more: object) -> None:
        raise OperationalError("connection to server at 10.9.9.9 failed")

    monkeypatch.setattr("dashboard.pages.account.find_user", refuse)
    stranger = Client(raise_request_exception=False)
    answer = stranger.get("/sign-in/x/")
    assert answer.status_code == 503
    assert "10.9.9.9" not in answer.content.decode()
    assert issubclass(OperationalError, DatabaseError)
