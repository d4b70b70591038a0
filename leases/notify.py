"""Send messages to receivers: HTTP with h11, e-mail with aiosmtplib. It knows no database.

A receiver is a stranger. Each exchange has a limit of time and of bytes as a whole, and runs on the
event loop: nothing of it is left when the limit is reached.
"""

import asyncio
import base64
import hashlib
import hmac
import re
import socket
import ssl
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from email.message import EmailMessage
from email.utils import format_datetime
from functools import cache
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlsplit

import aiosmtplib
import h11
import msgspec
from yarl import URL

from leases.bounded_connection import READ, CannotConnect, bounded
from leases.domain import notify
from leases.domain.notify import Message, Security, Sort, Stage, Target
from leases.wire.microtime import format_time


class DeliveryOutcome(msgspec.Struct, frozen=True):
    """`error` is a sentence for admins without any part of an address or a secret; "": sent."""

    error: str = ""
    retry_after: float = 0.0  # seconds that the receiver asked us to wait


SLACK_LIMIT = 2900  # characters of a section's text; Slack refuses more than 3,000
SLACK_BLOCKS = 45  # Slack refuses more than 50
# Alertmanager takes an alert for over at `endsAt`. We send again what goes on, far more often.
ALERT_LASTS = timedelta(minutes=5)
_encode = msgspec.json.Encoder().encode


def webhook_body(messages: Sequence[Message], delivery: str) -> bytes:
    """`delivery` is the same at each attempt, and so is the `id` of each message."""
    said = [msgspec.structs.replace(one, labels=_labels_now(one)) for one in messages]
    return _encode({"version": 1, "delivery": delivery, "messages": said})


def _labels_now(message: Message) -> dict[str, str]:
    """The labels, as the message says it: only in an Alertmanager they identify an alert."""
    now = {"cause": message.cause.value, "severity": message.severity.value}
    return {name: now.get(name, value) for name, value in message.labels.items()}


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """HMAC-SHA256 of `TIMESTAMP.BODY`, as `v1=HEX`."""
    signed = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256)
    return f"v1={signed.hexdigest()}"


def slack_body(messages: Sequence[Message], delivery: str) -> bytes:
    """An incoming webhook: one section for each incident, and a line for notifications."""
    blocks: list[dict[str, Any]] = []
    for message in messages[:SLACK_BLOCKS]:
        lines = [f"*{_escaped(notify.title(message))}*"]
        lines += [f"{name}: {_escaped(value)}" for name, value in notify.facts(message)]
        told = {"type": "mrkdwn", "text": "\n".join(lines)[:SLACK_LIMIT]}
        blocks.append({"type": "section", "text": told})
    element = {"type": "mrkdwn", "text": f"Delivery {delivery}"}
    blocks.append({"type": "context", "elements": [element]})
    return _encode({"text": _escaped(notify.title_of_all(messages)), "blocks": blocks})


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
        "summary": notify.title(message),
        "description": notify.text(message),
        "message_id": message.id,
    }
    alert = {
        "labels": message.labels,
        "annotations": annotations,
        "startsAt": format_time(message.began),
        "endsAt": format_time(ends),
    }
    return alert | ({"generatorURL": message.url} if message.url else {})


# What a service calls an incident: the same at each message, so that the end finds the beginning.
def _incident_key(message: Message) -> str:
    return f"leaseboard-{message.cluster}-{message.incident}"[:MAX_KEY]


MAX_KEY = 255  # characters of a dedup_key; Opsgenie takes an alias of 512
MAX_SUMMARY = 1000  # PagerDuty takes 1,024
MAX_ALERT = 130  # characters of the message of an alert of Opsgenie
MAX_DESCRIPTION = 15_000
MAX_CARD = 20_000  # characters of facts in a card; Teams refuses more than 28 KB
PRIORITIES = {"critical": "P1", "warning": "P3", "info": "P5"}


def pagerduty_bodies(message: Message, key: str) -> list[bytes]:
    """Events API v2. A test is ended at once, so that it wakes nobody for long.

    Source: developer.pagerduty.com/docs/events-api-v2/trigger-events.
    """
    event: dict[str, Any] = {"routing_key": key, "dedup_key": _incident_key(message)}
    trigger: dict[str, Any] = event | {
        "event_action": "trigger",
        "client": USER_AGENT,
        "payload": {
            "summary": notify.title(message)[:MAX_SUMMARY],
            "source": message.cluster,
            "severity": message.severity.value,
            "timestamp": format_time(message.began),
            "class": message.cause.value,
            "custom_details": dict(notify.facts(message)),
        },
    }
    if message.url:
        trigger |= {"client_url": message.url, "links": [{"href": message.url, "text": "Incident"}]}
    resolve = _encode(event | {"event_action": "resolve"})
    if message.stage is Stage.OVER:
        return [resolve]
    return [_encode(trigger), *([resolve] if message.stage is Stage.TEST else [])]


