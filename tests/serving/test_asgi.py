"""What stands behind the one port: pages, static files, sockets and the runtime's life."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.db import OperationalError
from django.test import Client

from dashboard.live.socket_guards import NO_DATABASE, UNKNOWN_HOST
from dashboard.serving.runtime import lifespan
from tests.support.board import member

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("board")]


def socket(session: str = "", *, host: str = "testserver") -> ApplicationCommunicator:
    from dashboard.asgi import application

    headers = [
        (b"host", host.encode()),
        (b"cookie", f"{settings.SESSION_COOKIE_NAME}={session}".encode()),
    ]
    scope = {"type": "websocket", "path": "/c/a/live/page/", "query_string": b""}
    return ApplicationCommunicator(application, scope | {"headers": headers})


async def first_word(one: ApplicationCommunicator) -> dict[str, object]:
    await one.send_input({"type": "websocket.connect"})
    assert (await one.receive_output(30))["type"] == "websocket.accept"
    await one.send_input({"type": "websocket.receive", "text": '{"show": {}}'})
    return await one.receive_output(30)


@sync_to_async
def signed_in() -> str:
    browser = Client()
    browser.force_login(member("olga", "operator"))
    return browser.session.session_key


async def test_a_socket_knows_its_user_by_the_cookie() -> None:
    one = socket(await signed_in())
    assert (await first_word(one))["type"] == "websocket.send"
    await one.send_input({"type": "websocket.disconnect", "code": 1000})
    await one.wait()
    stranger = await first_word(socket("nobody"))
    assert (stranger["type"], stranger["code"]) == ("websocket.close", 4403)


async def test_a_socket_of_another_host_is_refused_whoever_asks() -> None:
    said = await first_word(socket(await signed_in(), host="evil.example"))
    assert (said["code"], said["reason"]) == (4403, UNKNOWN_HOST)


async def test_a_socket_whose_user_cannot_be_loaded_tries_again(monkeypatch) -> None:
    def refusing(_session: object) -> None:
        raise OperationalError("no route")

    monkeypatch.setattr("dashboard.live.socket_guards.user_of", refusing)
    said = await first_word(socket(await signed_in()))
    assert (said["code"], said["reason"]) == (1011, NO_DATABASE)


async def test_the_runtime_lives_as_long_as_the_server() -> None:
    from dashboard.asgi import application

    assert application.application_mapping["lifespan"] is lifespan
