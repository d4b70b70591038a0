"""A cluster that refuses, is overloaded or ill: what the reflector says, and how long it waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from leases.kube.backoff import Backoff
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.kube.lease_client import LeaseClient
from leases.wire.watch_decoding import Connected, Disconnected, ReflectorEvent
from tests.kube.conftest import FAST
from tests.support.following import applied, follow, words_of
from tests.support.scripted_api import (
    GONE,
    Reply,
    ScriptedServer,
    answer,
    listing,
    modified,
    silence,
    status,
    stream,
)

UNAUTHORIZED = answer(401, status(401, "Unauthorized", "Unauthorized"))


def disconnected(seen: list[ReflectorEvent]) -> list[Disconnected]:
    return [event for event in seen if isinstance(event, Disconnected)]


def connected(seen: list[ReflectorEvent]) -> bool:
    return isinstance(seen[-1], Connected)


class Waits(Backoff):
    """Notes the delays instead of drawing them out."""

    def __init__(self) -> None:
        super().__init__(first=0.5, limit=4.0, refused=15.0, jitter=lambda: 0.0)
        self.seconds: list[float] = []

    def delay(self, **given: Any) -> float:
        self.seconds.append(super().delay(**given))
        return 0.0


async def test_credentials_that_are_not_accepted_are_refused_and_asked_about_slowly(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    # Two per attempt: the first makes the client read its credentials again.
    cluster.script("list", *[UNAUTHORIZED] * 4, listing())
    waits = Waits()
    seen = await follow(client, waits, until=connected)
    assert words_of(seen) == ["Disconnected", "Disconnected", "Listed 0 start", "Connected"]
    assert waits.seconds == [15.0, 15.0]
    assert [event.refused for event in disconnected(seen)] == [True, True]
    assert disconnected(seen)[0].detail == (
        f"{cluster.url} does not accept our credentials (Unauthorized). "
        "Renew the token or client certificate; Leaseboard reads it again by itself."
    )


async def test_missing_rights_are_refused_with_the_rights_to_grant(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    said = 'leases.coordination.k8s.io is forbidden: User "viewer" cannot list resource "leases"'
    cluster.script("list", answer(403, status(403, "Forbidden", said)), listing())
    waits = Waits()
    seen = await follow(client, waits, until=connected)
    assert disconnected(seen) == [
        Disconnected(
            f"{said}. Grant get, list and watch on leases.coordination.k8s.io in all namespaces.",
            refused=True,
        )
    ]
    assert waits.seconds == [15.0]


@pytest.mark.parametrize(
    "overloaded",
    [
        answer(429, b"Too many requests", Retry_After="7"),
        answer(429, status(429, "TooManyRequests", details={"retryAfterSeconds": 7})),
    ],
)
async def test_an_overloaded_server_is_given_the_time_it_asks_for(
    cluster: ScriptedServer, client: LeaseClient, overloaded: Reply
) -> None:
    cluster.script("list", overloaded, listing())
    waits = Waits()
    seen = await follow(client, waits, until=connected)
    assert waits.seconds == [7.0]
    assert "asks us to wait" in disconnected(seen)[0].detail


async def test_repeated_failures_are_retried_ever_less_often(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    ill = answer(500, status(500, "InternalError", "etcd is away"))
    cluster.script("list", *[ill] * 5, listing())
    waits = Waits()
    seen = await follow(client, waits, until=connected)
    assert waits.seconds == [0.5, 1.0, 2.0, 4.0, 4.0]
    assert [event.refused for event in disconnected(seen)] == [False] * 5
    assert disconnected(seen)[0].detail == (
        f"{cluster.url} answered 500: etcd is away. Check the health of the API server."
    )


@pytest.mark.parametrize(
    "garbage", [b"<html>sign in</html>", b"{}", b'{"metadata":{},"items":[{"metadata":7}]}']
)
async def test_a_list_that_is_none_is_quoted(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff, garbage: bytes
) -> None:
    cluster.script("list", answer(200, garbage), listing())
    seen = await follow(client, backoff, until=connected)
    assert "no Lease API answer" in disconnected(seen)[0].detail


@pytest.mark.parametrize("limits", [msgspec.structs.replace(FAST, page=0.2)])
async def test_a_server_that_never_answers_is_given_up_after_the_limit(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script("list", silence(), listing())
    seen = await follow(client, backoff, until=connected)
    assert "did not answer within 0.2 s" in disconnected(seen)[0].detail


async def test_a_token_that_was_replaced_in_the_kubeconfig_is_read_again(
    cluster: ScriptedServer, tmp_path: Path, backoff: Backoff
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(_kubeconfig(cluster.url, "old"))
    client = await connect(parse_source("context:c"), kubeconfig=path, limits=FAST)
    path.write_text(_kubeconfig(cluster.url, "new"))
    await client.newest_version()
    path.write_text(_kubeconfig(cluster.url, "newest"))
    cluster.script("list", UNAUTHORIZED, listing())
    seen = await follow(client, backoff, until=connected)
    await client.close()
    assert words_of(seen) == ["Listed 0 start", "Connected"]
    tokens = [request.headers["authorization"] for request in cluster.seen("list")]
    assert tokens == ["Bearer new", "Bearer newest"]


async def test_a_token_file_that_was_rotated_is_read_again_in_the_middle_of_a_watch(
    cluster: ScriptedServer, tmp_path: Path, backoff: Backoff
) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    path = tmp_path / "kubeconfig"
    path.write_text(_kubeconfig(cluster.url, "").replace("token: ", f"tokenFile: '{token}'"))
    client = await connect(parse_source("context:c"), kubeconfig=path, limits=FAST)
    one, other = modified("a", version=101), modified("b", version=102)
    cluster.script("watch", stream(one), UNAUTHORIZED, stream(other, end="hang"))

    def until(seen: list[ReflectorEvent]) -> bool:
        token.write_text("new\n")
        return applied("b")(seen)

    seen = await follow(client, backoff, until=until)
    await client.close()
    assert words_of(seen) == ["Listed 0 start", "Connected", "Applied a@101", "Applied b@102"]
    tokens = [request.headers["authorization"] for request in cluster.seen("watch")]
    assert tokens == ["Bearer old", "Bearer old", "Bearer new"]


async def test_a_cluster_that_was_made_anew_elsewhere_is_found_through_its_context(
    cluster: ScriptedServer, tmp_path: Path, backoff: Backoff
) -> None:
    path = tmp_path / "kubeconfig"
    async with ScriptedServer().running() as former:
        path.write_text(_kubeconfig(former.url, "t"))
        client = await connect(parse_source("context:c"), kubeconfig=path, limits=FAST)
        await client.newest_version()
    path.write_text(_kubeconfig(cluster.url, "t"))
    seen = await follow(client, backoff, until=connected)
    await client.close()
    assert words_of(seen) == ["Disconnected", "Listed 0 start", "Connected"]
    assert client.host == cluster.url


async def test_a_kubeconfig_that_vanished_is_named_and_read_when_it_is_back(
    cluster: ScriptedServer, tmp_path: Path, backoff: Backoff
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(_kubeconfig(cluster.url, "t"))
    client = await connect(parse_source("context:c"), kubeconfig=path, limits=FAST)
    path.unlink()

    def until(seen: list[ReflectorEvent]) -> bool:
        path.write_text(_kubeconfig(cluster.url, "t"))
        return connected(seen)

    seen = await follow(client, backoff, until=until)
    await client.close()
    assert f"There is no kubeconfig at {path}" in disconnected(seen)[0].detail


def _kubeconfig(server: str, token: str) -> str:
    return (
        f"contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n"
        f"clusters: [{{name: k, cluster: {{server: '{server}'}}}}]\n"
        f"users: [{{name: u, user: {{token: {token}}}}}]\n"
    )


async def test_after_an_outage_gone_lists_soon(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    down, event = answer(500, status(500, "InternalError")), modified("a", version=101)
    cluster.script("watch", down, down, down, answer(410, GONE), stream(event, end="hang"))
    waits = Waits()
    await follow(client, waits, until=applied("a"))
    assert waits.seconds == [0.5, 1.0, 2.0, 0.5]
