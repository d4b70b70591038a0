"""A short code opens one screen, once; the screen opens the walls of its link and nothing else."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from axes.models import AccessAttempt
from channels.routing import URLRouter
from channels.sessions import CookieMiddleware
from django.contrib.auth.models import AnonymousUser
from django.db.models import F
from django.test import Client
from django.utils import timezone

from dashboard.access import links, screens
from dashboard.access.known_rights import KNOWN, WallRight
from dashboard.access.links import LinkUse
from dashboard.access.sign_in_limits import COOL_OFF, MAX_FAILURES, TooManyCodes, try_code
from dashboard.live.consumers import urlpatterns
from leases.history.database import reach
from leases.models import SecurityRecord, WallLink, WallScreen
from tests.access.wall.one_link import link
from tests.support.board import KEY, a_lease, fill
from tests.support.communicator import Socket

pytestmark = pytest.mark.django_db

OTHER_PAGES = ("/", "/c/a/", "/c/a/leases/", "/c/a/leases/?format=json", "/audit/", "/wall-links/")
ROUTER = CookieMiddleware(URLRouter(urlpatterns))
WALL = "/c/a/wall/?screen=1"


def typed(code: str, browser: Client | None = None, address: str = "127.0.0.1"):
    browser = browser or Client()
    return browser.post("/wall/", {"code": code}, REMOTE_ADDR=address)


def code_of(one: WallLink) -> str:
    return screens.make_code(one, timezone.now())


def a_screen(one: WallLink) -> Client:
    browser = Client()
    assert typed(code_of(one), browser)["Location"] == "/wall/"
    return browser


def test_an_admin_gets_a_code_and_a_screen_opens_by_it_once(board, admin):
    one, _ = link("lobby", "a", namespace="prod", kinds=["lock", "election"])
    page = admin.post(f"/wall-links/{one.pk}/code/").content.decode()
    (code,) = re.findall(r"data-code>([A-Z\d]{4} [A-Z\d]{4})<", page)
    assert code not in admin.get("/wall-links/").content.decode()
    browser, second = Client(), Client()
    assert typed(code.lower().replace(" ", "-"), browser)["Location"] == "/wall/"
    cookie = browser.cookies[screens.COOKIE]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Lax", "/")
    there = browser.get("/wall/")["Location"]
    assert there == "/c/a/wall/?screen=1&namespace=prod&kind=lock&kind=election"
    assert "Kind is lock or election, namespace is prod" in browser.get(there).content.decode()
    refused = typed(code, second)
    assert refused.status_code == 422
    assert "This code opens nothing" in refused.content.decode()
    assert screens.COOKIE not in second.cookies
    assert "1 screen<" in admin.get("/wall-links/").content.decode()


def test_a_screen_opens_no_other_page_and_no_json(board):
    browser = a_screen(link("lobby", "a")[0])
    assert browser.get(WALL).status_code == 200
    for path in OTHER_PAGES:
        for query in ({}, {"screen": "1"}):
            answer = browser.get(path, query)
            there = answer.get("Location", "")
            assert answer.status_code == 401 or there.startswith("/sign-in/"), (path, query)
    assert browser.get("/c/a/wall/")["Location"].startswith("/sign-in/")
    assert browser.get("/c/b/wall/?screen=1")["Location"] == "/wall/"
    assert browser.get("/c/nowhere/wall/?screen=1")["Location"] == "/wall/"
    assert Client().get(WALL)["Location"] == "/wall/"


def test_a_screen_without_scripts_turns_by_reloading(board):
    browser = a_screen(link("lobby", "a", "b")[0])
    page = browser.get(WALL).content.decode()
    assert '<meta http-equiv="refresh" content="15; url=/wall/?after=a">' in page
    assert browser.get("/wall/?after=a")["Location"] == "/c/b/wall/?screen=1"


def test_a_screen_of_all_clusters_stays_at_their_wall(board):
    one, _ = link("noc", "a", fleet=True)
    browser = a_screen(one)
    there = browser.get("/wall/")["Location"]
    assert there == "/wall/fleet/?screen=1"
    page = browser.get(there).content.decode()
    assert 'data-screen="/wall/"' in page
    assert "data-turn" not in page
    assert browser.get(WALL)["Location"] == "/wall/"
    links.revoke(one.pk, now=timezone.now())
    assert browser.get(there)["Location"] == "/wall/"


def test_under_https_the_cookie_is_secure_and_each_visit_keeps_it(board, settings):
    settings.SESSION_COOKIE_SECURE = True
    browser = a_screen(link()[0])
    assert browser.cookies[screens.COOKIE]["secure"] is True
    assert browser.get("/wall/").cookies[screens.COOKIE]["max-age"] == screens.COOKIE_SECONDS


def test_screens_are_known_before_a_database_that_stops_is_asked(board, django_assert_num_queries):
    one, _ = link("lobby", "a", "b")
    token = a_screen(one).cookies[screens.COOKIE].value
    screen = WallScreen.objects.get(link=one).pk
    gone = [WallRight(one.pk, name, screen_id=screen) for name in ("a", "b")]
    KNOWN.confirm((), dict.fromkeys(gone, "another process"))
    screens.know_screens()
    reach.failed("It does not answer.")
    try:
        with django_assert_num_queries(0):
            found = [screens.open_screen(token, name).link_id for name in (None, "a", "b")]
    finally:
        reach.answered()
    assert found == [one.pk] * 3


def test_a_code_runs_out_and_a_newer_one_replaces_it(board):
    one, _ = link()
    old, code = code_of(one), code_of(one)
    assert typed(old).status_code == 422
    WallScreen.objects.update(code_ends_at=timezone.now())
    assert typed(code).status_code == 422
    assert typed(code_of(one)).status_code == 302


def test_a_link_that_has_ended_gives_no_code_and_opens_no_screen(board, admin):
    one, _ = link()
    code, browser = code_of(one), a_screen(link("other", "a")[0])
    links.revoke(one.pk, now=timezone.now())
    assert typed(code).status_code == 422
    assert admin.post(f"/wall-links/{one.pk}/code/")["Location"] == "/wall-links/"
    assert browser.get(WALL).status_code == 200, "the screen of another link"
    WallLink.objects.update(expires_at=timezone.now())
    assert browser.get(WALL)["Location"] == "/wall/"
    answer = browser.get("/wall/")
    assert answer.status_code == 403
    assert "This wall link ended at" in answer.content.decode()


def test_the_database_holds_neither_the_code_nor_the_secret_of_the_cookie(board):
    one, _ = link()
    code = code_of(one)
    token = screens.redeem(code, timezone.now())[1]
    kept = repr(list(WallScreen.objects.values()))
    assert code not in kept
    assert token not in kept
    assert screens.digest_of(code) not in kept, "a plain digest of a short code is soon found"


def test_wrong_codes_are_slowed_down_and_other_addresses_are_not(board):
    one, _ = link()
    wrong = [typed("AAAA AAAA", address="192.0.2.1") for _ in range(MAX_FAILURES)]
    assert {answer.status_code for answer in wrong} == {422}
    code = code_of(one)
    refused = typed(code, address="192.0.2.1")
    assert refused.status_code == 429
    assert 0 < int(refused["Retry-After"]) <= COOL_OFF.total_seconds()
    assert typed(code, address="192.0.2.2").status_code == 302
    AccessAttempt.objects.update(attempt_time=F("attempt_time") - COOL_OFF)
    assert typed(code_of(one), address="192.0.2.1").status_code == 302
    assert AccessAttempt.objects.get(ip_address="192.0.2.1").failures_since_start == 0


def test_tries_at_once_count_before_they_are_known_to_be_wrong():
    """As in many processes: each try begins while those of before are still being looked up."""
    begun: list[int] = []

    def guess() -> None:
        begun.append(1)
        try_code("192.0.2.1", guess)

    with pytest.raises(TooManyCodes):
        try_code("192.0.2.1", guess)
    assert len(begun) == MAX_FAILURES


def test_the_security_log_says_who_made_a_code_and_which_screens_came(board, admin):
    one, _ = link()
    admin.post(f"/wall-links/{one.pk}/code/")
    typed("AAAA AAAA")
    a_screen(one)
    kept = SecurityRecord.objects.filter(event__startswith="screen").order_by("pk")
    assert list(kept.values_list("event", "who", "about", "outcome")) == [
        ("screen_code_created", "ada", "wall link lobby of a", "ok"),
        ("screen_refused", "a screen", "", "wrong code"),
        ("screen_opened", "a screen", "wall link lobby", "ok"),
    ]


def knocking(browser: Client, path: str) -> Socket:
    cookie = f"{screens.COOKIE}={browser.cookies[screens.COOKIE].value}".encode()
    headers = [(b"host", b"testserver"), (b"cookie", cookie)]
    return Socket(ROUTER, path, AnonymousUser(), headers)


@pytest.mark.django_db(transaction=True)
async def test_a_screen_s_socket_is_a_wall_s_and_ends_with_the_link(board):
    fill(board.clusters["a"].store, a_lease())
    one, _ = await sync_to_async(link)()
    browser = await sync_to_async(a_screen)(one)
    for path in (
        "/live/fleet/?screen=1",
        "/c/a/live/page/",
        "/c/b/live/page/?screen=1",
        "/c/a/live/changes/?screen=1",
    ):
        closed = knocking(browser, path)
        await closed.connect()
        assert (await closed.receive_output())["code"] == 4403, path
    wall = knocking(browser, "/c/a/live/page/?screen=1")
    await wall.connect()
    await wall.say(f'{{"show": {{"tile": ["{KEY}"], "row": ["{KEY}"]}}}}')
    assert set((await wall.hear())["html"]) == {"tile"}
    now = timezone.now()
    await sync_to_async(WallLink.objects.update)(expires_at=now - timedelta(seconds=1))
    await board.rights.check()
    message = await wall.receive_output()
    assert (message["code"], message["reason"][:20]) == (4403, "This wall link ended")


@pytest.mark.django_db(transaction=True)
async def test_an_admin_ends_one_screen_and_the_other_stays(board, admin):
    fill(board.clusters["a"].store, a_lease())
    one, _ = await sync_to_async(link)()
    browsers = [await sync_to_async(a_screen)(one) for _ in range(2)]
    walls = [knocking(browser, "/c/a/live/page/?screen=1") for browser in browsers]
    for wall in walls:
        await wall.connect()
        await wall.say('{"show": {}}')
        await wall.hear()
    ended, stays = await sync_to_async(list)(WallScreen.objects.order_by("pk"))
    page = await sync_to_async(admin.get)(f"/wall-links/{one.pk}/screens/")
    for said in (f"Screen {ended.pk}", f"Screen {stays.pk}", "127.0.0.1"):
        assert said in page.content.decode()
    answer = await sync_to_async(admin.post)(f"/wall-links/screens/{ended.pk}/revoke/")
    assert answer["Location"] == f"/wall-links/{one.pk}/screens/"
    await board.rights.check()
    while (message := await walls[0].receive_output())["type"] != "websocket.close":
        pass
    assert (message["code"], message["reason"]) == (4403, screens.ENDED)
    await walls[1].say('{"show": {}}')
    assert "shown" in await walls[1].hear()
    await walls[1].leave()
    there = [(await sync_to_async(one.get)(WALL)).status_code for one in browsers]
    assert there == [302, 200]
    asked = await sync_to_async(browsers[0].get)("/wall/")
    assert screens.NO_SCREEN in asked.content.decode()
    kept = await sync_to_async(SecurityRecord.objects.get)(event="screen_revoked")
    assert (kept.who, kept.about) == ("ada", f"screen {ended.pk} of wall link lobby")
    again = await sync_to_async(admin.post)(f"/wall-links/screens/{ended.pk}/revoke/")
    assert again["Location"] == "/wall-links/"
    assert await sync_to_async(SecurityRecord.objects.filter(event="screen_revoked").count)() == 1


def test_a_screen_is_seen_while_it_shows_its_wall(board):
    one, _ = link()
    browsers = [a_screen(one) for _ in range(2)]
    long_ago = timezone.now() - timedelta(days=3)
    WallScreen.objects.update(last_seen_at=long_ago)
    board.link_use._used.clear()
    browsers[1].get(WALL)
    use = LinkUse(_at_once, lambda: board.link_use._used)
    async_to_sync(use.write)()
    first, second = WallScreen.objects.order_by("pk").values_list("last_seen_at", flat=True)
    assert first == long_ago
    assert timezone.now() - second < timedelta(minutes=1)


async def _at_once(write):
    return await sync_to_async(write)()
