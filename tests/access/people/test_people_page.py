"""The people page: an admin adds people, gives roles, resets passwords, and ends sessions."""

from __future__ import annotations

import re

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group, Permission, User
from django.contrib.sessions.models import Session
from django.test import Client

from dashboard import clock
from dashboard.access import rights, sign_in_links
from dashboard.access.links import SEEN
from dashboard.access.rights import UserRight
from leases.models import Person, SecurityRecord, SignInLink
from tests.support.board import browser_of, member
from tests.support.proxy_visitor import ProxyBrowser, set_proxy

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("board")]
PASSWORD = "a-long-one-of-20-signs"


@pytest.fixture
def ada() -> User:
    return member("ada", "admin")


@pytest.fixture
def browser(ada: User) -> Client:
    return browser_of(ada)


def act(browser: Client, user: User, action: str, **more: str):
    return browser.post(f"/people/{user.pk}/", {"action": action} | more)


def role_of(user: User) -> list[str]:
    return list(user.groups.values_list("name", flat=True))


def log(event: str) -> list[tuple[str, str]]:
    return list(
        SecurityRecord.objects.filter(event=event).order_by("pk").values_list("who", "about")
    )


def pressed(answer) -> Client:
    """A new browser that has used the link of this answer."""
    link = re.search(r'value="http://testserver(/sign-in/[^"]+)"', answer.content.decode())
    assert link is not None
    visitor = Client(headers={"User-Agent": "Mozilla/5.0 Gecko/20100101 Firefox/140.0"})
    assert b"Sign in as" in visitor.get(link[1]).content
    token = link[1].rstrip("/").rpartition("/")[2]
    assert visitor.post("/sign-in/link/", {"token": token}).url == "/account/password/"
    return visitor


def test_somebody_new_signs_in_by_the_link_and_chooses_a_password(browser):
    answer = browser.post("/people/", {"username": "olga", "role": "operator"})
    assert (answer.status_code, role_of(User.objects.get(username="olga"))) == (200, ["operator"])
    visitor = pressed(answer)
    fields = {"new_password1": PASSWORD, "new_password2": PASSWORD}
    bad = visitor.post("/account/password/", fields | {"new_password2": "other"})
    assert (bad.status_code, b"match" in bad.content) == (400, True)
    assert visitor.post("/account/password/", fields).url == "/"
    assert visitor.get("/audit/").status_code == 200
    assert User.objects.get(username="olga").check_password(PASSWORD)
    assert log("role_changed") == [("ada", "olga: added as operator")]
    assert log("password_changed") == [("olga", "")]


def test_a_password_is_changed_by_who_knows_the_old_one():
    ada = User.objects.create_superuser("root", password=PASSWORD)
    browser = browser_of(ada)
    new = {"new_password1": f"{PASSWORD}2", "new_password2": f"{PASSWORD}2"}
    token = sign_in_links.create(ada, now=clock.now())
    assert browser.post("/account/password/", {"old_password": "x"} | new).status_code == 400
    assert browser.post("/account/password/", {"old_password": PASSWORD} | new).status_code == 302
    assert browser.get("/people/").status_code == 200  # still signed in
    with pytest.raises(sign_in_links.LinkError):  # whoever had an old link cannot use it after that
        sign_in_links.find_user(token, now=clock.now())


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"username": "", "role": "operator"}, "Write the name"),
        ({"username": "a b", "role": "operator"}, "Enter a valid username"),
        ({"username": "ADA", "role": "operator"}, "There is a person of this name"),
        ({"username": "new", "role": ""}, "Choose a role"),
        ({"username": "new", "role": "owner"}, "This is no role"),
    ],
)
def test_a_wrong_field_is_one_sentence_and_makes_nobody(browser, fields, says):
    answer = browser.post("/people/", fields)
    assert (answer.status_code, says in answer.content.decode()) == (422, True)
    assert User.objects.count() == 1


def test_a_role_is_given_and_other_groups_stay(browser):
    olga = member("olga", "operator")
    olga.groups.add(Group.objects.create(name="night shift"))
    for role, had in (("admin", "operator to admin"), ("", "admin to no role")):
        assert act(browser, olga, "role", role=role).status_code == 302
        assert set(role_of(olga)) == {"night shift", role} - {""}
        assert log("role_changed")[-1] == ("ada", f"olga: {had}")
    assert act(browser, olga, "role", role="owner").status_code == 400


@pytest.mark.parametrize("action", ["deactivate", "role"])
def test_the_last_admin_stays(browser, ada, action):
    more = {"role": "operator"} if action == "role" else {}
    answer = act(browser, ada, action, **more)
    assert (answer.status_code, b"make somebody else an admin" in answer.content) == (400, True)
    ada.refresh_from_db()
    assert (ada.is_active, role_of(ada)) == (True, ["admin"])
    fields = {"username": "ada", "groups": [], "is_active": "" if action == "deactivate" else "on"}
    fields |= {"date_joined_0": "2026-11-20", "date_joined_1": "12:00:00"}
    assert browser.post(f"/admin/auth/user/{ada.pk}/change/", fields).status_code == 403
    ada.refresh_from_db()
    assert (ada.is_active, role_of(ada)) == (True, ["admin"])
    inactive = member("ina", "admin")
    User.objects.filter(pk=inactive.pk).update(is_active=False)
    assert act(browser, ada, action, **more).status_code == 400
    member("eva", "admin")
    assert act(browser, ada, action, **more).status_code == 302


