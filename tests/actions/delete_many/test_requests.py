"""Deletes against a scripted server: each answer has its fate, and nobody is asked too often."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

import msgspec
import pytest

from leases.actions.delete_many import (
    MAX_AT_ONCE,
    ChosenLease,
    DeleteRequests,
    Fate,
    chosen,
    pack,
    unpack,
)
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.kube.lease_client import LeaseClient
from leases.wire.watch_decoding import lease_of
from tests.support.scripted_api import Connection, Reply, ScriptedServer, answer, lease, status

ONE = ChosenLease("ns", "one", "uid-one", "7", "a")
OK = answer(200, {"kind": "Status", "status": "Success"})
CONFLICT = answer(409, status(409, "Conflict"))
NOT_FOUND = answer(404, status(404, "NotFound"))


class Waits:
    """A clock that only waiting moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waited: list[float] = []

    async def pause(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer().running() as one:
        yield one


@pytest.fixture
async def client(server: ScriptedServer) -> AsyncIterator[LeaseClient]:
    one = await connect(parse_source(f"url:{server.url}"), kubeconfig=())
    yield one
    await one.close()


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def requests(client: LeaseClient, waits: Waits) -> DeleteRequests:
    return DeleteRequests(
        lambda: client,
        stopped=asyncio.Event(),
        pause=waits.pause,
        monotonic=lambda: waits.now,
    )


def now_is(name: str = "one", **spec: object) -> Reply:
    """The answer to a GET: the Lease, changed since it was chosen."""
    item = lease(name, version=9)
    item["spec"] |= spec
    return answer(200, item)


async def test_a_delete_requires_uid_and_version(server, requests):
    server.script("verb", OK)
    assert (await requests.delete(ONE)).fate is Fate.DELETED
    (sent,) = server.requests
    assert (sent.method, sent.path.rpartition("/")[2]) == ("DELETE", "one")
    options = msgspec.json.decode(sent.body)
    assert options["preconditions"] == {"uid": "uid-one", "resourceVersion": "7"}


async def test_one_that_was_renewed_is_left_alone(server, requests):
    server.script("verb", CONFLICT, now_is(renewTime="2026-11-20T12:04:27.000000Z"))
    found = await requests.delete(ONE)
    assert found.fate is Fate.LEFT_ALONE
    assert found.detail == "Renewed at 12:04:27, so it was left alone."
    assert [one.method for one in server.requests] == ["DELETE", "GET"]


@pytest.mark.parametrize(
    ("changed", "detail"),
    [
        ({"holderIdentity": "b"}, "b holds it now, so it was left alone."),
        ({"holderIdentity": ""}, "Nobody holds it now, so it was left alone."),
        ({}, "It changed since it was chosen, so it was left alone."),
    ],
)
async def test_one_that_changed_is_left_alone(server, requests, changed, detail):
    server.script("verb", CONFLICT, now_is(**changed))
    assert (await requests.delete(ONE)).detail == detail


async def test_one_that_was_made_anew_is_left_alone(server, requests):
    item = lease("one", version=9)
    item["metadata"]["uid"] = "another"
    server.script("verb", CONFLICT, answer(200, item))
    assert "made anew" in (await requests.delete(ONE)).detail


async def test_one_that_was_chosen_while_held_is_deleted_within_its_term(server, requests):
    held = chosen(lease_of(lease("one", version=7)), held=True)
    server.script("verb", CONFLICT, now_is(renewTime="2026-11-20T12:04:27.000000Z"), OK)
    assert (await requests.delete(held)).fate is Fate.DELETED
    options = msgspec.json.decode(server.requests[-1].body)
    assert options["preconditions"] == {"uid": "uid-one", "resourceVersion": "9"}


async def test_one_that_was_chosen_while_held_is_left_alone_after_its_term(server, requests):
    held = chosen(lease_of(lease("one", version=7)), held=True)
    server.script("verb", CONFLICT, now_is(holderIdentity="b"))
    assert (await requests.delete(held)).detail == "b holds it now, so it was left alone."


async def test_one_that_is_gone_is_not_counted_as_deleted(server, requests):
    server.script("verb", NOT_FOUND)
    found = await requests.delete(ONE)
    assert (found.fate, found.code, found.detail) == (
        Fate.GONE,
        404,
        "The API server did not have it any more.",
    )


async def test_a_refusal_is_told_and_not_tried_again(server, requests):
    server.script("verb", answer(403, status(403, "Forbidden", "a webhook denied the request")))
    found = await requests.delete(ONE)
    assert (found.fate, found.code) == (Fate.REFUSED, 403)
    assert found.detail == "a webhook denied the request"
    assert len(server.requests) == 1


@pytest.mark.parametrize("code", [429, 503])
async def test_retry_after_is_waited_for(server, requests, waits, code):
    busy = answer(code, status(code, "TooManyRequests"), Retry_After="7")
    server.script("verb", busy, OK)
    assert (await requests.delete(ONE)).fate is Fate.DELETED
    assert waits.waited == [7.0]


async def test_all_wait_when_one_is_told_to(server, requests, waits):
    server.script("verb", answer(429, status(429, "TooManyRequests"), Retry_After="3"), OK)
    assert (await requests.delete(ONE)).fate is Fate.DELETED
    waits.now = 0.0
    await requests.ready()
    assert waits.waited == [3.0, 3.0]
    assert requests.waits_for == ""


async def test_a_missing_answer_makes_a_later_404_doubtful(server, requests, waits):
    async def cut(connection: Connection) -> None:
        connection.reset()

    server.script("verb", cut, cut, NOT_FOUND)  # aiohttp itself tries twice
    found = await requests.delete(ONE)
    assert found.fate is Fate.GONE
    assert found.detail == "No answer came to the first try, and at the next one it was gone."
    assert len(waits.waited) == 1


async def test_a_stop_before_the_request_is_no_refusal(server, client):
    stopped = asyncio.Event()
    stopped.set()
    found = await DeleteRequests(lambda: client, stopped=stopped).delete(ONE)
    assert found.fate is Fate.NOT_TRIED
    assert found.detail == "The deletion was stopped before this request was sent."
    assert server.requests == []


async def test_a_stop_ends_the_waiting(server, client):
    stopped = asyncio.Event()
    requests = DeleteRequests(lambda: client, stopped=stopped)
    server.script("verb", answer(429, status(429, "TooManyRequests"), Retry_After="3600"))
    sent = asyncio.create_task(requests.delete(ONE))
    async with asyncio.timeout(60):
        while not requests.waits_for:
            await asyncio.sleep(0.01)
    stopped.set()
    found = await sent
    assert (found.fate, found.code) == (Fate.REFUSED, 429)
    assert "stopped" in found.detail


async def test_what_had_no_answer_when_it_was_stopped_is_not_known(server, client):
    stopped = asyncio.Event()

    async def cut(connection: Connection) -> None:
        stopped.set()
        connection.reset()

    server.script("verb", cut)
    requests = DeleteRequests(lambda: client, stopped=stopped)
    assert (await requests.delete(ONE)).fate is Fate.UNKNOWN


async def test_no_more_than_twenty_are_on_their_way(server, requests):
    on_their_way, most = 0, 0
    go_on = asyncio.Event()

    async def slow(connection: Connection) -> None:
        nonlocal on_their_way, most
        on_their_way += 1
        most = max(most, on_their_way)
        await go_on.wait()
        await OK(connection)
        on_their_way -= 1

    server.script("verb", slow)
    many = [msgspec.structs.replace(ONE, name=f"n-{number}") for number in range(60)]
    sent = asyncio.gather(*map(requests.delete, many))
    await _until(lambda: on_their_way == MAX_AT_ONCE)
    go_on.set()
    assert {found.fate for found in await sent} == {Fate.DELETED}
    assert most == MAX_AT_ONCE == 20
    assert len(server.requests) == 60


async def _until(seen: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not seen():
            await asyncio.sleep(0.01)


def test_a_choice_survives_the_database():
    held = msgspec.structs.replace(ONE, renew_time=datetime(2026, 11, 20, tzinfo=UTC), term="x")
    assert unpack(pack([ONE, held])) == [ONE, held]
