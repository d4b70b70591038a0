"""Everything that happens to a watch, from the socket to the changes: each change comes once.

The Lease `x` is held by a, then b, then c. Whatever happens to the watch that shows b, what comes
after it ends with c. Last comes a Lease `end`: everything else comes before it.
"""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime

import msgspec
import pytest

from leases.kube.backoff import Backoff
from leases.kube.http_session import Timeouts
from leases.kube.lease_client import LeaseClient
from leases.kube.reflector import reflect
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update
from leases.tracking.tracker import Tracker
from tests.kube.conftest import FAST
from tests.support.following import LIMIT
from tests.support.scripted_api import (
    GONE,
    Reply,
    ScriptedServer,
    answer,
    bookmark,
    event,
    lease,
    listing,
    modified,
    silence,
    status,
    stream,
)

W = lease("w", version=90)
A_LISTED = listing(lease("x", version=100))
BOTH_LISTED = listing(W, lease("x", version=100))
B, C = (modified("x", version=v, holder=h) for v, h in ((101, "b"), (102, "c")))
C_LISTED = listing(lease("x", version=102, holder="c"), version="102")
END = modified("end", version=103)
C_WATCHED, END_WATCHED = stream(C, END, end="hang"), stream(END, end="hang")
ONCE = ("created a", "replaced b", "replaced c")
CONCLUDED = ("created a", "replaced b", "replaced c inferred")


class Fault(msgspec.Struct, frozen=True):
    """What the server answers to each kind of request, in turn, and the changes that follow."""

    name: str
    watch: tuple[Reply, ...]
    lists: tuple[Reply, ...] = (A_LISTED,)
    page: tuple[Reply, ...] = ()
    probe: tuple[Reply, ...] = (listing(version="200"),)
    expected: tuple[str, ...] = ONCE
    limits: Timeouts = FAST


FAULTS = (
    Fault("clean end", (stream(B), C_WATCHED)),
    Fault("cut connection", (stream(B, end="cut"), C_WATCHED)),
    Fault("cut in the middle of an event", (stream(B, C[:50], end="cut"), C_WATCHED)),
    Fault("reset", (stream(B, C[:50], end="reset"), C_WATCHED)),
    Fault("reset before the first event", (stream(B), stream(end="reset"), C_WATCHED)),
    Fault(
        "half-open",
        (stream(B, end="hang"), C_WATCHED),
        probe=(silence(), listing(version="200")),
        limits=msgspec.structs.replace(FAST, probe=0.2),
    ),
    Fault("gone, as the answer", (stream(B), answer(410, GONE), END_WATCHED), (A_LISTED, C_LISTED),
          expected=CONCLUDED),
    Fault("gone, as an event", (stream(B, event("ERROR", GONE)), END_WATCHED), (A_LISTED, C_LISTED),
          expected=CONCLUDED),
    Fault(
        "a continue token that ran out in the middle of the list",
        (stream(B, C, END, end="hang"),),
        (listing(W, next_page="t"), BOTH_LISTED),
        page=(answer(410, GONE),),
        expected=("created a", *ONCE),
    ),
    Fault(
        "a list that failed in the middle",
        (stream(B, C, END, end="hang"),),
        (listing(W, next_page="t"), BOTH_LISTED),
        page=(answer(500, status(500, "InternalError")),),
        expected=("created a", *ONCE),
    ),
    Fault("too many requests", (stream(B), answer(429, b"later", Retry_After="0"), C_WATCHED)),
    Fault("credentials that ran out", (stream(B), answer(401, status(401, "Unauthorized")),
                                       C_WATCHED)),
    Fault("failures in a row", (stream(B), *[answer(500, b"etcd is away")] * 3, C_WATCHED)),
    Fault("a failure as an event", (stream(B, event("ERROR", status(500, "InternalError"))),
                                    C_WATCHED)),
    Fault("garbage", (stream(B, b"<html>sign in</html>\n"), C_WATCHED)),
    Fault("bytes that are no text", (stream(B, b"\xff\xfe\x00{\n"), C_WATCHED)),
    Fault("an event of no Lease", (stream(B, event("MODIFIED", {"metadata": 7})), C_WATCHED)),
    Fault("an event cut at every byte", (stream(*(bytes([b]) for b in B + C + END), end="hang"),)),
    Fault("events sent twice", (stream(B, end="cut"), stream(B, C, B, END, end="hang"))),
    Fault("a bookmark, then a cut", (stream(B, bookmark(101), end="cut"), C_WATCHED)),
    Fault(
        "restored from a backup",
        (
            stream(B, end="cut"),
            stream(
                modified("x", version=8, holder="c"), modified("end", version=9), end="hang"
            ),
        ),
        (A_LISTED, listing(lease("x", version=7), version="7")),
        probe=(listing(version="7"),),
        expected=("created a", "replaced b", "replaced a inferred", "replaced c"),
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "limits"),
    [pytest.param(fault, fault.limits, id=fault.name) for fault in FAULTS],
)
async def test_every_change_is_reported_once_whatever_happens_to_the_watch(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff, fault: Fault
) -> None:
    cluster.script("watch", *fault.watch)
    cluster.script("list", *fault.lists)
    cluster.script("page", *fault.page)
    cluster.script("probe", *fault.probe)
    assert await changes_until_the_end(client, backoff) == [*fault.expected]


async def changes_until_the_end(client: LeaseClient, backoff: Backoff) -> list[str]:
    """All changes of a tracker until the Lease `end` was created."""
    reported: list[str] = []
    ended = asyncio.Event()

    def hear(update: Update) -> None:
        for change in update.changes:
            if change.name == "end":
                ended.set()
            if not ended.is_set():
                reported.append(f"{change.change} {change.holder}{' inferred' * change.inferred}")

    tracker = Tracker(Store("c"), [hear], lambda: datetime.now(UTC))
    async with contextlib.aclosing(reflect(client, since=None, backoff=backoff)) as events:
        following = asyncio.create_task(tracker.run(events))
        try:
            await asyncio.wait_for(ended.wait(), LIMIT)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
    # What there was when we first looked is inferred, but for when.
    return [word.replace("created a inferred", "created a") for word in reported]
