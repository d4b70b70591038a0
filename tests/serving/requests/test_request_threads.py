"""The threads of requests: so many, in turn, and what they opened is closed."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.urls import reverse

from dashboard.access.sign_in_limits import COOKIE, PATHS, SALT
from dashboard.serving.request_threads import ThreadPools, Threads, TooBusy


def threads(*, size: int = 2, waiting: int = 3, per_client: int = 3) -> Threads:
    return Threads("test", size=size, waiting=waiting, per_client=per_client)


async def turns(pool: Threads, client: str, seen: set[str], go: asyncio.Event) -> None:
    async with pool.one(client):
        seen.add(await sync_to_async(lambda: threading.current_thread().name)())
        await go.wait()


async def test_more_requests_than_threads_wait_for_one():
    pool, seen, go = threads(), set[str](), asyncio.Event()
    asking = [asyncio.create_task(turns(pool, "a", seen, go)) for _ in range(5)]
    async with asyncio.timeout(60):
        while len(seen) < 2:
            await asyncio.sleep(0.01)
    go.set()
    await asyncio.gather(*asking)
    assert len(seen) == 2


async def test_one_request_has_one_thread_for_all_that_it_does():
    async with threads().one("a"):
        names = {await sync_to_async(threading.get_ident)() for _ in range(5)}
    assert len(names) == 1


@pytest.mark.parametrize(("waiting", "per_client"), [(2, 9), (9, 2)])
async def test_a_request_too_many_is_refused_at_once(waiting, per_client):
    pool, go = threads(size=1, waiting=waiting, per_client=per_client), asyncio.Event()
    asking = [asyncio.create_task(turns(pool, "a", set(), go)) for _ in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(TooBusy):
        async with pool.one("a"):
            pass
    go.set()
    await asyncio.gather(*asking)
    async with pool.one("a"):
        pass


async def test_one_address_leaves_room_in_the_line_for_others():
    pool, go, seen = threads(size=1, waiting=9, per_client=1), asyncio.Event(), set[str]()
    asking = [asyncio.create_task(turns(pool, "a", seen, go)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(TooBusy):
        async with pool.one("a"):
            pass
    asking.append(asyncio.create_task(turns(pool, "b", seen, go)))
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(*asking)


async def test_a_cancelled_wait_keeps_no_thread():
    pool, go = threads(size=1), asyncio.Event()
    first = asyncio.create_task(turns(pool, "a", set(), go))
    second = asyncio.create_task(turns(pool, "a", set(), go))
    await asyncio.sleep(0)
    second.cancel()
    go.set()
    await asyncio.gather(first, second, return_exceptions=True)
    async with asyncio.timeout(60), AsyncExitStack() as stack:
        await stack.enter_async_context(pool.one("a"))


@pytest.mark.django_db(transaction=True)
async def test_a_connection_that_a_request_left_open_is_closed():
    def ask() -> object:
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT 1")
        return connections["default"].connection

    pool = threads(size=1)
    async with pool.one("a"):
        assert await sync_to_async(ask)() is not None
    async with pool.one("a"):
        assert await sync_to_async(lambda: connections["default"].connection)() is None


def request(method: str, path: str, cookie: str = "") -> dict[str, object]:
    return {"method": method, "path": path, "headers": [(b"cookie", cookie.encode())]}


def test_password_checks_health_and_slow_apis_have_threads_of_their_own():
    choice = ThreadPools()
    assert choice.of(request("GET", "/healthz")) is choice.health
    assert choice.of(request("GET", "/readyz")) is choice.health
    assert choice.of(request("GET", "/sign-in/")) is choice.pages
    assert choice.of(request("GET", "/c/a/leases/ns/name/")) is choice.pages
    assert choice.of(request("POST", "/c/a/leases/ns/name/edit/")) is choice.of_one_lease
    assert choice.of(request("POST", "/clusters/new/")) is choice.of_one_lease
    assert choice.of(request("POST", "/clusters/7/")) is choice.of_one_lease
    assert choice.of(request("GET", "/clusters/")) is choice.pages
    assert reverse("sign_in") in PATHS
    for path in (reverse("sign_in"), reverse("admin:login")):
        assert choice.of(request("POST", path)) is choice.sign_in
    assert choice.sign_in.size == 1


def test_a_known_browser_does_not_wait_among_strangers():
    from django.core import signing

    choice = ThreadPools()
    known = f"a=b; {COOKIE}={signing.dumps(['ada', 'x'], salt=SALT)}"
    assert choice.of(request("POST", "/sign-in/", known)) is choice.known_sign_in
    assert choice.of(request("POST", "/sign-in/", known[:-1])) is choice.sign_in
    assert choice.of(request("POST", "/sign-in/", f"{COOKIE}=x")) is choice.sign_in