def opsgenie_requests(message: Message, url: str) -> list[tuple[str, bytes]]:
    """Alert API: create under an alias, or close it. A test is closed at once.

    Source: docs.opsgenie.com/docs/alert-api.
    """
    alias, base = _incident_key(message), url.rstrip("/").removesuffix("/v2/alerts")
    create = {
        "message": notify.title(message)[:MAX_ALERT],
        "alias": alias,
        "description": notify.text(message)[:MAX_DESCRIPTION],
        "details": dict(notify.facts(message)),
        "source": USER_AGENT,
        "entity": message.cluster,
        "priority": PRIORITIES[message.severity.value],
        "tags": ["leaseboard", message.cause.value],
    }
    end = {"source": USER_AGENT, "note": notify.title(message)}
    place = f"{base}/v2/alerts"
    close = f"{place}/{quote(alias, safe='')}/close?identifierType=alias", _encode(end)
    if message.stage is Stage.OVER:
        return [close]
    return [(place, _encode(create)), *([close] if message.stage is Stage.TEST else [])]


def teams_body(messages: Sequence[Message], delivery: str) -> bytes:
    """An Adaptive Card, as the workflow "when a Teams webhook request is received" takes it.

    Source: learn.microsoft.com, "Create incoming webhooks with Workflows for Microsoft Teams".
    """
    blocks: list[dict[str, Any]] = []
    left = MAX_CARD
    for message in messages:
        head = notify.title(message)
        facts = [{"title": name, "value": value[:1000]} for name, value in notify.facts(message)]
        left -= len(head) + sum(len(one["title"]) + len(one["value"]) for one in facts)
        if left < 0:
            break
        block = {"type": "TextBlock", "text": _plain(head), "weight": "Bolder", "wrap": True}
        shown = [one | {"value": _plain(one["value"])} for one in facts]
        blocks += [block, {"type": "FactSet", "facts": shown}]
    told = f"{notify.title_of_all(messages)}. Delivery {delivery}"
    blocks.append({"type": "TextBlock", "text": _plain(told), "isSubtle": True, "wrap": True})
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": blocks,
    }
    content_type = "application/vnd.microsoft.card.adaptive"
    attachment = {"contentType": content_type, "contentUrl": None, "content": card}
    return _encode({"type": "message", "attachments": [attachment]})


def _plain(text: str) -> str:
    """A card reads a part of Markdown: whoever writes a Lease must make no link of it."""
    return re.sub(r"([\\`*_\[\]()#])", r"\\\1", text)


TOTAL_SECONDS = 15.0  # of a whole exchange over HTTP
MAX_ANSWER = 65_536  # bytes that a receiver may send us, of whatever sort; nothing of it is kept
REST_SECONDS = 1.0  # for the body of an answer whose status is known
ALERTS_PATH = "/api/v2/alerts"
USER_AGENT = "Leaseboard"
TOO_MUCH = f"It sent more than {MAX_ANSWER // 1024} KiB."


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


async def send_http(
    sort: Sort,
    target: Target,
    messages: Sequence[Message],
    *,
    delivery: str,
    now: datetime,
) -> DeliveryOutcome:
    """Post each request once. Never raises for what the network or the receiver does.

    A service that takes one incident at a time knows it by its key: what is sent again after a
    failure in between changes nothing there.
    """
    outcome = DeliveryOutcome()
    for url, body, headers in _requests(sort, target, messages, delivery, now):
        outcome = await _send_one(url, body, headers, ADVICE.get(sort, ""))
        if outcome.error:
            break
    return outcome


async def _send_one(url: str, body: bytes, headers: dict[str, str], advice: str) -> DeliveryOutcome:
    try:
        async with asyncio.timeout(TOTAL_SECONDS):
            return await _post(URL(url), body, headers, advice)
    except TimeoutError:
        return DeliveryOutcome(f"It did not answer within {TOTAL_SECONDS:.0f} s.")
    except ssl.SSLCertVerificationError:
        return DeliveryOutcome(
            "Its certificate is not trusted. Check the certificate and the host."
        )
    except CannotConnect as error:
        return DeliveryOutcome(f"It cannot be reached: {error.strerror}.")
    except (h11.ProtocolError, ValueError, OSError) as error:
        # The error's own text may hold the address.
        return DeliveryOutcome(f"The request failed ({type(error).__name__}).")


