"""A browser in which a person has signed in is known for that account, for half a year."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from django.conf import settings
from django.core import signing
from django.test import Client

from dashboard.access.sign_in_limits import COOKIE, MAX_FAILURES, is_known_browser
from dashboard.serving.data_directory import mark_of
from tests.access.sign_in.conftest import RIGHT, WRONG, sign_in

pytestmark = pytest.mark.django_db

HALF_A_YEAR = 180 * 24 * 3600  # seconds


@pytest.fixture
def cookie(ada: object) -> str:
    return sign_in("ada", RIGHT).cookies[COOKIE].value


def known_by(*headers: tuple[str, str]) -> bool:
    return is_known_browser((name.encode(), value.encode("latin-1")) for name, value in headers)


def let_pass(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    later = time.time() + seconds
    monkeypatch.setattr(signing, "time", SimpleNamespace(time=lambda: later))


def test_the_cookie_is_hidden_from_scripts_and_lasts_half_a_year(ada):
    morsel = sign_in("ada", RIGHT).cookies[COOKIE]
    assert morsel["httponly"] is True
    assert (morsel["samesite"], morsel["max-age"]) == ("Lax", HALF_A_YEAR)


def test_two_boards_on_one_host_share_no_cookie_and_a_restarted_one_keeps_its_own(ada):
    """Browsers send the cookies of a host to all of its ports."""
    mark = mark_of(settings.SECRET_KEY)
    assert mark == mark_of(settings.SECRET_KEY) != mark_of("the key of another data directory")
    given = sign_in("ada", RIGHT).cookies
    assert set(given) == {f"sessionid_{mark}", f"csrftoken_{mark}", f"leaseboard_browser_{mark}"}


def test_a_browser_is_known_by_its_cookie_among_other_headers(cookie):
    assert known_by(("host", "x"), ("cookie", f"a=b; {COOKIE}={cookie}; c=\xff"), ("dnt", "1"))


@pytest.mark.parametrize(
    "header",
    [
        ("cookie", "a=b"),
        ("cookie", f"{COOKIE}=made-up"),
        ("cookie", f"{COOKIE}="),
        ("cookie", f"other={COOKIE}"),
        ("x-cookie", "{}"),
    ],
)
def test_a_browser_with_anything_else_is_unknown(cookie, header):
    name, value = header
    assert not known_by((name, value.format(f"{COOKIE}={cookie}")))
    assert not known_by()


def test_a_signature_made_for_another_purpose_makes_no_browser_known(ada):
    other = signing.dumps(["ada", "x"], salt="another-salt")
    assert not known_by(("cookie", f"{COOKIE}={other}"))


def test_the_server_forgets_a_browser_after_half_a_year(cookie, monkeypatch):
    """However long the browser itself keeps the cookie."""
    let_pass(monkeypatch, HALF_A_YEAR - 60)
    assert known_by(("cookie", f"{COOKIE}={cookie}"))
    let_pass(monkeypatch, HALF_A_YEAR + 60)
    assert not known_by(("cookie", f"{COOKIE}={cookie}"))


def test_a_cookie_that_has_run_out_lets_nobody_pass_a_slowed_account(cookie, monkeypatch):
    browser = Client()
    browser.cookies[COOKIE] = cookie
    for number in range(4 * MAX_FAILURES):
        sign_in("ada", WRONG, f"192.0.2.{number + 10}")
    let_pass(monkeypatch, HALF_A_YEAR + 60)
    assert sign_in("ada", RIGHT, client=browser).status_code == 429
    let_pass(monkeypatch, 0)
    assert sign_in("ada", RIGHT, client=browser).status_code == 302