@pytest.mark.django_db(transaction=True)  # rights are looked at in another thread
def test_deactivation_ends_sessions_links_and_open_sockets(board, browser):
    olga = member("olga", "operator")
    act(browser, olga, "reset")
    olga.refresh_from_db()
    hers = browser_of(olga)
    said: list[str] = []
    board.rights.add(UserRight(olga.pk, None), said.append)
    assert act(browser, olga, "deactivate").status_code == 302
    async_to_sync(board.rights.check)()
    board.rights.close()
    assert said == [rights.DEACTIVATED]
    assert not SignInLink.objects.filter(user=olga).exists()
    assert log("deactivated") == [("ada", "olga")]
    assert act(browser, olga, "activate").status_code == 302
    assert hers.get("/audit/").status_code == 302  # its session does not come back


def test_deactivation_under_admin_ends_sessions_and_links_too(browser):
    olga = member("olga", "operator")
    act(browser, olga, "reset")
    olga.refresh_from_db()
    hers = browser_of(olga)
    fields = {"username": "olga", "groups": [group.pk for group in olga.groups.all()]}
    fields |= {"date_joined_0": "2026-11-20", "date_joined_1": "12:00:00"}
    assert browser.post(f"/admin/auth/user/{olga.pk}/change/", fields).status_code == 302
    assert not SignInLink.objects.filter(user=olga).exists()
    assert act(browser, olga, "activate").status_code == 302
    assert hers.get("/audit/").status_code == 302  # its session does not come back


def test_a_reset_ends_sessions_and_the_link_leads_to_a_new_password(browser):
    olga = member("olga", "operator")
    olga.set_password(PASSWORD)
    olga.save()
    hers = browser_of(olga)
    answer = act(browser, olga, "reset")
    assert b"No session is open" in answer.content
    assert hers.get("/audit/").status_code == 302
    assert not User.objects.get(pk=olga.pk).has_usable_password()
    assert ("ada", "olga: reset") in log("password_changed")
    pressed(answer)


def test_sessions_are_listed_and_ended_one_by_one_or_all(browser):
    olga = member("olga", "operator")
    first = pressed(act(browser, olga, "reset"))
    olga.refresh_from_db()
    second, third = browser_of(olga), browser_of(olga)
    text = browser.get(f"/people/{olga.pk}/").content.decode()
    assert (text.count('name="session"'), "Firefox" in text, "127.0.0.1" in text) == (3, True, True)
    assert not any(key in text for key in Session.objects.values_list("session_key", flat=True))
    ids = re.findall(r'name="session" value="(\w+)"', text)
    act(browser, olga, "end", session=ids[0])
    left = [one.get("/audit/").status_code for one in (first, second, third)]
    assert sorted(left) == [200, 200, 302]
    act(browser, olga, "end")
    assert all(one.get("/audit/").status_code == 302 for one in (first, second, third))
    assert browser.get("/audit/").status_code == 200


def test_who_may_do_more_is_not_managed(browser):
    root = User.objects.create_superuser("root")
    strong = member("sara", "admin")
    strong.user_permissions.add(Permission.objects.get(codename="delete_user"))
    for user in (root, strong):
        page = browser.get(f"/people/{user.pk}/").content
        assert b"may do more than you" in page
        assert b'name="action"' not in page
        for action in ("role", "deactivate", "reset", "end", "proxy"):
            assert act(browser, user, action).status_code == 403
    assert act(browser, member("olga", "operator"), "nonsense").status_code == 400


def test_an_account_is_opened_for_the_proxy_and_its_groups_then_give_the_role(browser, monkeypatch):
    set_proxy(monkeypatch)
    pia = member("pia", "operator")
    assert ProxyBrowser().get("/audit/").status_code == 403
    act(browser, pia, "proxy")
    proxied = ProxyBrowser()
    assert proxied.get("/audit/").status_code == 200
    assert b"The groups that the proxy names" in browser.get(f"/people/{pia.pk}/").content
    assert act(browser, pia, "role", role="admin").status_code == 400
    assert proxied.get("/account/password/").status_code == 403


async def _at_once(write):
    from asgiref.sync import sync_to_async

    return await sync_to_async(write)()


def test_who_was_seen_is_written_with_the_use_of_links(board, browser, ada, monkeypatch):
    SEEN.clear()
    monkeypatch.setattr(board.link_use, "_in_thread", _at_once)
    Client().get("/sign-in/")
    browser.get("/audit/")
    assert {ada.pk} == SEEN
    async_to_sync(board.link_use.write)()
    seen_at = Person.objects.get(user=ada).last_seen_at
    assert abs((clock.now() - seen_at).total_seconds()) < 60
    assert not SEEN
    assert f"{seen_at:%H:%M}" in browser.get("/people/").content.decode()
