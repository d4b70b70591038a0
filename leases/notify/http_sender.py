"""Send a delivery by HTTP. Admins alone set the addresses; even so, redirects are not followed."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import datetime
from http import HTTPStatus
from urllib.parse import urlsplit

import aiohttp

from leases.domain.notify.message import Message
from leases.domain.notify.target import Sort, Target
from leases.notify.outcome import DeliveryOutcome
from leases.notify.payloads import alertmanager_body, signature, slack_body, webhook_body

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
