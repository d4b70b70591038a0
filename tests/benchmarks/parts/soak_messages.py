"""Whether every incident of a soak was notified."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

import psycopg

from tests.support.processes import Server
from tests.support.receiving import Received
from tests.support.signing_in import Opener, form_of, signed_in

LIMIT = 300.0  # seconds for messages that wait at the end
SPARE = 10.0  # seconds that no message may come before all are taken to be sent
KNOWN = """
    SELECT cluster, incident, part_of FROM leases_incident
    WHERE ended IS NULL OR ended >= (SELECT min(created_at) FROM leases_receiver)
"""


def make_receiver(server: Server, url: str) -> Opener:
    """Make a webhook receiver as an admin does; the browser that did it."""
    browser = signed_in(server)
    page = f"{server.url}/notifications/receivers/new/?sort=webhook"
    with browser.open(page, timeout=60) as answer:
        fields = form_of(answer.read().decode())
    values = {**fields, "name": "soak", "url": url, "group_seconds": "5", "enabled": "on"}
    with browser.open(page, urlencode(values).encode(), timeout=60) as answer:
        assert "receivers/new" not in answer.url, answer.read().decode()
    return browser


async def all_sent(database: str) -> None:
    """Wait until no message waits for a while."""
    end, empty_since = time.monotonic() + LIMIT, time.monotonic()
    while time.monotonic() < min(end, empty_since + SPARE):
        if await asyncio.to_thread(_count, database, "waiting"):
            empty_since = time.monotonic()
        await asyncio.sleep(0.5)


def _count(database: str, state: str) -> int:
    with psycopg.connect(database) as connection:
        query = "SELECT count(*) FROM leases_notification WHERE state = %s"
        row = connection.execute(query, [state]).fetchone()
    return int(row[0]) if row else 0


def check_messages(database: str, taken: Iterable[Received], asked: int) -> int:
    """Compare the incidents with the messages that the receiver took; 1 if one is not told."""
    messages: list[dict[str, Any]] = [one for post in taken for one in post.json["messages"]]
    told = {(one["cluster"], one["incident"]) for one in messages if one["id"]}
    with psycopg.connect(database) as connection:
        known = connection.execute(KNOWN).fetchall()
    own = {(cluster, incident) for cluster, incident, part_of in known if not part_of}
    untold = own - told
    ids = Counter(one["id"] for one in messages)
    waiting, failed = _count(database, "waiting"), _count(database, "failed")
    print(f"{len(own)} incidents ({len(known) - len(own)} more became a part of another), "
          f"{len(untold)} not notified; {len(ids)} messages in {asked} attempts, "
          f"{len(messages) - len(ids)} came again under their id, {waiting} wait, "
          f"{failed} failed; stages {dict(Counter(one['stage'] for one in messages))}")  # fmt: skip
    print(*sorted(untold)[:5], sep="\n", end="\n" if untold else "")
    return 1 if untold or waiting or failed or not own else 0
