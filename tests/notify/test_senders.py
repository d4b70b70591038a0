"""What receivers get, and what we make of their answers."""

from __future__ import annotations

import hashlib
import hmac
import socket
from email import message_from_string
from email.policy import default

import pytest
from aiohttp import web
from msgspec.structs import replace

from leases.domain.incident import Cause
from leases.domain.notify import Security, Sort, Stage, Target, message_of
from leases.notify import send_mail
from tests.support.receiving import http_receiver, smtp_receiver
from tests.support.values.changes import T0
from tests.support.values.incidents import an_incident
from tests.support.values.messages import MESSAGE, OVER, SECRET, send


async def test_a_webhook_is_signed_and_names_its_delivery():
    async with http_receiver() as receiver:
        assert (
            await send(Sort.WEBHOOK, f"{receiver.url}/in", MESSAGE, OVER, secret=SECRET)
        ).error == ""
    [got] = receiver.received
    timestamp = got.headers["Leaseboard-Timestamp"]
    assert int(timestamp) == int(T0.timestamp())
    signed = hmac.new(SECRET.encode(), timestamp.encode() + b"." + got.body, hashlib.sha256)
    assert got.headers["Leaseboard-Signature"] == f"v1={signed.hexdigest()}"
    assert got.json["delivery"] == got.headers["Leaseboard-Delivery"] == "d-1"
    first, last = got.json["messages"]
    assert (first["id"], first["stage"], last["stage"]) == (MESSAGE.id, "opened", "over")
    assert first["leases"] == [
        "kube-node-lease/worker-7",
        "keda/operator.keda.sh",
        "kube-system/scheduler",
    ]


async def test_the_labels_of_a_webhook_say_what_is_said_beside_them():
    crash = an_incident(cause=Cause.CRASH, ended=None, worst_gap_seconds=None)
    first = message_of(crash, Stage.OPENED, receiver=1, step=0, last=None)
    graver = replace(crash, cause=Cause.NODE_DOWN)
    worse = message_of(graver, Stage.WORSENED, receiver=1, step=1, last=first)
    async with http_receiver() as receiver:
        await send(Sort.WEBHOOK, f"{receiver.url}/in", first, worse)
    told = receiver.received[0].json["messages"]
    assert [one["severity"] for one in told] == ["warning", "critical"]
    for one in told:
        assert {"cause": one["cause"], "severity": one["severity"]}.items() <= one["labels"].items()
    assert told[1]["labels"]["incident"] == crash.id


async def test_slack_gets_a_section_for_each_incident_with_its_marks_escaped():
    async with http_receiver() as receiver:
        await send(Sort.SLACK, receiver.url, MESSAGE, OVER)
    body = receiver.received[0].json
    assert body["text"] == "2 incidents: a"
    first, last, delivery = body["blocks"]
    assert "worker-7 &lt;stopped&gt; &amp; fell" in first["text"]["text"]
    assert "http://x/i" in last["text"]["text"]
    assert delivery["elements"][0]["text"] == "Delivery d-1"


async def test_alertmanager_gets_the_same_labels_at_the_end():
    async with http_receiver() as receiver:
        await send(Sort.ALERTMANAGER, f"{receiver.url}/am/", MESSAGE, secret="token")
        await send(Sort.ALERTMANAGER, f"{receiver.url}/am/", OVER, secret="token")
    first, last = receiver.received
    assert first.path == "/am/api/v2/alerts"
    assert first.headers["Authorization"] == "Bearer token"
    [opened], [over] = first.json, last.json
    assert opened["labels"] == over["labels"]
    assert opened["labels"]["alertname"] == "LeaseboardIncident"
    assert opened["endsAt"] > opened["startsAt"]
    assert over["endsAt"] >= over["startsAt"]
    assert over["annotations"]["message_id"] == OVER.id


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (
            web.Response(status=503, headers={"Retry-After": "7"}),
            "It answered 503 Service Unavailable.",
        ),
        (web.Response(status=299, text="x" * 200_000), ""),
        (
            web.Response(status=302, headers={"Location": "/elsewhere"}),
            "It answered 302 Found. Redirects are not followed: set its final address.",
        ),
    ],
)  # fmt: skip
async def test_an_answer_is_taken_or_told_in_a_sentence(answer, error):
    async with http_receiver(answer) as receiver:
        outcome = await send(Sort.WEBHOOK, f"{receiver.url}/T0KEN", MESSAGE)
    assert outcome.error == error
    assert outcome.retry_after == (7 if answer.status == 503 else 0)
    assert len(receiver.received) == 1


def unused_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


async def test_an_error_holds_no_part_of_the_address():
    outcome = await send(Sort.WEBHOOK, f"http://127.0.0.1:{unused_port()}/T0KEN", MESSAGE)
    assert outcome.error == "It cannot be reached: Connection refused."
    for url in ("http://127.0.0.1:99999/T0KEN", "nonsense:T0KEN"):
        outcome = await send(Sort.WEBHOOK, url, MESSAGE)
        assert outcome.error
        assert "T0KEN" not in outcome.error


def mail_target(port, **given):
    values = {"host": "127.0.0.1", "port": port, "security": Security.NONE}
    return Target(
        **values, sender="leases@example.com", to=("a@example.com", "b@example.com"), **given
    )


async def test_mail_reaches_everybody_with_an_id_that_stays():
    async with smtp_receiver() as server:
        target = mail_target(server.port)
        for _ in range(2):
            outcome = await send_mail(
                target,
                [replace(MESSAGE, sentence="two\r\nBcc: x@y")],
                delivery="d-1",
                now=T0,
            )
            assert outcome.error == ""
    first, again = (message_from_string(mail, policy=default) for mail in server.mails)
    assert first["Subject"] == "New: a: two Bcc: x@y"
    assert first["Bcc"] is None
    assert first["Message-ID"] == again["Message-ID"] == "<d-1@leaseboard>"
    assert "Leases: kube-node-lease/worker-7" in first.get_content()
    assert [line.partition(":")[2].split()[0] for line in server.envelopes[0][1:]] == [
        "<a@example.com>",
        "<b@example.com>",
    ]


async def test_a_mail_server_that_refuses_is_told_in_a_sentence():
    async with smtp_receiver() as server:
        server.refuses = "451 try later SECRET"
        target = mail_target(server.port)
        first = await send_mail(target, [MESSAGE], delivery="d", now=T0)
        plain = replace(target, security=Security.STARTTLS)
        second = await send_mail(plain, [MESSAGE], delivery="d", now=T0)
    assert first.error == "It answered 451."
    assert second.error.startswith("It offers no STARTTLS")
    third = await send_mail(mail_target(unused_port()), [MESSAGE], delivery="d", now=T0)
    assert third.error.startswith("It cannot be reached")