async def _post(url: URL, body: bytes, headers: dict[str, str], advice: str) -> DeliveryOutcome:
    if url.scheme not in ("http", "https") or url.raw_host is None or not url.port:
        raise ValueError(url.scheme)
    tls = _tls() if url.scheme == "https" else None
    async with bounded(url.raw_host, url.port, most=MAX_ANSWER) as connection:
        reader, writer = await asyncio.open_connection(
            sock=connection.socket, ssl=tls, server_hostname=url.raw_host if tls else None
        )
        try:
            status, seconds = await _converse(url, body, headers, reader, writer)
        except (h11.ProtocolError, OSError):
            if connection.too_much:
                return DeliveryOutcome(TOO_MUCH)
            raise
        finally:
            writer.transport.abort()
    if 200 <= status < 300:
        return DeliveryOutcome()
    wrong = 400 <= status < 500 and status not in (408, 429)
    return DeliveryOutcome(f"{_refused(status)} {advice if wrong else ''}".rstrip(), seconds)


async def _converse(
    url: URL,
    body: bytes,
    headers: dict[str, str],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> tuple[int, float]:
    """Send the request. Return the status of the answer, whatever follows, and its Retry-After."""
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_ANSWER)
    own = {"Host": url.host_port_subcomponent or "", "Content-Length": str(len(body))}
    if url.user is not None:
        own["Authorization"] = f"Basic {_basic(url.user, url.password or '')}"
    told = [*(own | headers | {"Connection": "close"}).items()]
    request = h11.Request(method="POST", target=url.raw_path_qs, headers=told)
    for event in (request, h11.Data(data=body), h11.EndOfMessage()):
        writer.write(http.send(event) or b"")
    answer: h11.Response | None = None
    while answer is None:
        heard = await _next_event(http, reader)
        answer = heard if isinstance(heard, h11.Response) else None  # else 100 to 199: read on
    with suppress(TimeoutError, h11.ProtocolError, OSError):
        async with asyncio.timeout(REST_SECONDS):
            while not isinstance(await _next_event(http, reader), h11.EndOfMessage):
                pass
    return answer.status_code, _retry_after(answer.headers)


async def _next_event(http: h11.Connection, reader: asyncio.StreamReader) -> object:
    while (event := http.next_event()) is h11.NEED_DATA:
        http.receive_data(await reader.read(READ))
    if isinstance(event, h11.ConnectionClosed):
        raise h11.RemoteProtocolError("closed without an answer")
    return event


def _basic(user: str, password: str) -> str:
    return base64.b64encode(f"{user}:{password}".encode()).decode()


ADVICE = {
    Sort.PAGERDUTY: "Check the routing key: it must be that of an Events API v2 integration.",
    Sort.OPSGENIE: "Check the API key, that it may create alerts, and the address of your region.",
    Sort.TEAMS: "Check that the workflow is on, and copy its address anew.",
}
Request = tuple[str, bytes, dict[str, str]]


def _requests(
    sort: Sort, target: Target, messages: Sequence[Message], delivery: str, now: datetime
) -> list[Request]:
    headers = {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "Leaseboard-Delivery": delivery,
    }
    if sort is Sort.SLACK:
        return [(target.url, slack_body(messages, delivery), headers)]
    if sort is Sort.TEAMS:
        return [(target.url, teams_body(messages, delivery), headers)]
    if sort is Sort.PAGERDUTY:
        bodies = (body for one in messages for body in pagerduty_bodies(one, target.secret))
        return [(target.url, body, headers) for body in bodies]
    if sort is Sort.OPSGENIE:
        headers["Authorization"] = f"GenieKey {target.secret}"
        pairs = (pair for one in messages for pair in opsgenie_requests(one, target.url))
        return [(url, body, headers) for url, body in pairs]
    if sort is Sort.ALERTMANAGER:
        if target.secret:
            headers["Authorization"] = f"Bearer {target.secret}"
        return [(alerts_url(target.url), alertmanager_body(messages, now), headers)]
    body, timestamp = webhook_body(messages, delivery), int(now.timestamp() or time.time())
    headers["Leaseboard-Timestamp"] = str(timestamp)
    if target.secret:
        headers["Leaseboard-Signature"] = signature(target.secret, timestamp, body)
    return [(target.url, body, headers)]


