"""Somebody who is signed in without a role sees who he is, whom to ask, and the way out."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone

from tests.support.board import a_lease, browser_of, fill, member
from tests.support.every_url import every_page
from tests.support.url_rules import RULES

pytestmark = pytest.mark.django_db
# A rule names who gets in without a role, and which methods a URL answers.
ASK_FOR_A_ROLE = [
    page
    for page in every_page()
    if "guest" not in RULES[page.name].who and "GET" in RULES[page.name].methods
]


@pytest.fixture(autouse=True)
def filled(board):
    fill(board.clusters["a"].store, a_lease())


@pytest.mark.parametrize("page", ASK_FOR_A_ROLE, ids=lambda page: page.name)
def test_every_page_says_who_is_signed_in_whom_to_ask_and_how_to_leave(guest, page):
    answer = guest.get(page.path)
    text = answer.content.decode()
    assert answer.status_code == 403
    assert "You have no role yet" in text
    assert "signed in as <b>gil</b>" in text
    assert text.count('action="/sign-out/"') == 2, "the page and the account menu"
    assert 'aria-label="Account: gil, no role"' in text
    assert "kube-system" not in text.replace(page.path, "")


def test_the_no_role_page_names_admins_the_last_seen_first(guest):
    for name in ("ada", "bea"):
        member(name, "admin")
    User.objects.filter(username="bea").update(last_login=timezone.now(), first_name="Bea B.")
    member("olga", "operator")
    gone = User.objects.create_superuser("root")
    User.objects.filter(pk=gone.pk).update(is_active=False)
    text = guest.get("/c/a/").content.decode()
    assert re.search(r"Ask an admin \(<b>Bea B\.</b>, <b>ada</b>\)\s+for the role", text)
    assert "olga" not in text
    assert "root" not in text


def test_the_no_role_page_leads_on_once_a_role_is_given(guest):
    assert guest.get("/").status_code == 403
    User.objects.get(username="gil").groups.add(Group.objects.get(name="operator"))
    assert guest.get("/", follow=True).status_code == 200


def test_a_user_with_a_role_sees_that_one_right_is_missing(operator):
    text = operator.get("/wall-links/").content.decode()
    assert "You may not do this" in text
    assert "no role" not in text


def test_signing_out_is_possible(guest):
    assert guest.post("/sign-out/").status_code == 302
    assert browser_of(User.objects.get(username="gil")).get("/").status_code == 403
    assert guest.get("/").status_code == 302
