"""Who guesses passwords is slowed down, and nobody is locked out by somebody else's guesses."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.db.models import F
from django.test import Client
from django.utils import timezone

from dashboard.access.sign_in_limits import COOKIE, COOL_OFF, MAX_FAILURES, SLOWED
from tests.access.sign_in.conftest import RIGHT, WRONG, sign_in

pytestmark = pytest.mark.django_db


def fail(times: int, name: str = "ada", address: str = "192.0.2.1") -> list[int]:
    return [sign_in(name, WRONG, address).status_code for _ in range(times)]


def let_pass(span: timedelta) -> None:
    AccessAttempt.objects.update(attempt_time=F("attempt_time") - span)


def test_the_right_password_signs_in_after_a_few_mistakes(ada):
    assert fail(MAX_FAILURES - 1) == [200] * (MAX_FAILURES - 1)
    assert sign_in("ada", RIGHT).status_code == 302


def test_too_many_mistakes_slow_down_and_say_for_how_long(ada):
    assert fail(MAX_FAILURES)[-1] == 429
    answer = sign_in("ada", RIGHT)
    assert answer.status_code == 429
    said = re.search(r"Try again in (\d+) seconds", answer.content.decode())
    assert said is not None
    assert 0 < int(said[1]) <= COOL_OFF.total_seconds()
    assert answer["Retry-After"] == said[1]
    assert 'value="ada"' in answer.content.decode()


def test_a_slowed_address_may_sign_in_again_after_the_cool_off(ada):
    fail(MAX_FAILURES)
    let_pass(COOL_OFF / 2)
    assert fail(3) == [429] * 3  # attempts that are refused do not make it longer
    let_pass(COOL_OFF / 2)
    assert sign_in("ada", RIGHT).status_code == 302


def test_one_address_is_slowed_for_all_accounts_and_others_for_none(ada):
    for number in range(MAX_FAILURES):
        sign_in(f"nobody-{number}", WRONG)
    assert sign_in("ada", RIGHT).status_code == 429
    assert sign_in("ada", RIGHT, "192.0.2.2").status_code == 302


def test_many_addresses_slow_down_one_account(ada):
    for number in range(4):
        fail(MAX_FAILURES, address=f"192.0.2.{number + 10}")
    assert sign_in("ada", RIGHT, "192.0.2.99").status_code == 429
    User.objects.create_user("bob", password=RIGHT)
    assert sign_in("bob", RIGHT, "192.0.2.99").status_code == 302


def test_an_attacker_cannot_lock_out_a_browser_that_is_known(ada):
    browser = Client()
    assert sign_in("ada", RIGHT, client=browser).status_code == 302
    browser.logout()
    browser.cookies[COOKIE] = sign_in("ada", RIGHT).cookies[COOKIE].value
    for number in range(6):
        fail(MAX_FAILURES, address=f"192.0.2.{number + 1}")
    assert sign_in("ada", RIGHT).status_code == 429
    assert sign_in("ada", RIGHT, client=browser).status_code == 302


def test_a_known_browser_is_slowed_by_its_own_mistakes_and_known_for_one_account(ada):
    browser = Client()
    sign_in("ada", RIGHT, client=browser)
    cookie = browser.cookies[COOKIE].value
    browser = Client()
    browser.cookies[COOKIE] = cookie
    for _ in range(MAX_FAILURES):
        sign_in("ada", WRONG, client=browser)
    assert sign_in("ada", RIGHT, client=browser).status_code == 429
    assert sign_in("ada", RIGHT).status_code == 302
    fail(MAX_FAILURES, name="bob")
    assert sign_in("bob", RIGHT, client=browser).status_code == 429


def test_the_user_agent_makes_no_rows_and_no_exceptions(ada):
    for number in range(MAX_FAILURES):
        Client().post(
            "/sign-in/",
            {"username": "ada", "password": WRONG},
            REMOTE_ADDR="192.0.2.1",
            HTTP_USER_AGENT=f"agent {number}",
        )
    assert AccessAttempt.objects.count() == 1
    assert sign_in("ada", RIGHT).status_code == 429


def test_a_refused_sign_in_writes_nothing_and_checks_no_password(
    ada, monkeypatch, django_assert_max_num_queries
):
    fail(MAX_FAILURES)
    before = list(AccessAttempt.objects.values())
    monkeypatch.setattr(User, "check_password", lambda *_: pytest.fail("it was checked"))
    with django_assert_max_num_queries(6) as seen:
        assert fail(1) == [429]
    assert not [q for q in seen.captured_queries if not q["sql"].startswith("SELECT")]
    assert list(AccessAttempt.objects.values()) == before


def test_failures_that_count_no_more_are_forgotten(ada, monkeypatch):
    monkeypatch.setattr("dashboard.access.sign_in_limits.CLEAN_SECONDS", 0.0)
    for number in range(20):
        sign_in(f"nobody-{number}", WRONG, f"192.0.2.{number}")
    let_pass(COOL_OFF * 2)
    fail(1)
    assert AccessAttempt.objects.count() == 1


def test_the_log_says_who_and_from_where_and_never_the_password(ada, caplog):
    caplog.set_level("INFO")
    fail(MAX_FAILURES)
    fail(3)
    sign_in("ada", RIGHT, "192.0.2.2")
    sign_in("x\r\nINFO forged", WRONG, "192.0.2.3")
    lines = [record.getMessage() for record in caplog.records]
    assert lines.count("Sign-in of 'ada' from 192.0.2.1 failed: wrong name or password") == 5
    assert lines.count("Sign-ins from 192.0.2.1 are refused for 60 s") == 1
    assert "Sign-in of 'ada' from 192.0.2.2 succeeded" in lines
    assert not [line for line in lines if "\n" in line]
    kept = repr(list(AccessAttempt.objects.values()))
    for secret in (RIGHT, WRONG):
        assert secret not in caplog.text
        assert secret not in kept


def test_a_slowed_sign_in_keeps_the_page_that_it_leads_to(ada):
    fail(MAX_FAILURES)
    fields = {"username": "ada", "password": RIGHT, "next": "/c/a/leases/?kind=lock"}
    answer = Client().post("/sign-in/", fields, REMOTE_ADDR="192.0.2.1")
    assert answer.status_code == 429
    hidden = '<input type="hidden" name="next" value="/c/a/leases/?kind=lock">'
    assert hidden in answer.content.decode()
    assert 'name="next"' not in sign_in("ada", RIGHT).content.decode()


def test_a_slowed_address_is_known_without_the_database(ada):
    fail(MAX_FAILURES)
    left = SLOWED.remaining("192.0.2.1", timezone.now())
    assert left is not None
    assert timedelta(0) < left <= COOL_OFF
    assert SLOWED.remaining("192.0.2.2", timezone.now()) is None
