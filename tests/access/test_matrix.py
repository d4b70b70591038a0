"""Who may do what: every URL and every socket, for every kind of visitor and every method.

The URLs come from the URL configuration, the sockets from their routing: one that has no rule here
fails. The rules of the URLs are in tests.support.url_rules.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.routing import URLRouter
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from dashboard.access import api_tokens, links, screens
from dashboard.access.api_tokens import PROBES
from dashboard.live.consumers import urlpatterns as sockets
from dashboard.live.socket_guards import own_sites_only
from leases.models import Edit, KindOverride, WallLink
from tests.support.board import a_lease, browser_of, fill, member
from tests.support.communicator import Socket
from tests.support.every_url import every_page
from tests.support.proxy_visitor import STRANGER, ProxyBrowser, set_proxy
from tests.support.url_rules import ADMINS, ALL, ENDED_TOKENS, READERS, RULES, TOKENS, VISITORS

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
TRIED = ("GET", "POST")  # what a view answers beside these, the first who is let in finds
# The site under /admin/ has its own permissions; none of it is open to anybody but admins, except:
OPEN_IN_ADMIN = {"logout": ALL, "jsi18n": ADMINS}
SOCKETS = {
    "c/<slug:cluster>/live/page/": READERS | TOKENS | {"wall"},
    "c/<slug:cluster>/live/changes/": READERS | TOKENS,
    "live/fleet/": READERS | TOKENS,
    "": frozenset[str](),  # closes every other path
}
WRITES = sorted(name for name, rule in RULES.items() if "POST" in rule.methods)
READ_BY_POST_ALONE = {name for name, rule in RULES.items() if "GET" not in rule.methods}
ROUTER = own_sites_only(URLRouter(sockets))


@pytest.fixture
def filled(board, db, monkeypatch):
    set_proxy(monkeypatch)
    for cluster in board.clusters.values():
        fill(cluster.store, a_lease())
    return board


@pytest.fixture
def key(db) -> str:
    made = links.create(name="lobby", clusters=["a"], created_by="ada", now=timezone.now())
    return made[1]


def tokens() -> dict[str, str]:
    """A token of each kind, as the value of the header Authorization."""
    now, day = timezone.now(), timedelta(days=1)
    ina = member("ina", "admin")
    made = {
        name: api_tokens.create(name=name, user=ina, role=role, now=now, expires_at=now + ends)
        for name, role, ends in (
            ("operator token", "operator", day),
            ("admin token", "admin", day),
            ("expired token", "admin", -day),
            ("revoked token", "admin", day),
        )
    }
    api_tokens.revoke(made["revoked token"][0].pk, now=now)
    texts = {name: text for name, (_, text) in made.items()} | {"garbage token": "\xff\x00 ;--"}
    return {name: f"Bearer {text}" for name, text in texts.items()}


def visitors(key: str) -> dict[str, tuple[Client, str]]:
    """Each kind of visitor, with the query of its links."""
    return {
        "stranger": (Client(), ""),
        "wall": (Client(), f"?key={key}"),
        "screen": (a_screen(), "?screen=1"),
        "guest": (browser_of(member("gil", None)), ""),
        "operator": (browser_of(member("olga", "operator")), ""),
        "admin": (browser_of(member("ada", "admin")), ""),
    }


def a_screen() -> Client:
    browser, now = Client(), timezone.now()
    redeemed = screens.redeem(screens.make_code(WallLink.objects.get(name="lobby"), now), now)
    assert redeemed is not None
    browser.cookies[screens.COOKIE] = redeemed[1]
    return browser


def at_the_proxy() -> dict[str, tuple[Client, str]]:
    return {"proxy": (ProxyBrowser(), ""), "spoofed": (ProxyBrowser(peer=STRANGER), "")}


def outcome(answer: Any) -> str:
    if answer.status_code == 401:
        return "no token"
    if answer.status_code == 405:
        return "method"
    if answer.status_code == 403:
        return "refused"
    there = answer.get("Location", "")
    if answer.status_code == 302 and there.startswith(("/sign-in/?next=", "/admin/login/?next=")):
        return "sign in"
    if (
        answer.status_code == 302
        and there == "/wall/"
        and answer.request["REQUEST_METHOD"] == "GET"
    ):
        return "refused"  # a screen is asked for a code
    return "elsewhere" if there == "/" else "in"


def test_every_url_has_a_rule():
    assert {page.name for page in every_page()} == set(RULES)


def test_every_socket_has_a_rule():
    assert {str(one.pattern) for one in sockets} == set(SOCKETS)


@pytest.mark.parametrize("page", every_page(), ids=lambda page: page.name)
def test_a_url_lets_in_whom_its_rule_names_with_its_methods(filled, key, page):
    rule = RULES[page.name]
    first = next(visitor for visitor in VISITORS if visitor in rule.who)
    for visitor, (browser, query) in (visitors(key) | at_the_proxy()).items():
        for method in METHODS if visitor == first else TRIED:
            answer = browser.generic(method, page.path + query)
            found, case = outcome(answer), (visitor, method, answer.status_code)
            if visitor == "spoofed":
                assert found == "refused", case
            elif method not in rule.methods:
                assert found != "in", case
            elif visitor in rule.who:
                assert found in ("in", "elsewhere"), case
            elif visitor in ("stranger", "wall", "screen"):
                assert found in ("sign in", "refused"), case
            else:
                assert found == "refused", case


@pytest.mark.parametrize("page", every_page(), ids=lambda page: page.name)
def test_a_token_reads_where_its_role_reads_and_opens_nothing_once_it_ended(filled, page):
    rule = RULES[page.name]
    for visitor, header in tokens().items():
        browser = Client(headers={"Authorization": header})
        for method in ("GET", "POST"):
            answer = browser.generic(method, page.path)
            found, case = outcome(answer), (visitor, method, answer.status_code)
            if page.path in PROBES:
                assert found == ("in" if method == "GET" else "method"), case
            elif visitor in ENDED_TOKENS:
                assert found == "no token", case
                assert answer["Content-Type"] == "application/problem+json"
            elif method == "GET" and page.name in READ_BY_POST_ALONE:
                assert found == "method", case
            elif method == "GET" and (rule.lets_in_token(visitor) or rule.who == ALL):
                assert found in ("in", "elsewhere"), case
            else:
                assert found == "refused", case


def admin_paths() -> list[tuple[str, str]]:
    (site,) = [
        one
        for one in get_resolver().url_patterns
        if isinstance(one, URLResolver) and one.namespace == "admin"
    ]
    return [(name, "/" + path) for name, path in _walk(site.url_patterns, str(site.pattern))]


def _walk(patterns: list[URLPattern | URLResolver], before: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for one in patterns:
        text = before + str(one.pattern)
        if isinstance(one, URLResolver):
            found += _walk(one.url_patterns, text)
            continue
        plain = re.sub(r"\(\?P<url>\.\*\)\$$|\(\?P<app_label>[^)]*\)/?\$?", "auth/", text)
        path = re.sub(r"<[^>]+>", "1", plain).replace("^", "").replace("$", "")
        found.append((one.name or path, path))
    return found


@pytest.mark.parametrize(("name", "path"), admin_paths(), ids=lambda value: str(value))
def test_the_admin_site_lets_nobody_in_but_admins(filled, key, name, path):
    who = OPEN_IN_ADMIN.get(name, ADMINS)
    for visitor, (browser, query) in visitors(key).items():
        if visitor in who:
            continue
        for method in TRIED:
            answer = browser.generic(method, path + query)
            assert outcome(answer) != "in" or answer.status_code == 404, (visitor, method, answer)
    if who == ADMINS:
        browser = Client(headers={"Authorization": tokens()["admin token"]})
        assert outcome(browser.get(path)) != "in", "no token manages people"


@sync_to_async
def users(key: str) -> dict[str, tuple[Any, str]]:
    by_token = {name: (AnonymousUser(), header) for name, header in tokens().items()}
    return by_token | {
        "stranger": (AnonymousUser(), ""),
        "wall": (AnonymousUser(), f"?key={key}"),
        "guest": (member("gil", None), ""),
        "operator": (member("olga", "operator"), ""),
        "admin": (member("ada", "admin"), ""),
    }


def at_the_door(path: str, user: Any, origin: str) -> Socket:
    path, bearer, token = path.partition("Bearer ")
    headers = [(b"host", b"testserver"), (b"origin", origin.encode())]
    if bearer:
        headers.append((b"authorization", f"{bearer}{token}".encode("latin-1")))
    return Socket(ROUTER, path, user, headers)


async def closed_with(socket: Socket) -> int:
    await socket.connect()
    message = await socket.receive_output(timeout=60)
    assert message["type"] == "websocket.close"
    return int(message["code"])


async def opens(socket: Socket) -> bool:
    """Whether it stays open: it says nothing yet, or its first frame."""
    await socket.connect()
    quiet = await socket.receive_nothing(timeout=0.5)
    first = None if quiet else (await socket.receive_output())["type"]
    await socket.leave()
    return first != "websocket.close"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("pattern", SOCKETS)
async def test_a_socket_opens_for_whom_its_rule_names_from_its_own_site(board, pattern):
    fill(board.clusters["a"].store, a_lease())
    _, key = await sync_to_async(links.create)(
        name="lobby", clusters=["a"], created_by="ada", now=timezone.now()
    )
    path = "/" + pattern.replace("<slug:cluster>", "a")
    for visitor, (user, query) in (await users(key)).items():
        there = path + query
        if visitor in SOCKETS[pattern]:
            assert await opens(at_the_door(there, user, "http://testserver")), visitor
        else:
            code = await closed_with(at_the_door(there, user, "http://testserver"))
            assert code == (4403 if pattern else 4404), visitor
        assert await closed_with(at_the_door(there, user, "https://evil.example")) == 4403


@pytest.mark.parametrize("name", WRITES)
def test_a_forged_token_and_a_foreign_origin_write_nothing(filled, key, name):
    path = next(page.path for page in every_page() if page.name == name)
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(member("ada", "admin"))
    before = counted()
    secret, other = "a" * 32, "b" * 32
    fields = {"csrfmiddlewaretoken": secret, "confirm": "yes", "reason": "x"}
    browser.cookies[settings.CSRF_COOKIE_NAME] = secret
    for forged, more in (
        ({"csrfmiddlewaretoken": other}, {}),
        ({"csrfmiddlewaretoken": ""}, {}),
        ({}, {"HTTP_ORIGIN": "https://evil.example"}),
        ({}, {"HTTP_ORIGIN": "null"}),
    ):
        answer = browser.post(path, fields | forged, **more)
        assert answer.status_code == 403, (forged, more)
        assert "CSRF" in answer.content.decode(), (forged, more)
        assert counted() == before
    answer = browser.post(path, fields, HTTP_ORIGIN="http://testserver")
    assert "CSRF" not in answer.content.decode()  # else this test would show nothing


def counted() -> tuple[int, int, int, int]:
    revoked = WallLink.objects.filter(revoked_at__isnull=False).count()
    tables = (Edit, KindOverride, WallLink)
    edits, kinds, walls = (table.objects.count() for table in tables)
    return edits, kinds, walls, revoked
