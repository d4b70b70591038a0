"""Sockets and the proxy: the header opens them, a group that is taken away closes them, and the
address of the connection reaches them whatever X-Forwarded-For says."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from dashboard.access import ended_rights, rights
from dashboard.access.proxy import PEER
from dashboard.serving.pages_port import pages_server
from tests.support.board import a_lease, fill, member
from tests.support.proxy_visitor import NAMED, PROXY, STRANGER, ProxyBrowser, scope_of, set_proxy

pytestmark = pytest.mark.django_db(transaction=True)
FEED = "/c/a/live/changes/"
seen: list[dict[str, Any]] = []


@pytest.fixture(autouse=True)
def _proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    set_proxy(monkeypatch)


async def opened(peer: str, session: str = "", named: bool = True) -> ApplicationCommunicator:
    from dashboard.asgi import application

    headers = {"Host": "testserver", "Cookie": f"{settings.SESSION_COOKIE_NAME}={session}"} | (
        NAMED if named else {}
    )
    scope = {"type": "websocket", "path": FEED, "query_string": b""}
    scope |= scope_of(headers, peer=peer, client=PROXY)
    socket = ApplicationCommunicator(application, scope)
    await socket.send_input({"type": "websocket.connect"})
    assert (await socket.receive_output(60))["type"] == "websocket.accept"
    return socket


@sync_to_async
def session_of(name: str, role: str) -> str:
    browser = Client()
    browser.force_login(member(name, role))
    return str(browser.session.session_key)


async def closing(socket: ApplicationCommunicator) -> tuple[int, str]:
    message = await socket.receive_output(60)
    assert message["type"] == "websocket.close", message
    await socket.wait()
    return message["code"], message["reason"]


@pytest.mark.parametrize("how", ["the group is taken away", "the account is deactivated"])
async def test_a_socket_of_the_proxy_ends_with_the_right(board, how):
    fill(board.clusters["a"].store, a_lease())
    heard: list[int] = []
    ended_rights.connect(lambda: heard.append(1))
    # The session of somebody else, which ends, is not what the socket stands by.
    socket = await opened(PROXY, await session_of("gil", "operator"))
    assert (await socket.receive_output(60))["type"] == "websocket.send"
    await sync_to_async(User.objects.filter(username="gil").delete)()
    await board.rights.check()
    assert await socket.receive_nothing()
    heard.clear()
    if how == "the group is taken away":
        others = ProxyBrowser({**NAMED, "X-Forwarded-Groups": "others"})
        assert (await sync_to_async(others.get)("/audit/")).status_code == 403
        reason = rights.MAY_NOT_READ
    else:
        pia = await User.objects.aget(username="pia")
        pia.is_active = False
        await pia.asave()
        reason = rights.DEACTIVATED
    ended_rights.disconnect()
    assert heard
    await board.rights.check()
    assert await closing(socket) == (4403, reason)


async def test_a_stranger_who_names_a_user_gets_no_socket(board):
    code, reason = await closing(await opened(STRANGER, await session_of("olga", "operator")))
    assert (code, reason.partition(" from ")[0]) == (4403, "X-Forwarded-User is refused")
    assert await closing(await opened(PROXY, named=False)) == (4403, rights.NOT_SIGNED_IN)


async def test_a_request_over_asgi_tells_its_address_too(board):
    """The other tests of requests hand the scope to Django's synchronous test client."""

    class Connected(AsyncClient):
        def _base_scope(self, **request: Any) -> dict[str, Any]:
            return {**super()._base_scope(**request), PEER: PROXY}  # type: ignore[misc]

    answer = await Connected().get("/audit/", headers=NAMED)
    assert answer.status_code == 200
    answer = await AsyncClient().get("/audit/", headers=NAMED)
    assert answer.status_code == 403


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    seen.append(scope)


@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_uvicorns_trust_in_x_forwarded_for_does_not_reach_the_address(kind):
    server = pages_server(f"{__name__}:app", files=1024)
    server.config.load()
    seen.clear()
    headers = [(b"x-forwarded-for", PROXY.encode())]
    loaded: Any = server.config.loaded_app
    await loaded({"type": kind, "client": ("127.0.0.1", 9), "headers": headers}, None, None)
    ((found),) = seen
    assert (found[PEER], found["client"][0]) == ("127.0.0.1", PROXY)
