"""Events: one store behind two groups, with upstream's conversion and checks, kept for an hour."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from leases.apiserver.errors import log_failure
from leases.apiserver.registry import events
from leases.apiserver.registry.events import KEPT, EventExpiry
from leases.apiserver.serving import LeaseApiServer
from leases.apiserver.storage.store import ObjectStore, Plan
from tests.apiserver.clients import make_tokens
from tests.apiserver.codec.proto_client import KIND, field
from tests.apiserver.watch.streams import Watch, call

CORE = "/api/v1/namespaces/default/events"
NEW = "/apis/events.k8s.io/v1/namespaces/default/events"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
MERGE = "application/merge-patch+json"
LEASE = {"kind": "Lease", "namespace": "default", "name": "lock"}
AT = "2024-05-01T10:00:00.000001Z"


def old_style(name: str, **more: Any) -> dict[str, Any]:
    """An Event as client-go's record.EventRecorder writes it."""
    return {
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": LEASE,
        "reason": "LeaderElection",
        "message": "a became leader",
        "source": {"component": "controller"},
        "firstTimestamp": "2024-05-01T10:00:00Z",
        "lastTimestamp": "2024-05-01T10:05:00Z",
        "count": 2,
        "type": "Normal",
    } | more


def new_style(name: str, **more: Any) -> dict[str, Any]:
    """An Event as client-go's events.EventRecorder writes it."""
    return {
        "metadata": {"name": name, "namespace": "default"},
        "regarding": LEASE,
        "reason": "Elected",
        "note": "b leads",
        "eventTime": AT,
        "reportingController": "example.com/elector",
        "reportingInstance": "elector-0",
        "action": "Elect",
        "type": "Normal",
    } | more


def fields(refused: dict[str, Any]) -> list[str]:
    assert refused["code"] == 422, refused
    return [cause["field"] for cause in refused["details"]["causes"]]


async def test_each_group_shows_the_events_of_the_other(api: LeaseApiServer) -> None:
    await call(api.url, "POST", CORE, old_style("a"))
    await call(api.url, "POST", NEW, new_style("b"))
    a = await call(api.url, "GET", f"{NEW}/a")
    assert (a["apiVersion"], a["regarding"], a["note"]) == (
        "events.k8s.io/v1", LEASE, "a became leader",
    )  # fmt: skip
    assert (a["deprecatedSource"], a["deprecatedCount"]) == ({"component": "controller"}, 2)
    assert (a["deprecatedLastTimestamp"], a["eventTime"]) == ("2024-05-01T10:05:00Z", None)
    b = await call(api.url, "GET", f"{CORE}/b")
    assert (b["apiVersion"], b["involvedObject"], b["message"]) == ("v1", LEASE, "b leads")
    assert (b["reportingComponent"], b["source"]) == ("example.com/elector", {})
    assert (b["firstTimestamp"], b["lastTimestamp"], b["eventTime"]) == (None, None, AT)
    for path, version in ((CORE, "v1"), (NEW, "events.k8s.io/v1")):
        found = await call(api.url, "GET", path)
        assert found["apiVersion"] == version
        assert [item["metadata"]["name"] for item in found["items"]] == ["a", "b"]


async def test_a_patch_and_a_put_through_the_other_group(api: LeaseApiServer) -> None:
    await call(api.url, "POST", NEW, new_style("b"))
    series = {"series": {"count": 2, "lastObservedTime": "2024-05-01T10:01:00.000000Z"}}
    patched = await call(api.url, "PATCH", f"{NEW}/b", series, content_type=MERGE)
    assert patched["series"] == series["series"]
    core = await call(api.url, "GET", f"{CORE}/b")
    assert core["series"] == series["series"]
    del core["metadata"]["resourceVersion"]
    written = await call(api.url, "PUT", f"{CORE}/b", core | {"message": "still"})
    assert written["message"] == "still"
    assert (await call(api.url, "GET", f"{NEW}/b"))["note"] == "still"


async def test_watches_of_both_groups_get_a_write(api: LeaseApiServer) -> None:
    core = await Watch.open(api.url, CORE, resourceVersion="0")
    new = await Watch.open(api.url, NEW, resourceVersion="0")
    await call(api.url, "POST", CORE, old_style("a"))
    seen = [await core.read(), await new.read()]
    assert [event["object"]["apiVersion"] for event in seen if event] == [
        "v1",
        "events.k8s.io/v1",
    ]
    assert seen[0] is not None
    assert seen[1] is not None
    assert seen[0]["object"]["message"] == seen[1]["object"]["note"] == "a became leader"
    await core.close()
    await new.close()


async def test_selectors_use_the_names_of_their_group(api: LeaseApiServer) -> None:
    await call(api.url, "POST", CORE, old_style("a"))
    other = {"kind": "Pod", "namespace": "default", "name": "p"}
    await call(api.url, "POST", CORE, old_style("p", involvedObject=other))
    for path, selector in (
        (CORE, "involvedObject.kind=Lease,involvedObject.name=lock"),
        (CORE, "source=controller,involvedObject.kind!=Pod"),
        (NEW, "regarding.name=lock"),
    ):
        found = await call(api.url, "GET", path, fieldSelector=selector)
        assert [item["metadata"]["name"] for item in found["items"]] == ["a"], selector
    refused = await call(api.url, "GET", NEW, fieldSelector="involvedObject.name=lock")
    assert refused["message"] == "field label not supported: involvedObject.name"


