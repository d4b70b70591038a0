"""Large objects are checked in a thread of their own, so that nobody else waits for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from leases.apiserver.codec.decoding import LARGE
from leases.apiserver.registry import create_update, namespaces
from leases.apiserver.serving import LeaseApiServer
from tests.apiserver.clients import LEASES
from tests.apiserver.watch.streams import call

LIMIT = 15
NAMESPACES = "/api/v1/namespaces"
MERGE = "application/merge-patch+json"


def large(name: str, holder: str = "a") -> dict[str, Any]:
    notes = {"note": "x" * (LARGE + 1)}
    return {"metadata": {"name": name, "annotations": notes}, "spec": {"holderIdentity": holder}}


def before(monkeypatch: pytest.MonkeyPatch, name: str, then: Callable[[], object]) -> None:
    """Call something before each check."""
    check = getattr(create_update, name)

    def measured(*given: Any, **more: Any) -> Any:
        then()
        return check(*given, **more)

    monkeypatch.setattr(create_update, name, measured)


async def test_only_large_objects_are_checked_aside(
    monkeypatch: pytest.MonkeyPatch, api: LeaseApiServer
) -> None:
    threads: list[int] = []
    for name in ("create_errors", "update_errors"):
        before(monkeypatch, name, lambda: threads.append(threading.get_ident()))
    here = threading.get_ident()

    async def aside(method: str, body: Any, name: str = "", **more: str) -> bool:
        threads.clear()
        answer = await call(api.url, method, LEASES + name, body, **more)
        assert answer["kind"] == "Lease"
        (thread,) = threads
        return thread != here

    small = {"spec": {"holderIdentity": "b"}}
    assert not await aside("POST", {"metadata": {"name": "small"}})
    assert not await aside("PATCH", small, "/small", content_type=MERGE)
    assert await aside("POST", large("big"))
    assert await aside("PATCH", small, "/big", content_type=MERGE)
    assert await aside("PATCH", large("small"), "/small", content_type=MERGE)
    found = await call(api.url, "GET", f"{LEASES}/big")
    assert await aside("PUT", found | {"spec": {"leaseTransitions": 1}}, "/big")


async def test_meanwhile_another_write_to_it_waits(
    monkeypatch: pytest.MonkeyPatch, api: LeaseApiServer
) -> None:
    await call(api.url, "POST", LEASES, large("big"))
    checking, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def pause() -> None:
        if threading.current_thread() is not threading.main_thread():
            loop.call_soon_threadsafe(checking.set)
            assert go_on.wait(LIMIT)

    before(monkeypatch, "update_errors", pause)
    patch = {"metadata": {"labels": {"one": "1"}}}
    async with asyncio.timeout(LIMIT):
        one = asyncio.create_task(
            call(api.url, "PATCH", f"{LEASES}/big", patch, content_type=MERGE)
        )
        await checking.wait()
        other = asyncio.create_task(call(api.url, "DELETE", f"{LEASES}/big"))
        assert (await call(api.url, "GET", f"{LEASES}/big"))["metadata"].get("labels") is None
        assert not other.done()
        go_on.set()
        assert (await one)["metadata"]["labels"] == {"one": "1"}
        assert (await other)["status"] == "Success"


async def test_a_namespace_ends_with_what_was_on_its_way_into_it(
    monkeypatch: pytest.MonkeyPatch, api: LeaseApiServer
) -> None:
    monkeypatch.setattr(namespaces, "SWEEP_AFTER", 0)
    checking, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def pause() -> None:
        loop.call_soon_threadsafe(checking.set)
        assert go_on.wait(LIMIT)

    await call(api.url, "POST", NAMESPACES, {"metadata": {"name": "short"}})
    leases = LEASES.replace("default", "short")
    before(monkeypatch, "create_errors", pause)
    async with asyncio.timeout(LIMIT):
        put = asyncio.create_task(call(api.url, "PUT", f"{leases}/late", large("late")))
        await checking.wait()
        gone = await call(api.url, "DELETE", f"{NAMESPACES}/short")
        assert gone["status"] == {"phase": "Terminating"}
        go_on.set()
        assert (await put)["metadata"]["namespace"] == "short"
        while (await call(api.url, "GET", f"{NAMESPACES}/short")).get("code") != 404:
            pass
