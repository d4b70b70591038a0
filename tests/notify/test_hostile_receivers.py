"""Receivers that never answer, drip, flood or lie: each exchange ends, and leaves nothing."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from leases import bounded_connection, notify
from leases.domain.notify import Security, Sort, Stage, Target, message_of
from leases.notify import send_http, send_mail
from tests.support.hostile import MEBIBYTE, hostile
from tests.support.values.changes import T0
from tests.support.values.incidents import an_incident

MESSAGE = message_of(an_incident(ended=None), Stage.OPENED, receiver=1, step=0, last=None)
NOT_IN_TIME = "It did not"
TOO_MUCH = "It sent more than 64 KiB."
# What may be on its way in the kernel's buffers of both ends.
ON_ITS_WAY = 16 * MEBIBYTE


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(notify, "TOTAL_SECONDS", 1.0)
    monkeypatch.setattr(notify, "MAIL_SECONDS", 1.0)
    monkeypatch.setattr(notify, "REST_SECONDS", 0.1)


async def ended(receiver, outcome):
    """The receiver has lost its client, and could send no more than the bound."""
    async with asyncio.timeout(30):
        await receiver.left.wait()
    assert receiver.sent < ON_ITS_WAY
    return outcome.error


async def mailed(receiver, security=Security.NONE):
    target = Target(
        host="127.0.0.1", port=receiver.port, security=security, sender="a@b", to=("c@d",)
    )
    outcome = await send_mail(target, [MESSAGE], delivery="d", now=T0)
    return await ended(receiver, outcome)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("silent", NOT_IN_TIME),
        ("drips lines", NOT_IN_TIME),
        ("drips bytes", NOT_IN_TIME),
        ("drips after its greeting", NOT_IN_TIME),
        ("floods lines", "It sent"),
        ("floods after its greeting", "It sent"),
        ("floods one line", "It sent"),
        ("answers no mail", "It sent what is no answer of a mail server."),
        ("answers other codes", "It answered 999."),
    ],
)
async def test_a_mail_server_has_a_limit_of_time_and_of_bytes(name, error):
    threads = set(threading.enumerate())
    async with hostile(name) as receiver:
        told = await mailed(receiver)
    assert told.startswith(error)
    assert not {one.name for one in set(threading.enumerate()) - threads if not one.daemon} - {
        "receiver-names_0"
    }


@pytest.mark.parametrize("name", ["silent", "drips bytes", "floods lines"])
async def test_a_mail_server_that_speaks_no_tls_has_the_same_limits(name):
    async with hostile(name) as receiver:
        assert await mailed(receiver, Security.TLS)


@pytest.mark.parametrize("sort", [Sort.WEBHOOK, Sort.SLACK, Sort.ALERTMANAGER, Sort.PAGERDUTY])
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("silent", NOT_IN_TIME),
        ("drips a status", NOT_IN_TIME),
        ("drips 102", NOT_IN_TIME),
        ("drips a body", ""),
        ("floods 102", TOO_MUCH),
        ("floods headers", TOO_MUCH),
        ("floods a header", TOO_MUCH),
        ("floods a body", ""),
        ("lies about its length", "The request failed"),
        ("answers no HTTP", NOT_IN_TIME),
    ],
)
async def test_a_receiver_by_http_has_a_limit_of_time_and_of_bytes(sort, name, error):
    async with hostile(name) as receiver:
        target = Target(url=f"http://127.0.0.1:{receiver.port}/")
        outcome = await send_http(sort, target, [MESSAGE], delivery="d", now=T0)
        told = await ended(receiver, outcome)
    assert told.startswith(error) if error else told == ""


@pytest.mark.parametrize("name", ["silent", "drips bytes", "floods 102"])
async def test_a_receiver_that_speaks_no_tls_has_the_same_limits(name):
    async with hostile(name) as receiver:
        target = Target(url=f"https://127.0.0.1:{receiver.port}/")
        outcome = await send_http(Sort.WEBHOOK, target, [MESSAGE], delivery="d", now=T0)
        assert await ended(receiver, outcome)


async def test_a_name_service_that_does_not_answer_holds_up_nobody(monkeypatch):
    """Each name takes one thread, however often it is tried; other names go on."""
    answered, asked = threading.Event(), []
    real = socket.getaddrinfo

    def look_up(host, *rest):
        if host == "hangs.example.com":
            asked.append(host)
            answered.wait(60)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return real(host, *rest)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(bounded_connection, "CONNECT_SECONDS", 0.2)
    try:
        for _ in range(10):
            target = Target(url="http://hangs.example.com/")
            outcome = await send_http(Sort.WEBHOOK, target, [MESSAGE], delivery="d", now=T0)
            assert outcome.error == "It cannot be reached: the name service does not answer."
        assert len(asked) == 1
        async with hostile("drips a body") as receiver:
            target = Target(url=f"http://localhost:{receiver.port}/")
            outcome = await send_http(Sort.WEBHOOK, target, [MESSAGE], delivery="d", now=T0)
            assert outcome.error == ""
    finally:
        answered.set()
