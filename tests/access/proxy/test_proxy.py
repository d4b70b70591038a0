"""Sign-in by the header of an authenticating proxy: who may name a user, and what the user may."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User

from leases.models import Person, SecurityRecord
from tests.support.board import member
from tests.support.proxy_visitor import NAMED, PROXY, STRANGER, ProxyBrowser, set_proxy

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("board")]
PAGE = "/audit/"


@pytest.fixture(autouse=True)
def _proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    set_proxy(monkeypatch)


def log(event: str) -> list[tuple[str, str]]:
    return list(SecurityRecord.objects.filter(event=event).values_list("who", "address"))


def roles() -> set[str]:
    return set(Group.objects.filter(user__username="pia").values_list("name", flat=True))


def test_the_proxy_signs_in_whom_it_names_and_makes_the_account_once():
    browser = ProxyBrowser(client="198.51.100.9")
    for _ in range(2):
        assert browser.get(PAGE).status_code == 200
    pia = User.objects.get()
    assert (pia.username, pia.has_usable_password(), pia.person.by_proxy) == ("pia", False, True)
    assert roles() == {"operator"}
    assert log("sign_in") == [("pia", "198.51.100.9")]
    assert settings.SESSION_COOKIE_NAME not in browser.cookies
    assert b"The proxy signed you in" in browser.get(PAGE).content


@pytest.mark.parametrize(
    ("peer", "client", "more"),
    [
        (STRANGER, "", {}),
        (STRANGER, PROXY, {"X-Forwarded-For": PROXY}),  # uvicorn believes X-Forwarded-For
        ("", PROXY, {}),  # another server does not tell the address of the connection
        ("127.0.0.1", PROXY, {"X-Forwarded-For": PROXY}),
    ],
)
@pytest.mark.parametrize("header", NAMED)
def test_others_who_name_a_user_are_refused_and_recorded_once(header, peer, client, more):
    browser = ProxyBrowser({header: NAMED[header], **more}, peer=peer, client=client)
    for _ in range(2):
        answer = browser.get(PAGE)
        assert answer.status_code == 403
        assert f"{header} is refused from your address" in answer.content.decode()
    assert not User.objects.exists()
    assert log("proxy_refused") == [("", peer)]


def test_a_proxy_that_names_nobody_brings_a_stranger():
    for headers in ({}, {"X-Forwarded-User": " "}, {"X-Forwarded-Groups": "deciders"}):
        assert ProxyBrowser(headers).get(PAGE).url == f"/sign-in/?next={PAGE}"


def test_without_the_setting_the_headers_say_nothing(monkeypatch):
    set_proxy(monkeypatch, proxy_addresses=())
    for peer in (PROXY, STRANGER):
        assert ProxyBrowser(peer=peer).get(PAGE).url == f"/sign-in/?next={PAGE}"
    assert not User.objects.exists()


def test_an_ipv6_socket_sees_the_proxys_ipv4_address():
    assert ProxyBrowser(peer=f"::ffff:{PROXY}").get(PAGE).status_code == 200


@pytest.mark.parametrize("name", ["x" * 151, "pi\x00a", "\xff"])
def test_a_name_that_no_account_can_have_is_refused(name):
    answer = ProxyBrowser({"X-Forwarded-User": name}).get(PAGE)
    assert (answer.status_code, User.objects.count()) == (403, 0)


@pytest.mark.parametrize("name", ["\uff41lice", "alic\u0065\u0301", "\ufb01nn", "\ufdfa" * 150])
def test_a_name_that_would_become_another_one_is_refused(name):
    headers = {"X-Forwarded-User": name.encode().decode("latin-1")}
    answer = ProxyBrowser(headers).get(PAGE)
    assert (answer.status_code, User.objects.count()) == (403, 0)
    assert "normal form NFKC" in answer.content.decode()


def test_two_users_in_one_request_are_refused():
    browser = ProxyBrowser({**NAMED, "x-forwarded-user": "ada"})
    answer = browser.get(PAGE)
    assert answer.status_code == 403
    assert b"more than one user" in answer.content
    assert log("proxy_refused") == [("", PROXY)]


def test_groups_give_and_take_the_role_with_the_next_request():
    for groups, role, status in (
        ("watchers", {"operator"}, 200),
        ("deciders,watchers", {"admin"}, 200),
        ("others", set(), 403),
    ):
        browser = ProxyBrowser({"X-Forwarded-User": "pia", "X-Forwarded-Groups": groups})
        assert browser.get(PAGE).status_code == status
        assert roles() == role
    changes = SecurityRecord.objects.filter(event="role_changed").values_list("about", flat=True)
    assert [one.partition(",")[0] for one in changes.order_by("pk")] == [
        "no role to operator", "operator to admin", "admin to no role",
    ]  # fmt: skip


def test_without_roles_in_the_settings_admins_give_them(monkeypatch):
    set_proxy(monkeypatch, proxy_roles=())
    assert ProxyBrowser().get(PAGE).status_code == 403
    User.objects.get().groups.add(Group.objects.get(name="operator"))
    assert ProxyBrowser().get(PAGE).status_code == 200


def test_a_local_account_is_signed_in_once_an_admin_opens_it_for_the_proxy():
    pia = member("pia", "operator")
    answer = ProxyBrowser().get(PAGE)
    assert answer.status_code == 403
    assert b"was not made by the proxy" in answer.content
    assert log("proxy_refused") == [("pia", PROXY)]
    Person.objects.create(user=pia, by_proxy=True)
    assert ProxyBrowser().get(PAGE).status_code == 200


def test_a_deactivated_account_is_refused():
    ProxyBrowser().get(PAGE)
    User.objects.update(is_active=False)
    answer = ProxyBrowser().get(PAGE)
    assert answer.status_code == 403
    assert b"was deactivated" in answer.content


def test_the_proxys_user_counts_and_not_the_session_of_a_cookie():
    browser = ProxyBrowser()
    browser.force_login(member("ada", "admin"))
    assert b"Signed in as <b>pia</b>" in browser.get(PAGE).content
    assert browser.get(PAGE, HTTP_AUTHORIZATION="Bearer of-the-proxy").status_code == 200
    spoofing = ProxyBrowser(peer=STRANGER)
    spoofing.cookies = browser.cookies
    answer = spoofing.get(PAGE)
    assert answer.status_code == 403
    assert b"ada" not in answer.content
