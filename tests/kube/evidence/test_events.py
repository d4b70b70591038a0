"""The Events of a Lease: newest first, whichever of their times is set."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from leases.domain.lease import ObjectName
from leases.kube.kube_objects import MAX_PAGES, KubeEvent, newest_events
from leases.kube.lease_client import LeaseClient
from leases.wire.status import Forbidden, Unreachable
from tests.support.following import LIMIT
from tests.support.scripted_api import ScriptedServer, answer, status

KEY = ObjectName("kube-system", "kube-scheduler")


async def events_of(client: LeaseClient, count: int = 20) -> tuple[KubeEvent, ...]:
    return await newest_events(client, "Lease", KEY, count=count, within=LIMIT)


def became(identity: str, **more: Any) -> dict[str, Any]:
    return {"reason": "LeaderElection", "message": f"{identity} became leader", **more}


async def test_they_come_newest_first_by_whichever_time_is_set(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    old = became("old", lastTimestamp="2026-11-20T10:00:00Z", source={"component": "sched"})
    new = became("new", eventTime="2026-11-20T12:00:00.000001Z", reportingComponent="sched")
    series = {"count": 7, "lastObservedTime": "2026-11-20T11:00:00.000000Z"}
    again = became("again", eventTime="2026-11-20T09:00:00.000000Z", series=series)
    never = became("never", lastTimestamp=None)
    cluster.script("verb", answer(200, {"items": [old, never, new, again]}))
    found = await events_of(client)
    assert [event.message.split()[0] for event in found] == ["new", "again", "old", "never"]
    assert [event.times for event in found] == [1, 7, 1, 1]
    assert [event.component for event in found] == ["sched", "", "sched", ""]
    assert found[0].at == datetime(2026, 11, 20, 12, 0, 0, 1, tzinfo=UTC)


async def test_only_events_about_this_lease_are_asked_for(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    cluster.script("verb", answer(200, {"items": None}))
    assert await events_of(client) == ()
    (request,) = cluster.requests
    assert request.path == "/api/v1/namespaces/kube-system/events"
    assert request.query["fieldSelector"] == (
        "involvedObject.kind=Lease,involvedObject.name=kube-scheduler"
    )


async def test_a_page_gets_the_newest_of_many(cluster: ScriptedServer, client: LeaseClient) -> None:
    many = [
        became(str(number), lastTimestamp=f"2026-11-20T10:{number:02}:00Z") for number in range(60)
    ]
    cluster.script("verb", answer(200, {"items": many}))
    found = await events_of(client, count=20)
    assert len(found) == 20
    assert found[0].message.startswith("59 ")


async def test_a_list_in_pages_is_read_on_but_not_for_ever(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    page = {"metadata": {"continue": "more"}, "items": [became("old")]}
    last = {"metadata": {}, "items": [became("new", lastTimestamp="2026-11-20T10:00:00Z")]}
    cluster.script("verb", answer(200, page), answer(200, last))
    found = await events_of(client)
    assert [event.message.split()[0] for event in found] == ["new", "old"]
    assert [request.query.get("continue") for request in cluster.requests] == [None, "more"]

    cluster.script("verb", answer(200, page))
    assert len(await events_of(client)) == MAX_PAGES


async def test_a_refusal_stays_a_refusal(cluster: ScriptedServer, client: LeaseClient) -> None:
    cluster.script("verb", answer(403, status(403, "Forbidden", "no")))
    with pytest.raises(Forbidden):
        await events_of(client)


async def test_a_body_that_is_no_list_is_named_so(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    cluster.script("verb", answer(200, b"<html>"))
    with pytest.raises(Unreachable, match="no list of Events"):
        await events_of(client)
