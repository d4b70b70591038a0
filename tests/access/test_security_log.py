"""What the security log keeps, and that no failure of it stops anybody."""

from __future__ import annotations

import pytest
from django.db import DatabaseError
from django.test import Client

from dashboard.access.security_log import SecurityEvent, record
from leases.models import SecurityRecord
from tests.support.board import member

pytestmark = pytest.mark.django_db


def lines() -> list[tuple[str, str, str, str, str]]:
    fields = ("event", "who", "address", "about", "outcome")
    return list(SecurityRecord.objects.order_by("id").values_list(*fields))


def test_signing_in_and_out_and_a_wrong_password_are_kept():
    user = member("gil", None)
    user.set_password("the right one")
    user.save()
    browser = Client(REMOTE_ADDR="2001:db8::7")
    browser.post("/sign-in/", {"username": "gil", "password": "planted-canary"})
    browser.post("/sign-in/", {"username": "gil", "password": "the right one"})
    browser.post("/sign-out/")
    assert lines() == [
        ("sign_in_refused", "gil", "2001:db8::7", "", "wrong name or password"),
        ("sign_in", "gil", "2001:db8::7", "", "ok"),
        ("sign_out", "gil", "2001:db8::7", "", "ok"),
    ]


def test_a_flood_of_wrong_passwords_writes_a_bounded_number_of_lines():
    member("gil", None)
    browser = Client()
    for _ in range(9):
        browser.post("/sign-in/", {"username": "gil", "password": "no"})
    outcomes = [line[4] for line in lines()]
    assert outcomes == ["wrong name or password"] * 5 + ["too many mistakes: refused for 60 s"]


def test_a_line_holds_what_a_database_can_store_and_no_secret():
    record(
        SecurityEvent.LINK_CREATED,
        who="\0ada\ud800" + "x" * 200,
        address="127.0.0.1",
        about="/sign-in/planted-token/",
    )
    ((_, who, _, about, _),) = lines()
    assert who.startswith("\ufffdada\ufffdxx")
    assert len(who) == 150
    assert about == "/sign-in/[hidden]/"


def test_a_database_that_refuses_the_line_stops_nobody(monkeypatch, caplog):
    def refuse(**_values: object) -> None:
        raise DatabaseError("disk full")

    monkeypatch.setattr(SecurityRecord.objects, "create", refuse)
    record(SecurityEvent.SIGN_IN, who="ada", address="")
    assert "The security log lacks sign_in of 'ada': disk full" in caplog.text
