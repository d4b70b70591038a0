"""Watches: a slow reader is cut, all others get every event, and the stream ends properly."""

from __future__ import annotations

import asyncio

import pytest

from leases.apiserver.serving import LeaseApiServer
from tests.apiserver.clients import LEASES, lease
from tests.apiserver.watch.streams import LIMIT, Watch, call, open_and_never_read

BIG = "x" * 200_000
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def test_a_reader_that_does_not_read_is_cut_and_holds_nobody_up(api: LeaseApiServer) -> None:
    idle = await open_and_never_read(api.url)
    reading = await Watch.open(api.url)
    count = 100
    for number in range(count):
        await call(api.url, "POST", LEASES, lease(f"n{number:03}", holderIdentity=BIG))
        event = await reading.read()
        assert event is not None
        assert event["object"]["metadata"]["name"] == f"n{number:03}"
    assert await was_reset(idle)
    await reading.close()


async def was_reset(client: object) -> bool:
    """Read what is left: a cut connection ends without the last chunk."""
    loop = asyncio.get_running_loop()
    tail = b""
    try:
        while piece := await asyncio.wait_for(loop.sock_recv(client, 65536), LIMIT):  # type: ignore[arg-type]
            tail = (tail + piece)[-16:]
    except ConnectionResetError:
        return True
    finally:
        client.close()  # type: ignore[attr-defined]
    return not tail.endswith(b"0\r\n\r\n")


async def test_stopping_ends_watches_properly(api: LeaseApiServer) -> None:
    watch = await Watch.open(api.url)
    await api.stop()
    assert await watch.read() is None
    await watch.close()


async def test_a_watch_resumes_where_it_broke_off(api: LeaseApiServer) -> None:
    first = await call(api.url, "POST", LEASES, lease("a"))
    await call(api.url, "POST", LEASES, lease("b"))
    await call(api.url, "DELETE", f"{LEASES}/a")
    since = first["metadata"]["resourceVersion"]
    watch = await Watch.open(api.url, resourceVersion=since, timeoutSeconds="1")
    seen = []
    while (event := await watch.read()) is not None:
        seen.append((event["type"], event["object"]["metadata"]["name"]))
    assert seen == [("ADDED", "b"), ("DELETED", "a")]
    await watch.close()


async def test_a_selector_makes_additions_and_deletions_of_changes(api: LeaseApiServer) -> None:
    labelled = lease("a", holderIdentity="x")
    labelled["metadata"]["labels"] = {"tier": "one"}
    await call(api.url, "POST", LEASES, labelled)
    watch = await Watch.open(api.url, labelSelector="tier=two")
    for tier in ("two", "two", "three"):
        found = await call(api.url, "GET", f"{LEASES}/a")
        found["metadata"]["labels"] = {"tier": tier}
        found["spec"]["leaseTransitions"] = found["spec"].get("leaseTransitions", 0) + 1
        await call(api.url, "PUT", f"{LEASES}/a", found)
    events = [await watch.read() for _ in range(3)]
    assert [event["type"] for event in events if event] == ["ADDED", "MODIFIED", "DELETED"]
    last = events[2]
    assert last is not None
    assert last["object"]["metadata"]["labels"] == {"tier": "two"}
    version = last["object"]["metadata"]["resourceVersion"]
    assert version == (await call(api.url, "GET", f"{LEASES}/a"))["metadata"]["resourceVersion"]
    await watch.close()


async def test_a_watch_of_one_namespace_skips_all_others(api: LeaseApiServer) -> None:
    watch = await Watch.open(api.url)
    elsewhere = LEASES.replace("default", "kube-system")
    await call(api.url, "POST", elsewhere, lease("other"))
    await call(api.url, "POST", LEASES, lease("mine"))
    event = await watch.read()
    assert event is not None
    assert event["object"]["metadata"]["name"] == "mine"
    await watch.close()


async def test_initial_events_of_the_future_are_an_error_event(
    api: LeaseApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leases.apiserver.watch.stream.FUTURE_WAIT", 0)
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    watch = await Watch.open(api.url, resourceVersion="99999", **query)
    event = await watch.read()
    assert event is not None
    assert event["type"] == "ERROR"
    expected = event["object"]
    assert expected["message"].startswith("Timeout: Too large resource version: 99999, current: ")
    assert (expected["code"], expected["reason"]) == (504, "Timeout")
    assert expected["details"]["causes"] == [
        {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    ]
    assert await watch.read() is None
    await watch.close()


async def test_the_end_of_the_initial_events_is_a_row_of_a_table(api: LeaseApiServer) -> None:
    wanted = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    watch = await Watch.open(api.url, accept=TABLE, **wanted, allowWatchBookmarks="true")
    end = await watch.read()
    await watch.close()
    assert end is not None
    assert (end["type"], end["object"]["kind"]) == ("BOOKMARK", "Table")
    assert [each["name"] for each in end["object"]["columnDefinitions"]][:2] == ["Name", "Holder"]
    (row,) = end["object"]["rows"]
    assert row["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert row["cells"][0] == ""


async def test_a_watch_of_less_than_no_time_is_over_at_once(api: LeaseApiServer) -> None:
    await call(api.url, "POST", LEASES, lease("a"))
    watch = await Watch.open(api.url, timeoutSeconds="-1")
    assert await watch.read() is None
    await watch.close()
