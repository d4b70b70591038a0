"""What each verb sends, and what its failures become."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from leases.domain.lease import ObjectName
from leases.kube.lease_client import PATH as PATH_OF_REVIEWS
from leases.kube.lease_client import LeaseClient, ReadOnly, may
from leases.wire.status import (
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from tests.kube.conftest import FAST
from tests.support.following import list_whole
from tests.support.scripted_api import (
    GONE,
    Connection,
    Reply,
    ScriptedServer,
    answer,
    event,
    lease,
    silence,
    status,
    stream,
)

KEY = ObjectName("ns", "a")
PATH = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
Verb = Callable[[LeaseClient], Awaitable[Any]]
VERBS: dict[str, Verb] = {
    "get": lambda client: client.get(KEY),
    "raw_get": lambda client: client.raw_get(KEY),
    "create": lambda client: client.create(lease("a", version=1)),
    "replace": lambda client: client.replace(KEY, lease("a", version=1)),
    "patch": lambda client: client.patch(KEY, {"spec": {}}),
    "raw_patch": lambda client: client.raw_patch(KEY, {"spec": {}}),
    "delete": lambda client: client.delete(KEY),
}


async def hang_up(connection: Connection) -> None:
    """Close the connection without an answer."""


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (answer(401, status(401, "Unauthorized")), Unauthorized),
        (answer(403, status(403, "Forbidden")), Forbidden),
        (answer(404, status(404, "NotFound")), NotFound),
        (answer(409, status(409, "Conflict")), Conflict),
        (answer(410, GONE), Gone),
        (answer(422, status(422, "Invalid")), Invalid),
        (answer(429, b"slow down", Retry_After="1"), TooManyRequests),
        (answer(500, b"<html>oops</html>"), ApiError),
        (hang_up, Unreachable),
    ],
)
async def test_every_verb_raises_what_the_answer_means(
    cluster: ScriptedServer, client: LeaseClient, verb: Verb, reply: Reply, error: type[ApiError]
) -> None:
    cluster.script("verb", reply)
    with pytest.raises(error) as raised:
        await verb(client)
    assert type(raised.value) is error


@pytest.mark.parametrize("verb", [name for name in VERBS if name != "delete"])
async def test_a_good_answer_that_is_no_lease_is_no_answer(
    cluster: ScriptedServer, client: LeaseClient, verb: str
) -> None:
    cluster.script("verb", answer(200, b"<html>sign in</html>"))
    with pytest.raises(Unreachable):
        await VERBS[verb](client)


@pytest.mark.parametrize("limits", [msgspec.structs.replace(FAST, answer=0.2)])
async def test_an_answer_that_does_not_come_is_given_up(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    cluster.script("verb", silence())
    with pytest.raises(Unreachable, match="did not answer within 0.2 s"):
        await client.get(KEY)


async def test_a_body_that_is_cut_short_is_no_answer(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    async def cut(connection: Connection) -> None:
        await connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{"metadata"')

    cluster.script("verb", cut)
    with pytest.raises(Unreachable, match="broke"):
        await client.get(KEY)


async def test_a_watch_may_be_refused_before_its_first_event(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    cluster.script("watch", answer(403, status(403, "Forbidden")))
    with pytest.raises(Forbidden):
        async with client.watch("1", timeout_seconds=5):
            pytest.fail("the watch was refused")


async def test_a_watch_line_without_end_is_refused(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    megabyte = b"x" * 1024 * 1024
    cluster.script("watch", stream(*[megabyte] * 9, event("ADDED", lease("a", version=1))))
    async with client.watch("1", timeout_seconds=5) as events:
        with pytest.raises(Unreachable, match="longer than"):
            await anext(events)


async def test_a_merge_patch_says_so_and_a_dry_run_too(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    cluster.script("verb", answer(200, lease("a", version=8)))
    assert (await client.patch(KEY, {"spec": {"x": 1}}, dry_run=True)).resource_version == "8"
    (sent,) = cluster.requests
    assert (sent.method, sent.path) == ("PATCH", f"{PATH}/a")
    assert sent.query == {"fieldManager": "leaseboard", "dryRun": "All"}
    assert sent.headers["content-type"] == "application/merge-patch+json"
    assert json.loads(sent.body) == {"spec": {"x": 1}}


async def test_another_kind_of_patch_goes_as_it_is(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    cluster.script("verb", answer(200, lease("a", version=8)))
    patch = [{"op": "remove", "path": "/metadata/labels"}]
    assert (await client.raw_patch(KEY, patch, "application/json-patch+json"))["spec"]
    (sent,) = cluster.requests
    assert sent.headers["content-type"] == "application/json-patch+json"
    assert json.loads(sent.body) == patch


async def test_a_dry_deletion_says_so_in_the_body_because_the_query_would_not_be_read(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    cluster.script("verb", answer(200, status(200, "")))
    await client.delete(KEY, uid="u-1", resource_version="8", dry_run=True)
    (sent,) = cluster.requests
    assert (sent.method, sent.path) == ("DELETE", f"{PATH}/a")
    assert json.loads(sent.body) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "dryRun": ["All"],
        "preconditions": {"uid": "u-1", "resourceVersion": "8"},
    }


@pytest.mark.parametrize("write", ["create", "replace", "patch", "raw_patch", "delete"])
async def test_a_write_names_the_field_manager_and_the_person(
    cluster: ScriptedServer, client: LeaseClient, write: str
) -> None:
    cluster.script("verb", answer(200, lease("a", version=8)), answer(200, lease("a", version=8)))
    await VERBS[write](client)
    await VERBS[write](client.acting_as("ada"))
    ours, hers = cluster.requests
    manager = {} if write == "delete" else {"fieldManager": "leaseboard"}
    assert ours.query == hers.query == manager
    assert "impersonate-user" not in ours.headers
    assert hers.headers["impersonate-user"] == "ada"


@pytest.mark.parametrize("write", ["create", "replace", "patch", "raw_patch", "delete"])
async def test_nothing_is_written_to_a_cluster_that_is_only_read(
    cluster: ScriptedServer, client: LeaseClient, write: str
) -> None:
    client.read_only = True
    for one in (client, client.acting_as("ada")):
        with pytest.raises(ReadOnly, match="Nothing was sent"):
            await VERBS[write](one)
    assert cluster.requests == []
    cluster.script("verb", answer(200, lease("a", version=8)))
    assert (await client.get(KEY)).resource_version == "8"


async def test_an_access_review_asks_about_one_verb_of_one_namespace(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    cluster.script(
        "verb",
        answer(201, {"status": {"allowed": True}}),
        answer(201, {"status": {"allowed": False, "reason": "no"}}),
        answer(201, {"kind": "SelfSubjectAccessReview"}),
    )
    assert await may(client, "patch", "ns", within=5)
    assert not await may(client.acting_as("ada"), "delete", "ns", within=5)
    with pytest.raises(Unreachable, match="no review"):
        await may(client, "patch", "ns", within=5)
    first, second, _ = cluster.requests
    assert (first.method, first.path) == ("POST", PATH_OF_REVIEWS)
    assert json.loads(first.body)["spec"]["resourceAttributes"] == {
        "verb": "patch",
        "group": "coordination.k8s.io",
        "resource": "leases",
        "namespace": "ns",
    }
    assert second.headers["impersonate-user"] == "ada"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "%2e%2e"])
async def test_a_name_that_would_address_something_else_is_never_sent(
    cluster: ScriptedServer, client: LeaseClient, name: str
) -> None:
    with pytest.raises(Invalid, match="no object's name"):
        await client.delete(ObjectName("ns", name))
    with pytest.raises(Invalid, match="no object's name"):
        await client.get(ObjectName(name, "a"))
    assert cluster.requests == []


async def test_odd_characters_of_a_name_are_quoted(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    cluster.script("verb", answer(404, status(404, "NotFound")))
    with pytest.raises(NotFound):
        await client.get(ObjectName("ns", "a?b#c d"))
    (sent,) = cluster.requests
    assert (sent.path, sent.query) == (f"{PATH}/a%3Fb%23c%20d", {})


async def test_the_client_names_itself(cluster: ScriptedServer, client: LeaseClient) -> None:
    await list_whole(client)
    assert cluster.requests[0].headers["user-agent"] == "leaseboard/0.1"