def alerts_url(url: str) -> str:
    """The address of the alerts; admins give that of Alertmanager itself."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    return parts._replace(path=path if path.endswith(ALERTS_PATH) else path + ALERTS_PATH).geturl()


def _refused(status: int) -> str:
    try:
        phrase = f" {HTTPStatus(status).phrase}"
    except ValueError:
        phrase = ""
    if 300 <= status < 400:
        return f"It answered {status}{phrase}. Redirects are not followed: set its final address."
    return f"It answered {status}{phrase}."


def _retry_after(headers: Iterable[tuple[bytes, bytes]]) -> float:
    text = next((value for name, value in headers if name == b"retry-after"), b"").decode("latin-1")
    return float(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 0.0


MAIL_SECONDS = 45.0  # of a whole exchange by SMTP, below the time of a claim
QUIT_SECONDS = 2.0  # for a goodbye after the mail was taken


async def send_mail(
    target: Target, messages: Sequence[Message], *, delivery: str, now: datetime
) -> DeliveryOutcome:
    """Send once. Never raises for what the network or the server does."""
    mail = _mail(target, messages, delivery, now)
    try:
        async with asyncio.timeout(MAIL_SECONDS):
            return await _deliver(target, mail)
    except aiosmtplib.SMTPAuthenticationError as error:
        return DeliveryOutcome(f"It refused the user name or the password ({error.code}).")
    except aiosmtplib.SMTPRecipientsRefused:
        return DeliveryOutcome("It refused all recipients.")
    except aiosmtplib.SMTPResponseException as error:
        if error.code < 0:
            return DeliveryOutcome("It sent what is no answer of a mail server.")
        return DeliveryOutcome(f"It answered {error.code}.")
    except aiosmtplib.SMTPNotSupported:
        return DeliveryOutcome("It offers no STARTTLS or no sign-in. Choose another encryption.")
    except TimeoutError:
        return DeliveryOutcome(f"It did not take the mail within {MAIL_SECONDS:.0f} s.")
    except CannotConnect as error:
        return DeliveryOutcome(f"It cannot be reached: {error.strerror}.")
    except (aiosmtplib.SMTPException, OSError, ValueError) as error:
        if isinstance(error, ssl.SSLError) or isinstance(error.__cause__, ssl.SSLError):
            return DeliveryOutcome(
                "The encrypted connection failed. Check the encryption and the certificate."
            )
        return DeliveryOutcome(f"The exchange failed ({type(error).__name__}).")


async def _deliver(target: Target, mail: EmailMessage) -> DeliveryOutcome:
    async with bounded(target.host, target.port, most=MAX_ANSWER) as connection:
        client = aiosmtplib.SMTP(
            hostname=target.host,
            sock=connection.socket,
            # Its own look-ups of this host's name, and of certificates, use threads.
            local_hostname=_own_name(connection.own_address),
            tls_context=_tls(),
            use_tls=target.security is Security.TLS,
            start_tls=False,
            timeout=MAIL_SECONDS,
        )
        try:
            await _exchange(client, target, mail)
        except (aiosmtplib.SMTPException, OSError):
            if connection.too_much:
                return DeliveryOutcome(TOO_MUCH)
            raise
        finally:
            client.close()
    return DeliveryOutcome()


async def _exchange(client: aiosmtplib.SMTP, target: Target, mail: EmailMessage) -> None:
    await client.connect()
    await client.ehlo()
    if target.security is Security.STARTTLS:
        if not client.supports_extension("starttls"):
            raise aiosmtplib.SMTPNotSupported("STARTTLS")
        await client.starttls()
        await client.ehlo()
    if target.username:
        if not client.supports_extension("auth"):
            raise aiosmtplib.SMTPNotSupported("AUTH")
        await client.login(target.username, target.password)
    await client.send_message(mail, sender=target.sender, recipients=list(target.to))
    with suppress(aiosmtplib.SMTPException, OSError):
        await client.quit(timeout=QUIT_SECONDS)


def _own_name(address: str) -> str:
    """What we call ourselves: a full host name, or our address as RFC 5321 writes it."""
    name = socket.gethostname()
    if "." in name and name.isascii() and name.isprintable():
        return name
    return f"[IPv6:{address.partition('%')[0]}]" if ":" in address else f"[{address}]"


def _mail(
    target: Target, messages: Sequence[Message], delivery: str, now: datetime
) -> EmailMessage:
    """The Message-ID is the same at each attempt, so mail programs show doubles once."""
    mail = EmailMessage()
    mail["Subject"] = notify.title_of_all(messages)
    mail["From"] = target.sender
    mail["To"] = ", ".join(target.to)
    mail["Date"] = format_datetime(now)
    mail["Message-ID"] = f"<{delivery}@leaseboard>"
    mail["Leaseboard-Delivery"] = delivery
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(f"{notify.text_of_all(messages)}\n\nDelivery {delivery}\n")
    return mail