async def test_a_value_that_json_escapes_is_selected_too(api: LeaseApiServer) -> None:
    for name, reason in (("a", "a<b"), ("b", 'say "b"'), ("c", "c")):
        await call(api.url, "POST", CORE, old_style(name, reason=reason))
        found = await call(api.url, "GET", CORE, fieldSelector=f"reason={reason}")
        assert [item["metadata"]["name"] for item in found["items"]] == [name]


async def test_the_checks_of_the_old_style(api: LeaseApiServer) -> None:
    elsewhere = LEASE | {"namespace": "kube-system"}
    refused = await call(api.url, "POST", CORE, old_style("a", involvedObject=elsewhere))
    assert fields(refused) == ["involvedObject.namespace"]
    named = await call(api.url, "POST", CORE, old_style("With_Capitals"))
    assert named["metadata"]["name"] == "With_Capitals"


async def test_the_checks_of_the_new_style(api: LeaseApiServer) -> None:
    bare = {"metadata": {"name": "x", "namespace": "default"}, "regarding": LEASE}
    assert fields(await call(api.url, "POST", NEW, bare)) == ["eventTime", "type"]
    assert fields(await call(api.url, "POST", NEW, bare | {"eventTime": AT})) == [
        "reportingController", "reportingController", "reportingController", "reportingInstance",
        "action", "reason", "type",
    ]  # fmt: skip
    long = new_style("x", action="a" * 129, note="n" * 1025, series={"count": 1})
    assert fields(await call(api.url, "POST", NEW, long)) == [
        "action", "message", "series.count", "series.lastObservedTime",
    ]  # fmt: skip
    await call(api.url, "POST", NEW, new_style("b"))
    changed = await call(api.url, "PATCH", f"{NEW}/b", {"note": "x"}, content_type=MERGE)
    assert fields(changed) == ["message"]


async def test_tables_of_both_groups_agree(api: LeaseApiServer) -> None:
    await call(api.url, "POST", CORE, old_style("a"))
    core, new = [await call(api.url, "GET", path, accept=TABLE) for path in (CORE, NEW)]
    cells = core["rows"][0]["cells"]
    assert cells[1:4] == ["Normal", "LeaderElection", "lease/lock"]
    assert cells[4:7] == ["", "controller", "a became leader"]
    assert cells[8:] == [2, "a"]
    assert new["rows"][0]["cells"][1:] == cells[1:]


async def test_a_binary_event(api: LeaseApiServer) -> None:
    about = field(1, "Lease") + field(2, "default") + field(3, "lock")
    raw = field(1, field(1, "a") + field(3, "default")) + field(2, about) + field(4, "said")
    raw += field(6, field(1, 1714557600)) + field(8, 7) + field(10, b"") + field(14, "me")
    await call(
        api.url,
        "POST",
        CORE,
        b"k8s\0" + field(1, field(1, "v1") + field(2, "Event")) + field(2, raw),
        content_type=KIND,
    )
    found = await call(api.url, "GET", f"{CORE}/a")
    assert (found["involvedObject"], found["message"], found["count"]) == (LEASE, "said", 7)
    assert (found["firstTimestamp"], found["eventTime"]) == ("2024-05-01T10:00:00Z", None)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[ObjectStore]:
    store = ObjectStore(tmp_path, log_failure)
    await store.open()
    yield store
    await store.close()


async def write(store: ObjectStore, resource: str, name: str) -> None:
    obj = {"metadata": {"name": name, "namespace": "default"}}
    await store.write(resource, "default", name, lambda _: Plan(obj))


async def test_an_event_goes_an_hour_after_its_last_write(store: ObjectStore) -> None:
    clock = Clock()
    for name in ("early", "renewed"):
        await write(store, "events", name)
    await write(store, "leases", "lock")
    expiry = EventExpiry(store, log_failure, monotonic=clock)
    clock.now = 60
    await write(store, "events", "renewed")
    await expiry.expire()
    clock.now = KEPT - 1
    await expiry.expire()
    assert store.keys("events") == ["default/early", "default/renewed"]
    clock.now = KEPT
    await expiry.expire()
    assert store.keys("events") == ["default/renewed"]
    clock.now = KEPT + 60
    await expiry.expire()
    assert store.keys("events") == []
    assert store.keys("leases") == ["default/lock"]
    await expiry.close()


async def test_a_server_removes_old_events_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "KEPT", 0.05)
    monkeypatch.setattr(events, "EVERY", 0.02)
    make_tokens(tmp_path)
    server = LeaseApiServer(data=tmp_path)
    await server.start()
    await call(server.url, "POST", CORE, old_style("a"))
    async with asyncio.timeout(60):
        while (await call(server.url, "GET", CORE))["items"]:
            await asyncio.sleep(0.02)
    await server.stop()
