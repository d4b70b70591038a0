"""What the security log keeps, and that no failure of it stops anybody."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import Group
from django.db import DatabaseError
from django.test import AsyncClient, Client

from dashboard.access.security_log import SecurityEvent, record
from dashboard.lists.responses import LINES_AT_ONCE
from leases.history import retention
from leases.history.retention import forget_security
from leases.models import SecurityRecord, WallLink
from tests.support.board import browser_of, member

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("board")]

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def kept(event: str, *, days_ago: int = 0, **fields: str) -> None:
    SecurityRecord.objects.create(
        at=NOW - timedelta(days=days_ago), event=event, **{"who": "ada"} | fields
    )


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


def test_an_export_ends_with_the_role_that_allowed_it():
    ada = member("ada", "admin")
    client = AsyncClient()
    client.cookies = browser_of(ada).cookies
    for number in range(LINES_AT_ONCE + 1):
        kept("sign_in", about=str(number))

    operators, got = [Group.objects.get(name="operator")], []

    async def read() -> None:
        answer = await client.get("/security-log/?format=csv")
        try:
            async for part in answer.streaming_content:
                got.append(part)
                await sync_to_async(ada.groups.set)(operators)
        except asyncio.CancelledError:
            got.append("cut")

    async_to_sync(read)()
    assert [len(got), got[-1]] == [2, "cut"]


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


def test_an_admin_filters_pages_and_exports_it_and_each_export_is_kept(board, admin, operator):
    kept("sign_in", days_ago=2)
    kept("link_created", about="=cmd|' /C calc'!A0", address="10.0.0.9")
    SecurityRecord.objects.filter(event="sign_in").exclude(at__lt=NOW).delete()
    shown = admin.get("/security-log/?event=link_created&address=10.0.0.9").content.decode()
    assert "Link made" in shown
    assert "<b>1</b> line," in shown
    found = admin.get("/security-log/?format=json&limit=1").json()
    assert (found["total"], len(found["items"])) == (2, 1)
    assert "page=2" in found["next"]
    assert "limit=1&amp;page=2" in admin.get("/security-log/?limit=1").content.decode()
    exported = b"".join(admin.get("/security-log/?format=csv&q=calc")).decode()
    assert ",link_created,ada,10.0.0.9,\"'=cmd|' /C calc'!A0\",ok" in exported
    assert lines()[-1][0:2] == ("export", "ada")
    assert lines()[-1][3] == "/security-log/?format=csv&q=calc"
    assert admin.get("/security-log/?event=nonsense").status_code == 400
    assert operator.get("/security-log/").status_code == 403


def test_every_event_is_named_in_words_and_offered_as_a_filter(admin):
    for event in SecurityEvent:
        kept(event)
    page = admin.get("/security-log/").content.decode()
    assert not re.findall(r">\s*[a-z]+_[a-z_]+\s*<", page)
    for event in SecurityEvent:
        assert f'value="{event}"' in page
    for words in ("Sign-in refused", "Token refused", "Screen code made", "Screen revoked"):
        assert words in page


def test_wall_links_made_and_revoked_are_kept_without_their_address(board, admin):
    admin.post("/wall-links/", {"name": "lobby", "clusters": ["a"]})
    link = WallLink.objects.get()
    admin.post(f"/wall-links/{link.pk}/revoke/")
    made = [line[:4] for line in lines() if line[0].startswith("link")]
    assert made == [
        ("link_created", "ada", "127.0.0.1", "wall link lobby of a"),
        ("link_revoked", "ada", "127.0.0.1", "wall link lobby of a"),
    ]


def test_lines_are_forgotten_after_a_year_and_beyond_their_number(monkeypatch):
    for days in (366, 364, 3, 2):
        kept("sign_in", days_ago=days)
    assert forget_security(NOW) == 1
    monkeypatch.setattr(retention, "MAX_SECURITY_LINES", 2)
    assert (forget_security(NOW), forget_security(NOW)) == (1, 0)
    assert SecurityRecord.objects.count() == 2
