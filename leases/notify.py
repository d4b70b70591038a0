"""Send messages to receivers: HTTP with aiohttp, e-mail by SMTP. It knows no database."""

import hashlib
import hmac
import os
import smtplib
import ssl
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from email.message import EmailMessage
from email.utils import format_datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import msgspec

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
    return _encode({"version": 1, "delivery": delivery, "messages": messages})


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


CONNECT_SECONDS, TOTAL_SECONDS = 5.0, 15.0
MAX_ANSWER = 65_536  # bytes of an answer that are read; nothing of it is kept
ALERTS_PATH = "/api/v2/alerts"
USER_AGENT = "Leaseboard"


class HttpSender:
    """One session for all receivers. `close` it at the end."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def send(
        self,
        sort: Sort,
        target: Target,
        messages: Sequence[Message],
        *,
        delivery: str,
        now: datetime,
    ) -> DeliveryOutcome:
        """Post once. Never raises for what the network or the receiver does."""
        url, body, headers = _request(sort, target, messages, delivery, now)
        try:
            return await self._post(url, body, headers)
        except TimeoutError:
            return DeliveryOutcome(f"It did not answer within {TOTAL_SECONDS:.0f} s.")
        except aiohttp.ClientConnectorCertificateError:
            return DeliveryOutcome(
                "Its certificate is not trusted. Check the certificate and the host."
            )
        except aiohttp.ClientConnectorError as error:
            number = error.os_error.errno or 0
            why = os.strerror(number) if number > 0 else "its name is not known"
            return DeliveryOutcome(f"It cannot be reached: {why}.")
        except (aiohttp.ClientError, ValueError, OSError) as error:
            # The error's own text may hold the address.
            return DeliveryOutcome(f"The request failed ({type(error).__name__}).")

    async def _post(self, url: str, body: bytes, headers: dict[str, str]) -> DeliveryOutcome:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=TOTAL_SECONDS, connect=CONNECT_SECONDS)
            self._session = aiohttp.ClientSession(
                timeout=timeout,
                cookie_jar=aiohttp.DummyCookieJar(),
                connector=aiohttp.TCPConnector(limit_per_host=2, force_close=True),
            )
        async with self._session.post(
            url, data=body, headers=headers, allow_redirects=False
        ) as answer:
            await answer.content.read(MAX_ANSWER)
            if 200 <= answer.status < 300:
                return DeliveryOutcome()
            return DeliveryOutcome(_refused(answer.status), _retry_after(answer.headers))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


def _request(
    sort: Sort, target: Target, messages: Sequence[Message], delivery: str, now: datetime
) -> tuple[str, bytes, dict[str, str]]:
    headers = {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "Leaseboard-Delivery": delivery,
    }
    if sort is Sort.SLACK:
        return target.url, slack_body(messages, delivery), headers
    if sort is Sort.ALERTMANAGER:
        if target.secret:
            headers["Authorization"] = f"Bearer {target.secret}"
        return alerts_url(target.url), alertmanager_body(messages, now), headers
    body, timestamp = webhook_body(messages, delivery), int(now.timestamp() or time.time())
    headers["Leaseboard-Timestamp"] = str(timestamp)
    if target.secret:
        headers["Leaseboard-Signature"] = signature(target.secret, timestamp, body)
    return target.url, body, headers


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


def _retry_after(headers: object) -> float:
    text = headers.get("Retry-After", "")  # type: ignore[attr-defined]
    return float(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 0.0


TIMEOUT_SECONDS = 10.0  # of each step of the exchange


def send_mail(
    target: Target, messages: Sequence[Message], *, delivery: str, now: datetime
) -> DeliveryOutcome:
    """Send once. Never raises for what the network or the server does."""
    mail = _mail(target, messages, delivery, now)
    try:
        _exchange(target, mail)
    except smtplib.SMTPAuthenticationError as error:
        return DeliveryOutcome(f"It refused the user name or the password ({error.smtp_code}).")
    except smtplib.SMTPRecipientsRefused:
        return DeliveryOutcome("It refused all recipients.")
    except smtplib.SMTPResponseException as error:
        return DeliveryOutcome(f"It answered {error.smtp_code}.")
    except smtplib.SMTPNotSupportedError:
        return DeliveryOutcome("It offers no STARTTLS or no sign-in. Choose another encryption.")
    except ssl.SSLError:
        return DeliveryOutcome(
            "The encrypted connection failed. Check the encryption and the certificate."
        )
    except TimeoutError:
        return DeliveryOutcome(f"It did not answer within {TIMEOUT_SECONDS:.0f} s.")
    except smtplib.SMTPException as error:
        return DeliveryOutcome(f"The exchange failed ({type(error).__name__}).")
    except OSError as error:
        return DeliveryOutcome(f"It cannot be reached: {error.strerror or type(error).__name__}.")
    return DeliveryOutcome()


def _exchange(target: Target, mail: EmailMessage) -> None:
    context = ssl.create_default_context()
    server: smtplib.SMTP
    if target.security is Security.TLS:
        server = smtplib.SMTP_SSL(
            target.host, target.port, timeout=TIMEOUT_SECONDS, context=context
        )
    else:
        server = smtplib.SMTP(target.host, target.port, timeout=TIMEOUT_SECONDS)
    with server:
        if target.security is Security.STARTTLS:
            server.starttls(context=context)
        if target.username:
            server.login(target.username, target.password)
        server.send_message(mail, target.sender, list(target.to))


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
