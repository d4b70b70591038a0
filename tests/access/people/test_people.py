"""The role admin manages people without `is_staff`, and nobody makes anybody more than he is."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from leases.models import SecurityRecord
from tests.support.board import browser_of, member

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("board")]

PASSWORD = "a-long-one-of-20-signs"
BEYOND = ("auth.delete_user", "auth.change_group", "leases.delete_walllink")


def permission(name: str) -> Permission:
    app, codename = name.split(".")
    return Permission.objects.get(content_type__app_label=app, codename=codename)


@pytest.fixture
def ada(db) -> User:
    user = member("ada", "admin")
    assert not user.is_staff
    return user


@pytest.fixture
def browser(ada) -> Client:
    return browser_of(ada)


@pytest.fixture
def root(db) -> User:
    user = User.objects.create_superuser("root", password=PASSWORD)
    assert user.is_staff
    return user


@pytest.fixture
def stronger(db) -> User:
    """Somebody who may do one thing that the role admin may not."""
    user = member("sara", "admin")
    user.user_permissions.add(permission(BEYOND[0]))
    return user


def page(user: User, more: str = "change") -> str:
    return f"/admin/auth/user/{user.pk}/{more}/"


def form(user: User, **changed: object) -> dict[str, object]:
    """What the form of an account sends; every field that there could be."""
    return {
        "username": user.username,
        "first_name": user.first_name,
        "last_name": user.last_name,
        "email": user.email,
        "is_active": "on",
        "groups": list(user.groups.values_list("pk", flat=True)),
        "user_permissions": list(user.user_permissions.values_list("pk", flat=True)),
        "date_joined_0": "2026-11-20",
        "date_joined_1": "03:12:40",
        **changed,
    }


def state(user: User) -> tuple[object, ...]:
    """All that somebody could become."""
    fresh = User.objects.get(pk=user.pk)
    return (
        fresh.username, fresh.password, fresh.is_active, fresh.is_staff, fresh.is_superuser,
        sorted(fresh.groups.values_list("name", flat=True)),
        sorted(fresh.user_permissions.values_list("codename", flat=True)),
    )  # fmt: skip


def test_the_role_admin_makes_somebody_and_gives_a_role(browser):
    assert 'rel="icon"' in browser.get("/admin/").content.decode()  # else /favicon.ico is wanted
    for path in ("/admin/", "/admin/auth/user/", "/admin/auth/user/add/"):
        assert browser.get(path).status_code == 200
    new = {"username": "olga", "password1": PASSWORD, "password2": PASSWORD}
    operator = Group.objects.get(name="operator")
    new |= {"usable_password": "true", "role": operator.pk}
    assert browser.post("/admin/auth/user/add/", new).status_code == 302
    olga = User.objects.get(username="olga")
    assert list(olga.groups.all()) == [operator]
    assert olga.has_perm("leases.view_change")
    admins = Group.objects.get(name="admin")
    assert browser.post(page(olga), form(olga, groups=[admins.pk])).status_code == 302
    assert User.objects.get(pk=olga.pk).has_perm("leases.edit_lease")
    assert browser.post(page(olga), form(olga, is_active="")).status_code == 302
    assert not User.objects.get(pk=olga.pk).is_active
    by_password = {"password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}
    assert browser.post(f"/admin/auth/user/{olga.pk}/password/", by_password).status_code == 302
    kept = SecurityRecord.objects.exclude(event="sign_in").order_by("pk")
    assert [(one.event, one.about) for one in kept] == [
        ("role_changed", "olga: added; roles: operator"),
        ("role_changed", "olga: changed Groups, Date joined; roles: admin"),
        ("deactivated", "olga: changed Active, Date joined; roles: admin"),
        ("password_changed", "olga: changed password; roles: admin"),
    ]


def test_making_somebody_asks_for_a_role(browser):
    new = {"username": "olga", "password1": PASSWORD, "password2": PASSWORD}
    new |= {"usable_password": "true"}
    for role in ("", "999", "x"):
        answer = browser.post("/admin/auth/user/add/", new | {"role": role})
        assert answer.status_code == 200
        text = answer.content.decode()
        assert ("Choose a role: without one" in text) == (role == "")
        assert ("This is no role that you can give" in text) == (role != "")
    assert not User.objects.filter(username="olga").exists()


def test_a_role_that_may_do_more_is_neither_offered_nor_taken(browser):
    beyond = Group.objects.create(name="beyond")
    beyond.permissions.add(permission(BEYOND[0]))
    assert "beyond" not in browser.get("/admin/auth/user/add/").content.decode()
    new = {"username": "olga", "password1": PASSWORD, "password2": PASSWORD}
    new |= {"usable_password": "true", "role": beyond.pk}
    assert browser.post("/admin/auth/user/add/", new).status_code == 200
    assert not User.objects.filter(username="olga").exists()


def test_the_account_menu_leads_there(browser, operator):
    assert b'href="/admin/"' in browser.get("/wall-links/").content
    assert b'href="/admin/"' not in operator.get("/audit/").content


@pytest.mark.parametrize("path", ["/admin/", "/admin/auth/user/", "/admin/auth/user/add/"])
def test_others_do_not_get_in(operator, path):
    answer = operator.get(path, follow=True)
    assert answer.status_code == 403
    assert "may not manage people" in answer.content.decode()
    stranger = Client().get(path, follow=True)
    assert stranger.redirect_chain[-1][0].startswith("/sign-in/?next=/admin/")


def test_a_stranger_finds_no_second_form_for_passwords():
    User.objects.create_superuser("root", password=PASSWORD)
    tried = {"username": "root", "password": PASSWORD, "next": "/admin/"}
    browser = Client()
    assert browser.post("/admin/login/", tried).status_code == 302
    assert settings.SESSION_COOKIE_NAME not in browser.cookies


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("/admin/login/", "/admin/"),
        ("/admin/login/?next=/admin/auth/user/", "/admin/auth/user/"),
        ("/admin/auth/group/", "/admin/auth/group/"),
    ],
)
def test_a_stranger_is_led_to_the_one_sign_in_and_back(path, there):
    answer = Client().get(path, follow=True)
    assert answer.redirect_chain[-1][0] == f"/sign-in/?next={there}"


def test_an_admin_is_led_past_the_sign_in(browser):
    answer = browser.get("/admin/login/?next=/admin/auth/user/")
    assert (answer.status_code, answer.url) == (302, "/admin/")


@pytest.mark.parametrize(
    "changed",
    [
        {"is_superuser": "on"},
        {"is_staff": "on"},
        {"is_superuser": "on", "is_staff": "on"},
        {"password": "pbkdf2_sha256$1$x$y"},
    ],
)
@pytest.mark.parametrize("whom", ["himself", "another"])
def test_fields_that_make_somebody_more_are_not_taken(browser, ada, changed, whom):
    target = ada if whom == "himself" else member("olga", "operator")
    before = state(target)
    browser.post(page(target), form(target, **changed))
    assert state(target) == before


@pytest.mark.parametrize("name", BEYOND)
@pytest.mark.parametrize("whom", ["himself", "another"])
def test_a_permission_that_one_lacks_cannot_be_given(browser, ada, name, whom):
    target = ada if whom == "himself" else member("olga", "operator")
    before = state(target)
    answer = browser.post(page(target), form(target, user_permissions=[permission(name).pk]))
    assert answer.status_code == 200
    assert b"is not one of the available choices" in answer.content
    assert state(target) == before


@pytest.mark.parametrize("whom", ["himself", "another"])
def test_a_group_that_may_do_more_cannot_be_given(browser, ada, whom):
    target = ada if whom == "himself" else member("olga", "operator")
    strong = Group.objects.create(name="strong")
    strong.permissions.add(permission(BEYOND[0]))
    before = state(target)
    answer = browser.post(page(target), form(target, groups=[strong.pk]))
    assert b"is not one of the available choices" in answer.content
    assert state(target) == before


@pytest.mark.parametrize("how", ["delete it", "delete several", "delete the group", "empty it"])
def test_nothing_in_the_admin_site_takes_the_last_admin(how):
    group = Group.objects.get(name="admin")
    user = member("ada", "admin")
    names = ("auth.delete_user", "auth.view_group", "auth.change_group", "auth.delete_group")
    user.user_permissions.add(*map(permission, names))
    users, groups = "/admin/auth/user/", "/admin/auth/group/"
    url, sent = {
        "delete it": (f"{users}{user.pk}/delete/", {"post": "yes"}),
        "delete several": (
            users, {"action": "delete_selected", "_selected_action": [user.pk], "post": "yes"}
        ),
        "delete the group": (f"{groups}{group.pk}/delete/", {"post": "yes"}),
        "empty it": (f"{groups}{group.pk}/change/", {"name": "admin"}),
    }[how]  # fmt: skip
    browser = browser_of(user)
    answer = browser.post(url, sent)
    assert (answer.status_code, b"make somebody else an admin" in answer.content) == (403, True)
    assert browser.get("/people/").status_code == 200
    member("eve", "admin").user_permissions.add(permission("auth.change_user"))
    assert browser.post(url, sent).status_code == 302


@pytest.mark.parametrize("whom", ["root", "stronger", "staff", "deactivated superuser"])
def test_an_account_that_may_do_more_cannot_be_touched(browser, ada, root, stronger, whom):
    target = {"root": root, "stronger": stronger}.get(whom) or member("stefan", "operator")
    if whom == "staff":
        User.objects.filter(pk=target.pk).update(is_staff=True)
    if whom == "deactivated superuser":
        User.objects.filter(pk=target.pk).update(is_superuser=True, is_active=False)
    before = state(target)
    new = {"password1": "x" + PASSWORD, "password2": "x" + PASSWORD, "usable_password": "true"}
    for path, fields in (
        (page(target), form(target, username="mine", email="mine@example.com")),
        (page(target), form(target, is_active="")),
        (page(target, "password"), new),
        (page(target, "password"), {"usable_password": "false", "unset-password": "x"}),
        (page(target, "delete"), {"post": "yes"}),
        ("/admin/auth/user/", {"action": "delete_selected", "_selected_action": [target.pk],
                               "post": "yes"}),
    ):  # fmt: skip
        refused = 200 if path == "/admin/auth/user/" else 403  # the list offers no such action
        assert browser.post(path, fields).status_code == refused, path
        assert state(target) == before, path
    assert browser.get(page(target, "password")).status_code == 403


def test_a_deactivated_account_that_may_do_more_cannot_be_taken_over(browser, stronger):
    User.objects.filter(pk=stronger.pk).update(is_active=False)
    before = state(stronger)
    new = {"password1": "x" + PASSWORD, "password2": "x" + PASSWORD, "usable_password": "true"}
    assert browser.post(page(stronger, "password"), new).status_code == 403
    assert browser.post(page(stronger), form(stronger)).status_code == 403
    assert state(stronger) == before


def test_a_new_account_is_no_more_than_its_fields_say(browser):
    new = {
        "username": "mallory", "password1": PASSWORD, "password2": PASSWORD,
        "usable_password": "true", "is_superuser": "on", "is_staff": "on",
        "role": Group.objects.get(name="operator").pk,
        "user_permissions": [permission(BEYOND[0]).pk],
    }  # fmt: skip
    browser.post("/admin/auth/user/add/", new)
    made = User.objects.get(username="mallory")
    assert (made.is_superuser, made.is_staff) == (False, False)
    assert not made.user_permissions.exists()


def test_the_right_to_delete_people_spares_those_who_may_do_more(ada, root, stronger):
    ada.user_permissions.add(permission("auth.delete_user"))
    browser = browser_of(User.objects.get(pk=ada.pk))
    weak = member("olga", "operator")
    many = {"action": "delete_selected", "_selected_action": [root.pk, weak.pk], "post": "yes"}
    assert browser.post("/admin/auth/user/", many).status_code == 403
    assert browser.post(page(root, "delete"), {"post": "yes"}).status_code == 403
    assert browser.post(page(weak, "delete"), {"post": "yes"}).status_code == 302
    assert SecurityRecord.objects.filter(about=f"{weak}: deleted").exists()
    assert set(User.objects.values_list("username", flat=True)) == {"ada", "root", "sara"}


def test_the_right_to_edit_groups_gives_no_more_than_ones_own_rights(ada):
    for name in ("auth.view_group", "auth.change_group", "auth.add_group"):
        ada.user_permissions.add(permission(name))
    browser = browser_of(User.objects.get(pk=ada.pk))
    own, strong = Group.objects.get(name="admin"), Group.objects.create(name="strong")
    strong.permissions.add(permission("auth.delete_user"))
    more = [permission("auth.delete_user").pk]
    for group, status in ((own, 200), (strong, 403)):
        before = set(group.permissions.values_list("pk", flat=True))
        path = f"/admin/auth/group/{group.pk}/change/"
        answer = browser.post(path, {"name": group.name, "permissions": more})
        assert answer.status_code == status
        assert set(group.permissions.values_list("pk", flat=True)) == before
    added = browser.post("/admin/auth/group/add/", {"name": "new", "permissions": more})
    assert added.status_code == 200
    assert not Group.objects.filter(name="new").exists()


def test_a_superuser_may_manage_everybody(root, ada):
    browser = browser_of(root)
    fields = form(ada, is_superuser="on", is_staff="on")
    assert browser.post(page(ada), fields).status_code == 302
    assert User.objects.get(pk=ada.pk).is_superuser
