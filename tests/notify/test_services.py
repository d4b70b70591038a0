"""PagerDuty, Opsgenie and Teams: what they get, by their public formats, and what they answer.

The answers are those that each service documents.
"""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from aiohttp import web
from msgspec.structs import replace

from leases.domain.notify import Gravity, Sort, Stage
from tests.support.receiving import http_receiver
from tests.support.values.messages import MESSAGE, OVER, SECRET, send

KEY = f"leaseboard-{MESSAGE.cluster}-{MESSAGE.incident}"
TEST = replace(MESSAGE, stage=Stage.TEST)


def pagerduty() -> web.Response:
    body = {"status": "success", "message": "Event processed", "dedup_key": KEY}
    return web.json_response(body, status=202)


def opsgenie() -> web.Response:
    body = {"result": "Request will be processed", "took": 0.3, "requestId": "43a29c5c"}
    return web.json_response(body, status=202)


async def test_pagerduty_gets_a_trigger_and_a_resolve_of_one_key():
    async with http_receiver(*(pagerduty() for _ in range(4))) as receiver:
        url = f"{receiver.url}/v2/enqueue"
        assert (await send(Sort.PAGERDUTY, url, MESSAGE, OVER, secret=SECRET)).error == ""
        assert (await send(Sort.PAGERDUTY, url, TEST, secret=SECRET)).error == ""
    first, last, *test = [one.json for one in receiver.received]
    payload = first.pop("payload")
    assert first == {
        "routing_key": SECRET, "dedup_key": KEY, "event_action": "trigger", "client": "Leaseboard",
    }  # fmt: skip
    assert payload["severity"] in ("critical", "error", "warning", "info")
    assert payload["source"] == MESSAGE.cluster
    assert payload["summary"].startswith("New: a: worker-7")
    assert payload["timestamp"].endswith("Z")
    assert payload["custom_details"]["Cause"]
    assert last == {"routing_key": SECRET, "dedup_key": KEY, "event_action": "resolve"}
    assert [one["event_action"] for one in test] == ["trigger", "resolve"]


@pytest.mark.parametrize(
    ("gravity", "priority"),
    [(Gravity.CRITICAL, "P1"), (Gravity.WARNING, "P3"), (Gravity.INFO, "P5")],
)
async def test_opsgenie_gets_an_alert_and_its_end_under_one_alias(gravity, priority):
    odd = replace(MESSAGE, severity=gravity, incident="2026-11/a b")
    async with http_receiver(opsgenie(), opsgenie()) as receiver:
        over = replace(odd, stage=Stage.OVER)
        assert (await send(Sort.OPSGENIE, receiver.url, odd, over, secret=SECRET)).error == ""
    first, last = receiver.received
    assert first.headers["Authorization"] == last.headers["Authorization"] == f"GenieKey {SECRET}"
    assert first.path == "/v2/alerts"
    assert first.json["priority"] == priority
    assert len(first.json["message"]) <= 130
    alias = first.json["alias"]
    assert alias == "leaseboard-a-2026-11/a b"
    assert unquote(last.path) == f"/v2/alerts/{alias}/close"


async def test_teams_gets_an_adaptive_card_in_which_nobody_else_writes_links():
    bad = replace(MESSAGE, sentence="[click](https://evil.example.com)")
    async with http_receiver(web.Response(status=202)) as receiver:
        assert (await send(Sort.TEAMS, f"{receiver.url}/workflows/x", bad, OVER)).error == ""
    body = receiver.received[0].json
    (attachment,) = body["attachments"]
    assert body["type"] == "message"
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    card = attachment["content"]
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
    assert [one["type"] for one in card["body"]] == ["TextBlock", "FactSet"] * 2 + ["TextBlock"]
    assert "\\[click\\]\\(https" in card["body"][0]["text"]
    assert len(receiver.received[0].body) < 28_000
    long = replace(MESSAGE, leases=tuple("n" * 300 for _ in range(20)))
    async with http_receiver(web.Response(status=202)) as receiver:
        await send(Sort.TEAMS, receiver.url, *[long] * 40)
    assert len(receiver.received[0].body) < 28_000


@pytest.mark.parametrize(
    ("sort", "status", "advice"),
    [
        (Sort.PAGERDUTY, 400, "Check the routing key: it must be that of an Events API v2"),
        (Sort.OPSGENIE, 403, "Check the API key, that it may create alerts, and the address"),
        (Sort.TEAMS, 404, "Check that the workflow is on, and copy its address anew."),
    ],
)
async def test_a_refusal_says_what_to_do_and_a_limit_says_when_to_come_back(sort, status, advice):
    answers = (
        web.Response(status=status, text=SECRET),
        web.Response(status=429, headers={"Retry-After": "30"}),
    )
    async with http_receiver(*answers) as receiver:
        refused = await send(sort, f"{receiver.url}/{SECRET[:1]}", MESSAGE, OVER, secret=SECRET)
        limited = await send(sort, receiver.url, MESSAGE, OVER, secret=SECRET)
    assert len(receiver.received) == 2, "what follows a refusal is not sent"
    assert refused.error.startswith(f"It answered {status} ")
    assert advice in refused.error
    assert SECRET not in refused.error
    assert (limited.error, limited.retry_after) == ("It answered 429 Too Many Requests.", 30.0)
