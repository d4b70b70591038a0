"""A sign-in link: looking at it is free, and its button signs in once."""

from __future__ import annotations

import contextlib
import http.cookiejar
import re
import threading
import urllib.error
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dashboard import log_lines
from dashboard.access import sign_in_links
from leases.models import SignInLink
from tests.support.processes import Server, get, serving
from tests.support.signing_in import Opener, cookie_keeper, press_button, send_form

MANY = 30


@pytest.fixture
def admin_user(db: None, board: object) -> User:
    return User.objects.create_superuser("admin")


@pytest.fixture
def token(admin_user: User) -> str:
    return sign_in_links.create(admin_user, now=timezone.now())


def press(token: str, browser: Client | None = None) -> int:
    return (browser or Client()).post("/sign-in/link/", {"token": token}).status_code


def test_looking_at_a_link_any_number_of_times_does_not_use_it_up(token):
    for _ in range(3):
        answer = Client().get(f"/sign-in/{token}/")
        assert answer.status_code == 200
        assert "Sign in as admin" in answer.content.decode()
        assert settings.SESSION_COOKIE_NAME not in answer.cookies
    browser = Client()
    assert press(token, browser) == 302
    assert browser.get("/c/a/").status_code == 200


@pytest.mark.parametrize("how", ["get", "post"])
def test_a_used_link_is_410_and_says_so(token, how):
    press(token)
    answer = (
        Client().get(f"/sign-in/{token}/")
        if how == "get"
        else Client().post("/sign-in/link/", {"token": token})
    )
    assert answer.status_code == 410
    assert sign_in_links.USED in answer.content.decode()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda: SignInLink.objects.update(expires_at=timezone.now()), sign_in_links.EXPIRED),
        (lambda: User.objects.update(is_active=False), sign_in_links.INACTIVE),
    ],
)
def test_a_link_that_opens_no_more_says_why_and_stays_unused(token, change, said):
    change()
    for answer in (
        Client().get(f"/sign-in/{token}/"),
        Client().post("/sign-in/link/", {"token": token}),
    ):
        assert answer.status_code == 410
        assert said in answer.content.decode()
    assert SignInLink.objects.get().used_at is None


@pytest.mark.parametrize("token", ["x", "1:never:abc:def", "a\0b", "\N{BULLET}", "link"])
def test_a_link_of_somebody_elses_making_is_refused(admin_user, token):
    answer = Client().post("/sign-in/link/", {"token": token})
    assert answer.status_code == 410
    assert sign_in_links.WRONG in answer.content.decode()


def test_a_form_of_another_site_cannot_use_a_link_up(token):
    strict = Client(enforce_csrf_checks=True)
    assert press(token, strict) == 403
    assert SignInLink.objects.get().used_at is None


def test_the_database_holds_no_token(token):
    link = SignInLink.objects.get()
    assert token not in link.digest
    assert timezone.now() + timedelta(minutes=59) < link.expires_at
    assert link.expires_at <= timezone.now() + timedelta(hours=1)


def test_old_links_are_forgotten(token, admin_user):
    SignInLink.objects.update(expires_at=timezone.now() - timedelta(days=2))
    sign_in_links.create(admin_user, now=timezone.now())
    assert SignInLink.objects.count() == 1


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    extra = {}
    if request.param == "postgresql":
        extra["LEASEBOARD_DATABASE_URL"] = request.getfixturevalue("postgres").database()
    with serving(tmp_path / "data", "--no-demo", **extra) as one:
        yield one


def test_one_of_thirty_at_the_same_instant_signs_in(server):
    link = server.printed("Sign in")
    together = threading.Barrier(MANY)

    def redeem(_number: int) -> str:
        browser = cookie_keeper()
        with browser.open(link, timeout=60) as answer:
            form = answer.read().decode()
        together.wait()
        try:
            send_form(browser, link, form)
        except urllib.error.HTTPError as error:
            return f"refused: {error.code}"
        return "signed in" if has_session(browser) else "no session"

    with ThreadPoolExecutor(MANY) as pool:
        came_to = Counter(pool.map(redeem, range(MANY)))
    assert came_to == {"signed in": 1, "refused: 410": MANY - 1}


def has_session(browser: Opener) -> bool:
    jars = [one.cookiejar for one in browser.handlers if hasattr(one, "cookiejar")]
    assert isinstance(jars[0], http.cookiejar.CookieJar)
    return any(cookie.name.startswith("sessionid_") for cookie in jars[0])


def test_no_log_holds_the_token_of_a_link(tmp_path):
    with serving(tmp_path / "data", "--no-demo") as server:
        link = server.printed("Sign in")
        token = link.rstrip("/").rpartition("/")[2]
        assert get(link)[0] == 200
        for url in (link, link.rstrip("/"), link.replace("sign-in", "sign-in/"), f"{link}more/"):
            with contextlib.suppress(urllib.error.HTTPError):  # one is redirected to the form
                cookie_keeper().open(url, b"token=x", timeout=60)
        press_button(cookie_keeper(), link)
        assert get(link)[0] == 410
        server.interrupt()
        lines = [line for line in server.text.splitlines() if token in line]
        assert len(lines) == 1, "only the greeting holds the token"
        assert lines[0].startswith("Sign in ")
        assert log_lines.HIDDEN in server.text, "a refused POST is logged, without the token"


def test_a_link_uses_up_no_other_and_a_new_one_leaves_it_open(admin_user, token):
    now = timezone.now()
    other = sign_in_links.create(admin_user, now=now)
    assert SignInLink.objects.count() == 2
    assert sign_in_links.redeem(token, now=now) == admin_user
    with pytest.raises(sign_in_links.LinkError, match=sign_in_links.USED):
        sign_in_links.redeem(token, now=now)
    assert sign_in_links.find_user(other, now=now) == admin_user


def test_a_link_that_ran_out_lately_still_says_so(admin_user, token):
    late = timezone.now() + sign_in_links.VALID_FOR
    sign_in_links.create(admin_user, now=late)
    with pytest.raises(sign_in_links.LinkError, match=re.escape(sign_in_links.EXPIRED)):
        sign_in_links.find_user(token, now=late)


def test_a_link_expires_at_the_instant_its_hour_is_over(admin_user):
    now = timezone.now()
    token = sign_in_links.create(admin_user, now=now)
    assert sign_in_links.find_user(token, now=now + timedelta(minutes=59, seconds=59)) == admin_user
    with pytest.raises(sign_in_links.LinkError, match=re.escape(sign_in_links.EXPIRED)):
        sign_in_links.find_user(token, now=now + timedelta(hours=1))


@pytest.mark.parametrize("late", [timedelta(0), timedelta(hours=2)])
def test_the_database_decides_when_two_use_a_link_at_once(admin_user, token, monkeypatch, late):
    """Both find the link open; the second comes when it was used, or when its hour is over."""
    now = timezone.now()
    monkeypatch.setattr(sign_in_links, "find_user", lambda *_, **__: admin_user)
    if not late:
        assert sign_in_links.redeem(token, now=now) == admin_user
    with pytest.raises(sign_in_links.LinkError, match=re.escape(sign_in_links.USED)):
        sign_in_links.redeem(token, now=now + late)
