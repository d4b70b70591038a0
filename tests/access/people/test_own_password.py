"""Who changes the own password keeps the pages of that browser, and loses those of all others."""

from __future__ import annotations

import http.cookies
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from dashboard.access import rights
from tests.support.processes import Server, ended
from tests.support.programs import people
from tests.support.programs.open_sockets import FEED, PAGE, House, closing_of
from tests.support.signing_in import with_token

LOOKS = 5  # frames of a page, one a second: rights are looked at every two
NEW = "a-new-and-long-one"


PATHS = {"olga": "password_change/", "ina": "auth/user/{id}/password/"}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with ended(Server(tmp_path_factory.mktemp("own-password") / "data", "--no-demo")) as server:
        server.wait_synced()
        house = House(server, people.make(server.data, dict.fromkeys(PATHS, people.READER)))
        for name, who in house.people.items():
            house.end(
                "INSERT INTO auth_user_groups (user_id, group_id) "
                "SELECT :id, id FROM auth_group WHERE name = 'admin';"
                "INSERT INTO django_session SELECT :other, session_data, expire_date "
                "FROM django_session WHERE session_key = :session",
                who | {"other": f"other-browser-of-{name}"},
            )
        yield house


def fields_of(path: str, name: str) -> dict[str, str]:
    names = ("new_password1", "new_password2") if path == "password_change/" else (
        "password1", "password2",
    )  # fmt: skip
    return {"old_password": f"secret-{name}", "usable_password": "true"} | dict.fromkeys(names, NEW)


def change_password(house: House, path: str, name: str) -> str:
    """Send the form of a page under /admin/; the key of the session afterwards."""

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            return None

    token, cookie = "a" * 32, house.people[name]["cookie"]
    request = urllib.request.Request(
        f"{house.server.url}/admin/{path}",
        urllib.parse.urlencode({"csrfmiddlewaretoken": token} | fields_of(path, name)).encode(),
        {"Cookie": with_token(cookie, token), "Origin": house.server.url},
    )
    with pytest.raises(urllib.error.HTTPError) as sent:
        urllib.request.build_opener(Stay).open(request, timeout=60)
    answer = sent.value
    assert answer.code == 302, answer.read().decode()
    cookies = http.cookies.SimpleCookie()
    for header in answer.headers.get_all("Set-Cookie"):
        cookies.load(header)
    answer.close()
    return cookies[cookie.partition("=")[0]].value


@pytest.mark.parametrize("name", PATHS)
async def test_the_own_pages_stay_open_and_all_others_are_closed(house, name):
    who = house.people[name]
    cookie = who["cookie"].partition("=")[0]
    other = {"cookie": f"{cookie}=other-browser-of-{name}"}
    async with AsyncExitStack() as stack:
        own = [await house.open((kind, {}), who) for kind in (FEED, PAGE)]
        others = [await house.open((kind, {}), other) for kind in (FEED, PAGE)]
        for socket in (*own, *others):
            await stack.enter_async_context(socket)

        session = change_password(house, PATHS[name].format(**who), name)
        assert session != who["session"]
        for socket in others:
            assert await closing_of(socket) == (4403, rights.PASSWORD_CHANGED)
        for _ in range(LOOKS):
            await own[1].recv()
        assert [socket.state.name for socket in own] == ["OPEN", "OPEN"]
        await (await house.open((PAGE, {}), {"cookie": f"{cookie}={session}"})).close()

        house.end("DELETE FROM django_session WHERE session_key = :session", {"session": session})
        for socket in own:
            assert await closing_of(socket) == (4403, rights.SIGNED_OUT)
