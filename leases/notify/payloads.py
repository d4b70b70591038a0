"""The bodies that receivers take: JSON of our own, of Slack, of Alertmanager (API v2)."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from leases.domain.notify import texts
from leases.domain.notify.message import Message, Stage
from leases.wire.microtime import format_time

SLACK_LIMIT = 2900  # characters of a section's text; Slack refuses more than 3,000
SLACK_BLOCKS = 45  # Slack refuses more than 50
# Alertmanager takes an alert for over at `endsAt`. We send again what goes on, far more often.
ALERT_LASTS = timedelta(minutes=5)
_encode = msgspec.json.Encoder().encode


def webhook_body(messages: Sequence[Message], delivery: str) -> bytes:
    """`delivery` is the same at each attempt, and so is the `id` of each message."""
    return _encode({"version": 1, "delivery": delivery, "messages": messages})


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """HMAC-SHA256 of `TIMESTAMP.BODY`, as `v1=HEX`."""
    signed = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256)
    return f"v1={signed.hexdigest()}"


def slack_body(messages: Sequence[Message], delivery: str) -> bytes:
    """An incoming webhook: one section for each incident, and a line for notifications."""
    blocks: list[dict[str, Any]] = []
    for message in messages[:SLACK_BLOCKS]:
        lines = [f"*{_escaped(texts.title(message))}*"]
        lines += [f"{name}: {_escaped(value)}" for name, value in texts.facts(message)]
        told = {"type": "mrkdwn", "text": "\n".join(lines)[:SLACK_LIMIT]}
        blocks.append({"type": "section", "text": told})
    element = {"type": "mrkdwn", "text": f"Delivery {delivery}"}
    blocks.append({"type": "context", "elements": [element]})
    return _encode({"text": _escaped(texts.title_of_all(messages)), "blocks": blocks})


def _escaped(text: str) -> str:
    """Slack reads &, < and > as marks: https://api.slack.com/reference/surfaces/formatting."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def alertmanager_body(messages: Sequence[Message], now: datetime) -> bytes:
    """Post this to /api/v2/alerts. Labels identify an alert, so a repeated one changes nothing."""
    return _encode([_alert(one, now) for one in messages])


def _alert(message: Message, now: datetime) -> dict[str, Any]:
    ends = now + ALERT_LASTS
    if message.stage is Stage.OVER:
        # Not before its start, which Alertmanager refuses, and not in the future.
        ends = max(message.began, min(now, message.ended or now))
    elif message.stage is Stage.TEST:
        ends = now + timedelta(minutes=1)
    annotations = {
        "summary": texts.title(message),
        "description": texts.text(message),
        "message_id": message.id,
    }
    alert = {
        "labels": message.labels,
        "annotations": annotations,
        "startsAt": format_time(message.began),
        "endsAt": format_time(ends),
    }
    return alert | ({"generatorURL": message.url} if message.url else {})
