"""What a person sees when a request broke."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import OperationalError, connection
from psycopg_pool import PoolTimeout

from dashboard.pages import wall_links
from tests.support.board import browser_of, member


@contextmanager
def refusing() -> Iterator[None]:
    """A database that takes nothing, as on a read-only disk."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only = ON")
        yield
        cursor.execute("PRAGMA query_only = OFF")


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("board")
def test_a_database_that_refuses_is_named_on_a_page_of_its_own():
    admin = browser_of(member("ada", "admin"))
    admin.raise_request_exception = False
    admin.cookies["theme"] = "dark"
    with refusing():
        answer = admin.post("/wall-links/", {"name": "lobby", "clusters": ["a"]})
        assert admin.get("/wall-links/").status_code == 200
    text = answer.content.decode()
    assert answer.status_code == 503
    assert "attempt to write a readonly database. Make room on the disk" in text
    assert 'data-theme="dark"' in text


@pytest.mark.usefixtures("board")
def test_an_address_of_forms_says_so_to_whoever_opens_it(admin):
    answer = admin.get("/c/a/leases/kube-system/kube-scheduler/kind/")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
    assert "takes what a form sends" in answer.content.decode()
    said = admin.get("/c/a/leases/kube-system/kube-scheduler/kind/?format=json")
    assert (said.status_code, said.headers["Allow"]) == (405, "POST")
    assert said.json()["detail"] == "This address takes POST alone."
    sent = admin.post("/c/a/leases/")
    assert (sent.status_code, "GET" in sent.headers["Allow"]) == (405, True)
    assert "takes no form" in sent.content.decode()


@pytest.mark.usefixtures("board")
@pytest.mark.parametrize(
    "path",
    [
        "/people/9999/",
        "/clusters/9999/",
        "/wall-links/9999/screens/",
        "/wall-links/9999/revoke/",
        "/notifications/receivers/9999/",
    ],
)
def test_a_number_that_nothing_has_is_told_in_words_of_ours(admin, path):
    answer = admin.get(path)
    assert answer.status_code == 404
    said = "Nothing here has this number, or it was removed: choose again from the list."
    assert said in answer.content.decode()


@pytest.mark.usefixtures("board")
def test_a_defect_of_ours_is_not_blamed_on_the_database(admin, monkeypatch):
    monkeypatch.setattr(wall_links.WallLinks, "listed", None)
    admin.raise_request_exception = False
    answer = admin.get("/wall-links/")
    assert answer.status_code == 500
    assert "Something broke on our side" in answer.content.decode()


@pytest.mark.usefixtures("board")
def test_a_database_whose_connections_are_all_in_use_is_asked_again_soon(admin, monkeypatch):
    def waits(*_: object) -> None:
        raise OperationalError("couldn't get a connection after 5.00 sec") from PoolTimeout()

    monkeypatch.setattr(wall_links.WallLinks, "listed", waits)
    admin.raise_request_exception = False
    answer = admin.get("/wall-links/")
    assert answer.status_code == 503
    assert "It gave no connection in time" in answer.content.decode()
