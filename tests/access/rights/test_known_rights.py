"""Who is known while the database does not answer, for how long, and what they may do."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import OperationalError

from dashboard import clock
from dashboard.access import known_rights
from dashboard.access.ended_rights import RightsWatch
from dashboard.access.known_rights import KEPT_SECONDS, KnownRights, ReadOnlyPerson, WallRight
from dashboard.access.roles import EDIT, VIEW
from leases.history.database import Reach
from tests.support.board import a_lease, browser_of, fill, member

RIGHT = WallRight(1, "a")


@pytest.fixture
def seconds() -> list[float]:
    return [0.0]


@pytest.fixture
def known(seconds: list[float]) -> KnownRights:
    return KnownRights(lambda: seconds[0])


def test_a_right_is_known_for_ten_minutes_and_no_longer_than_it_lasts(known, seconds):
    now = clock.now()
    known.note("long", RIGHT, "link", None)
    known.note("short", RIGHT, "link", now + timedelta(seconds=5))
    assert known.find("long", now).found == "link"
    assert known.find("short", now) is not None
    assert known.find("short", now + timedelta(seconds=5)) is None
    seconds[0] = KEPT_SECONDS
    assert known.find("long", now) is None
    assert known.rights == set()


def test_what_is_open_stays_known_and_what_ended_does_not(known, seconds):
    other = WallRight(2, "a")
    known.note("open", RIGHT, "link", None)
    known.note("closed", other, "link", None)
    seconds[0] = KEPT_SECONDS - 1
    known.confirm([RIGHT], {})
    seconds[0] = KEPT_SECONDS + 1
    assert known.rights == {RIGHT}
    known.confirm([RIGHT], {RIGHT: "over"})
    assert known.find("open", clock.now()) is None


def test_not_more_are_known_than_fit(known, monkeypatch):
    monkeypatch.setattr(known_rights, "MAX_KNOWN", 3)
    for number in range(10):
        known.note(number, WallRight(number, "a"), number, None)
    assert known.rights == {WallRight(number, "a") for number in (7, 8, 9)}


async def test_the_look_at_rights_ends_known_ones(known):
    watch = RightsWatch(lambda rights, **_now: dict.fromkeys(rights, "over"), known=known)
    known.note("by", RIGHT, "link", None)
    await watch.check()
    assert known.rights == set()
    watch.close()


@pytest.fixture
def away(board, monkeypatch):
    """From the call on, no query is answered."""
    fill(board.clusters["a"].store, a_lease())
    monkeypatch.setattr(known_rights, "KNOWN", KnownRights())
    monkeypatch.setattr(known_rights, "reach", Reach())

    def begin() -> None:
        def refuse(*_: object) -> None:
            raise OperationalError("no route to host")

        monkeypatch.setattr("django.contrib.auth.get_user", refuse)

    return begin


@pytest.mark.django_db
def test_an_admin_who_is_known_may_read_and_no_more(away):
    browser = browser_of(member("ada", "admin"))
    assert "data-may-edit" in browser.get("/c/a/leases/").content.decode()
    away()
    page = browser.get("/c/a/leases/")
    assert page.status_code == 200
    assert "data-may-edit" not in page.content.decode()
    refused = browser.post("/c/a/leases/kube-system/scheduler/release/", {})
    assert refused.status_code == 503


@pytest.mark.django_db
def test_nobody_else_is_let_in(away):
    known = browser_of(member("ada", "admin"))
    known.get("/c/a/leases/")
    browser = browser_of(member("gil", None))
    browser.raise_request_exception = False
    away()
    assert browser.get("/c/a/leases/").status_code == 503


@pytest.mark.django_db
def test_only_rights_that_the_person_has_are_known():
    assert ReadOnlyPerson(member("olga", "operator")).has_perm(VIEW)
    assert not ReadOnlyPerson(member("gil", None)).has_perm(VIEW)
    assert not ReadOnlyPerson(member("ada", "admin")).has_perm(EDIT)
