"""A right that ends in this process ends on open sockets at once, without waiting for the timer."""

from __future__ import annotations

import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from dashboard.access import api_tokens, ended_rights, rights
from leases.models import ApiToken, WallLink
from tests.support.processes import Server, ended
from tests.support.programs import people
from tests.support.programs.open_sockets import FEED, PAGE, House, closing_of
from tests.support.signing_in import Opener, cookie_keeper, form_of, press_button, with_token

WITHOUT_TIMER = ("-m", "tests.access.rights.serve_without_timer")


@pytest.fixture
def reported() -> Iterator[list[int]]:
    calls: list[int] = []
    ended_rights.connect(lambda: calls.append(1))
    yield calls
    ended_rights.disconnect()


def deactivate(user: User, group: Group) -> None:
    user.is_active = False
    user.save()


def change_password(user: User, group: Group) -> None:
    user.set_password("another-long-one")
    user.save(update_fields=["password"])


def first(model: type[Session | WallLink | ApiToken]) -> Session | WallLink | ApiToken:
    one = model.objects.first()
    assert one is not None
    return one


CHANGES: dict[str, Callable[..., object]] = {
    "deactivated": deactivate,
    "password changed": change_password,
    "deleted": lambda user, **_: user.delete(),
    "left the group": lambda user, group: user.groups.remove(group),
    "group emptied": lambda group, **_: group.user_set.clear(),
    "group deleted": lambda group, **_: group.delete(),
    "group lost a permission": lambda group, **_: group.permissions.clear(),
    "own permission lost": lambda user, **_: user.user_permissions.clear(),
    "signed out": lambda **_: first(Session).delete(),
    "wall link deleted": lambda **_: first(WallLink).delete(),
    "API token revoked": lambda **_: api_tokens.revoke(first(ApiToken).pk, now=timezone.now()),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_reported_after_its_commit(reported, change, board):
    group = Group.objects.create(name="readers")
    permission = Permission.objects.get(codename="view_change")
    group.permissions.add(permission)
    user = User.objects.create_user("olga")
    user.groups.add(group)
    user.user_permissions.add(permission)
    Client().force_login(user)
    WallLink.objects.create(name="lobby", created_at=timezone.now())
    api_tokens.create(
        name="ci", user=user, role="operator", now=timezone.now(), expires_at=timezone.now()
    )
    reported.clear()
    CHANGES[change](user=user, group=group)
    assert reported


@pytest.mark.django_db(transaction=True)
def test_the_time_of_a_sign_in_ends_no_right(reported, board):
    user = User.objects.create_user("olga")
    reported.clear()
    user.save(update_fields=["last_login"])
    assert reported == []


@pytest.mark.django_db(transaction=True)
def test_a_change_is_committed_though_its_receiver_fails(board):
    def broken() -> None:
        raise ValueError("a defect")

    ended_rights.connect(broken)
    try:
        User.objects.create_user("olga")
    finally:
        ended_rights.disconnect()
    assert User.objects.filter(username="olga").exists()


@pytest.mark.django_db(transaction=True)
def test_connecting_again_reports_each_change_once(reported, board):
    ended_rights.connect(lambda: reported.append(1))
    User.objects.create_user("olga")
    assert reported == [1]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """A server whose timer does not help."""
    wanted = {"olga": people.READER, "lobby": people.wall("embedded")}
    with ended(Server(tmp_path / "data", "--no-demo", program=WITHOUT_TIMER)) as server:
        server.wait_synced()
        yield House(server, people.make(server.data, wanted))


def post(opener: Opener, url: str) -> None:
    """Send the form of a page as a person does."""
    with opener.open(url, timeout=60) as answer:
        fields = form_of(answer.read().decode())
    with opener.open(url, urllib.parse.urlencode(fields).encode(), timeout=60) as answer:
        assert answer.status == 200


async def test_sign_out_and_revoke_close_sockets_at_once(house):
    server, reported = house.server, house.people
    admin = cookie_keeper()
    press_button(admin, server.printed("Sign in"))
    async with AsyncExitStack() as stack:
        walls = [await house.open((path, {}), reported["lobby"]) for path in (PAGE, PAGE)]
        pages = [await house.open((path, {}), reported["olga"]) for path in (FEED, PAGE)]
        for socket in (*walls, *pages):
            await stack.enter_async_context(socket)

        revoke = f"{server.url}/wall-links/{reported['lobby']['id']}/revoke/"
        post(admin, revoke)
        for socket in walls:
            code, reason = await closing_of(socket)
            assert code == 4403
            assert reason.startswith("This wall link was revoked at ")

        sign_out(server, reported["olga"]["cookie"])
        for socket in pages:
            assert await closing_of(socket) == (4403, rights.SIGNED_OUT)


def sign_out(server: Server, cookie: str) -> None:
    """Press Sign out in a browser that has this session."""
    token = "a" * 32
    request = urllib.request.Request(
        f"{server.url}/sign-out/",
        urllib.parse.urlencode({"csrfmiddlewaretoken": token}).encode(),
        {"Cookie": with_token(cookie, token), "Origin": server.url},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.url.endswith("/sign-in/")
