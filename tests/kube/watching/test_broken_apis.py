"""What no API server would send hides nothing else of a list, and ends no watch."""

from __future__ import annotations

import pytest

from leases.kube.backoff import Backoff
from leases.kube.lease_client import LeaseClient
from leases.wire.watch_decoding import Listed
from tests.support.following import applied, follow, words_of
from tests.support.scripted_api import ScriptedServer, answer, listing, modified, stream

DEEP = b"[" * 5000 + b"]" * 5000
GOOD = modified("odd", version=101)
POISON = {
    "deep": GOOD.replace(b'"spec":{', b'"spec":{"more":' + DEEP + b","),
    "version": GOOD.replace(b'"101"', b'"' + b"1" * 5000 + b'"'),
    "transitions": GOOD.replace(b'"spec":{', b'"spec":{"leaseTransitions":1180591620717411303424,'),
    "huge": GOOD.replace(b'"spec":{', b'"spec":{"leaseTransitions":' + b"9" * 5000 + b","),
    "nan": GOOD.replace(b'"leaseDurationSeconds":15', b'"leaseDurationSeconds":NaN'),
    "infinite": GOOD.replace(b'"leaseDurationSeconds":15', b'"leaseDurationSeconds":1e999'),
    "naive": GOOD.replace(b'"spec":{', b'"spec":{"renewTime":"2026-11-20T12:00:00.000000",'),
    "nameless": GOOD.replace(b'"name":"odd"', b'"name":""'),
    "surrogate": GOOD.replace(b'"holderIdentity":"a"', rb'"holderIdentity":"\ud800"'),
    "no text": GOOD.replace(b'"holderIdentity":"a"', b'"holderIdentity":"\xff"'),
}


@pytest.mark.parametrize("poison", POISON.values(), ids=POISON)
async def test_the_watch_goes_on_after_an_event_that_cannot_be_followed(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff, poison: bytes
) -> None:
    assert poison != GOOD
    before, later = modified("a", version=100), modified("b", version=102)
    cluster.script("watch", stream(before + poison), stream(poison + later, end="hang"))
    seen = await follow(client, backoff, until=applied("b"))
    words = ["Applied a@100", "Unreadable", "Unreadable", "Applied b@102"]
    assert words_of(seen) == ["Listed 0 start", "Connected", *words]
    assert cluster.seen("watch")[1].query["resourceVersion"] in ("100", "101")


@pytest.mark.parametrize("poison", POISON.values(), ids=POISON)
async def test_a_list_names_what_cannot_be_followed_and_brings_the_rest(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff, poison: bytes
) -> None:
    others = [modified(name, version=9) for name in ("a", "b")]
    bodies = [line[line.index(b'"object":') + 9 : -2] for line in (others[0], poison, others[1])]
    page = b'{"metadata":{"resourceVersion":"100"},"items":[' + b",".join(bodies) + b"]}"
    cluster.script("list", answer(200, page), listing())
    cluster.script("watch", stream(end="hang"))
    seen = await follow(client, backoff, until=lambda seen: isinstance(seen[-1], Listed))
    listed = seen[-1]
    assert isinstance(listed, Listed)
    assert [lease.metadata.name for lease in listed.leases] == ["a", "b"]
    assert len(listed.unreadable) == 1
