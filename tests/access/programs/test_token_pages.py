"""People make and revoke tokens on a page, and `manage.py api_tokens` does in a shell."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.test import Client

from dashboard.access import api_tokens
from leases.models import ApiToken, SecurityRecord
from tests.support.board import board, browser_of, member  # noqa: F401

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("board")]

FORM = {"name": "ci", "role": "operator", "days": "30"}


def status_of(text: str) -> int:
    client = Client(headers={"Authorization": f"Bearer {text}"})
    return client.get("/c/a/history/?format=json").status_code


def text_in(page: str) -> str:
    (text,) = re.findall(r"lbt_[\w-]{43}", page)
    return text


def test_a_person_makes_a_token_that_is_shown_once_and_revokes_it():
    browser = browser_of(member("olga", "operator"))
    text = text_in(browser.post("/tokens/", FORM).content.decode())
    assert status_of(text) == 200
    listed = browser.get("/tokens/").content.decode()
    assert "lbt_" not in listed
    token = ApiToken.objects.get()
    assert f"/tokens/{token.pk}/revoke/" in listed
    assert browser.post(f"/tokens/{token.pk}/revoke/").status_code == 302
    assert status_of(text) == 401
    kept = SecurityRecord.objects.filter(event__startswith="token_").order_by("pk")
    assert [(one.event, one.who, one.about) for one in kept][:2] == [
        ("token_created", "olga", "API token ci of olga, role operator"),
        ("token_revoked", "olga", "API token ci of olga, role operator"),
    ]
    assert text not in str(list(kept.values_list()))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"role": "admin"}, "You cannot give this role."),
        ({"days": "0"}, "Write days from 1 to 3,650"),
        ({"name": "taken"}, "You have a token of this name already"),
        ({"name": ""}, "Write a name"),
    ],
)
def test_a_form_that_cannot_be_used_says_why_and_loses_nothing(wrong, says):
    browser = browser_of(member("olga", "operator"))
    browser.post("/tokens/", FORM | {"name": "taken"})
    answer = browser.post("/tokens/", FORM | wrong)
    assert answer.status_code == 422
    assert says in answer.content.decode()
    assert ApiToken.objects.count() == 1


def test_an_admin_sees_and_revokes_all_and_others_their_own():
    ada, olga, gil = member("ada", "admin"), member("olga", "operator"), member("gil", "operator")
    browser_of(olga).post("/tokens/", FORM)
    path = f"/tokens/{ApiToken.objects.get().pk}/revoke/"
    assert browser_of(gil).get(path).status_code == 404
    assert path not in browser_of(gil).get("/tokens/").content.decode()
    assert path in browser_of(ada).get("/tokens/").content.decode()
    assert browser_of(ada).post(path).status_code == 302
    assert ApiToken.objects.get().revoked_at is not None


def test_a_token_that_opens_nothing_now_is_not_listed_as_open(capsys):
    ada, olga, eva = member("ada", "admin"), member("olga", "operator"), member("eva", "admin")
    browser_of(olga).post("/tokens/", FORM)
    text = text_in(browser_of(eva).post("/tokens/", FORM | {"role": "admin"}).content.decode())
    eva.groups.set([Group.objects.get(name="operator")])
    olga.is_active = False
    olga.save()
    listed = browser_of(ada).get("/tokens/").content.decode()
    assert "not now: account deactivated" in listed
    assert "admin, now reads as operator" in listed
    assert status_of(text) == 200
    eva.groups.clear()
    assert "not now: person has no role" in browser_of(ada).get("/tokens/").content.decode()
    call_command("api_tokens", "list")
    assert capsys.readouterr().out.count("opens nothing now: The ") == 2


def test_the_command_makes_lists_and_revokes(capsys):
    member("ada", "admin")
    call_command("api_tokens", "create", "--name", "grafana", "--person", "ada", "--role", "admin")
    text = text_in(capsys.readouterr().out)
    assert status_of(text) == 200
    call_command("api_tokens", "list")
    number, name, *_ = capsys.readouterr().out.split("\t")
    assert name == "grafana"
    call_command("api_tokens", "revoke", number)
    assert status_of(text) == 401
    events = SecurityRecord.objects.filter(who="manage.py").values_list("event", flat=True)
    assert sorted(events) == ["token_created", "token_revoked"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("create --name x --person nobody", "--person 'nobody' is no active account."),
        ("create --name x --person olga --role admin", "Possible: operator."),
        ("create --name x --person olga --days 0", "--days must be a number from 1 to 3,650."),
        ("revoke 7", "There is no open token '7': see api_tokens list."),
    ],
)
def test_the_command_refuses_with_a_sentence(arguments, says):
    member("olga", "operator")
    with pytest.raises(CommandError, match=re.escape(says)):
        call_command("api_tokens", *arguments.split())


def test_roles_are_those_that_the_person_has():
    assert api_tokens.roles_for(member("ada", "admin")) == ["operator", "admin"]
    assert api_tokens.roles_for(member("olga", "operator")) == ["operator"]
    assert api_tokens.roles_for(member("gil", None)) == []
