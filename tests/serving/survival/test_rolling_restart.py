"""Replicas behind a proxy are restarted one after the other while pages are open."""

from __future__ import annotations

import asyncio
import signal
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import psycopg
import pytest

from tests.support.balancer import balancing
from tests.support.open_page import OpenPage, session_of
from tests.support.processes import LIMIT, Server, get, wait_for
from tests.support.replicas import Replicas, two_replicas

PAGES = 4
RESTARTED = 1012


async def until(look, *, what: str) -> None:
    end = time.monotonic() + LIMIT
    while not look():
        assert time.monotonic() < end, f"waited in vain for {what}"
        await asyncio.sleep(0.05)


@pytest.mark.long
async def test_no_page_misses_a_change_while_both_replicas_are_restarted(
    tmp_path: Path, postgres
) -> None:
    database = postgres.database()
    with two_replicas(tmp_path, database, LEASEBOARD_DRAIN_SECONDS="600") as replicas:
        both = [replicas.one, replicas.other]
        session = session_of(replicas.one)
        async with balancing([server.port for server in both]) as balancer:
            pages = [OpenPage(balancer.port, session) for _ in range(PAGES)]
            following = [asyncio.create_task(page.run()) for page in pages]
            await until(lambda: all(page.lines for page in pages), what="every page")
            for name in ("one", "other"):
                server: Server = getattr(replicas, name)
                with _endless_page(database, server, session) as endless:
                    await _leaves(server, replicas, OpenPage(server.port, session))
                    assert await asyncio.wrap_future(endless) == (503, "5")
                await asyncio.to_thread(replicas.api.create, f"{name}-away", holder="x")
                setattr(replicas, name, await asyncio.to_thread(server.again))
                await until(lambda: len(balancer.ready) == 2, what="both to be ready")
                await asyncio.to_thread(replicas.api.create, f"{name}-back", holder="x")
            made = {f"default/{name}-{when}" for name in ("one", "other")
                    for when in ("drains", "away", "back")}  # fmt: skip
            await until(
                lambda: all(made <= {*page.lines} for page in pages),
                what="all changes on all pages",
            )
            codes = [code for page in pages for code in page.codes]
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)
    assert [task.exception() for task in following if not task.cancelled()] == []
    assert len(codes) >= PAGES
    assert {*codes} == {RESTARTED}


@contextmanager
def _endless_page(database: str, server: Server, session: str) -> Iterator[Future[Any]]:
    """Ask for a page whose thread waits for the database until the end of the block."""
    cookie = {"Cookie": session}
    request = urllib.request.Request(f"{server.url}/wall-links/", headers=cookie)
    with psycopg.connect(database) as other, ThreadPoolExecutor(1) as thread:
        other.execute("LOCK TABLE leases_walllink IN ACCESS EXCLUSIVE MODE")
        page = thread.submit(_status_of, request)
        waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        wait_for(lambda: other.execute(waits).fetchone() != (0,), what="the page to wait")
        yield page


def _status_of(request: urllib.request.Request) -> tuple[int, str]:
    """The answer's status, and when to try again."""
    with pytest.raises(HTTPError) as refused:
        urllib.request.urlopen(request, timeout=LIMIT).close()
    with refused.value as answer:
        return answer.code, answer.headers["Retry-After"]


async def _leaves(server: Server, replicas: Replicas, page: OpenPage) -> None:
    """At SIGTERM: not ready, still answering, still telling, 1012, 0 beside an endless page."""
    following = asyncio.create_task(page.run())
    await until(lambda: page.lines, what="a page of this replica")
    server.process.send_signal(signal.SIGTERM)
    answer = await asyncio.to_thread(get, f"{server.url}/readyz")
    while answer[0] == 200:  # the signal is on its way
        answer = await asyncio.to_thread(get, f"{server.url}/readyz")
    assert answer == (503, "stopping\n")
    name = "one-drains" if server is replicas.one else "other-drains"
    await asyncio.to_thread(replicas.api.create, name, holder="x")
    await until(lambda: f"default/{name}" in page.lines, what="the change on the socket")
    assert page.codes == []
    assert (await asyncio.to_thread(get, f"{server.url}/healthz"))[0] == 200
    server.process.send_signal(signal.SIGTERM)  # the second one ends the draining
    await until(lambda: page.codes, what="the socket to be closed")
    assert page.codes == [RESTARTED]
    assert await asyncio.to_thread(server.process.wait, 60) == 0
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
