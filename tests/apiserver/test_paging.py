"""Pages show one state; the past can be asked for while it is remembered, the future awaited."""

from __future__ import annotations

import asyncio
import json
from base64 import urlsafe_b64decode
from typing import Any

import pytest

from leases.apiserver.registry import get_list
from leases.apiserver.serving import LeaseApiServer
from leases.apiserver.storage import store
from tests.apiserver.clients import LEASES, lease
from tests.apiserver.watch.streams import call


async def fill(api: LeaseApiServer, *names: str) -> list[dict[str, Any]]:
    return [await call(api.url, "POST", LEASES, lease(name)) for name in names]


def names(found: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in found["items"]]


async def test_later_pages_show_the_state_of_the_first(api: LeaseApiServer) -> None:
    await fill(api, "a", "b", "c", "d")
    first = await call(api.url, "GET", LEASES, limit="2")
    await call(api.url, "DELETE", f"{LEASES}/c")
    await fill(api, "e")
    token = first["metadata"]["continue"]
    second = await call(api.url, "GET", LEASES, **{"continue": token})
    assert (names(first), names(second)) == (["a", "b"], ["c", "d"])
    assert second["metadata"] == {"resourceVersion": first["metadata"]["resourceVersion"]}
    start = json.loads(urlsafe_b64decode(token + "=="))
    assert start["start"] == "b\0"


async def test_a_page_too_old_offers_to_go_on_from_the_present(
    api: LeaseApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(api, "a", "b", "c")
    first = await call(api.url, "GET", LEASES, limit="1")
    monkeypatch.setattr(store, "WINDOW_EVENTS", 1)
    await fill(api, "d", "e")
    gone = await call(api.url, "GET", LEASES, **{"continue": first["metadata"]["continue"]})
    assert (gone["code"], gone["reason"]) == (410, "Expired")
    rest = await call(api.url, "GET", LEASES, **{"continue": gone["metadata"]["continue"]})
    assert names(rest) == ["b", "c", "d", "e"]


async def test_a_limit_at_a_version_means_exactly_that_version(api: LeaseApiServer) -> None:
    versions = [made["metadata"]["resourceVersion"] for made in await fill(api, "a", "b", "c")]
    past = await call(api.url, "GET", LEASES, limit="5", resourceVersion=versions[1])
    assert names(past) == ["a", "b"]
    least = await call(api.url, "GET", LEASES, resourceVersion=versions[1])
    assert names(least) == ["a", "b", "c"]


async def test_namespaces_are_sorted_as_etcd_sorts_keys(api: LeaseApiServer) -> None:
    for namespace in ("team", "team-a"):
        await call(api.url, "POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        await call(api.url, "POST", LEASES.replace("default", namespace), lease("x"))
    found = await call(api.url, "GET", "/apis/coordination.k8s.io/v1/leases")
    assert [item["metadata"]["namespace"] for item in found["items"]] == ["team-a", "team"]


async def test_a_version_to_come_is_waited_for(api: LeaseApiServer) -> None:
    (made,) = await fill(api, "a")
    coming = str(int(made["metadata"]["resourceVersion"]) + 1)
    waiting = asyncio.create_task(call(api.url, "GET", LEASES, resourceVersion=coming))
    await fill(api, "b")
    assert names(await waiting) == ["a", "b"]


async def test_a_version_that_does_not_come_is_a_timeout(
    api: LeaseApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(get_list, "FUTURE_WAIT", 0.1)
    expected = await call(api.url, "GET", LEASES, resourceVersion="999999")
    assert (expected["code"], expected["reason"]) == (504, "Timeout")
    assert expected["details"]["retryAfterSeconds"] == 1
    assert expected["message"].startswith("Timeout: Too large resource version: 999999, current: ")
