"""Many watchers at once: each gets every event, whatever one among them does."""

from __future__ import annotations

import resource
from pathlib import Path

from leases.apiserver.serving import LeaseApiServer
from tests.apiserver.clients import LEASES, Process, lease
from tests.apiserver.watch.crowd import Crowd, outlast_a_reader_that_never_reads
from tests.apiserver.watch.streams import Watch, call

WATCHERS = 200
# Far less than 200 watches with a full queue each would take.
MOST_MIB = 200


async def test_the_one_that_never_reads_is_cut_and_the_others_miss_nothing(tmp_path: Path) -> None:
    with Process(tmp_path / "data") as api:
        result = await outlast_a_reader_that_never_reads(api, watchers=WATCHERS)
    assert result.cut
    assert result.received == [result.written] * WATCHERS
    print(f"RSS {result.before:.0f} MiB before, {result.most:.0f} MiB at most")
    assert result.most < MOST_MIB


async def test_a_low_limit_of_open_files_is_raised(tmp_path: Path) -> None:
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, usual[1]))
    try:
        api = Process(tmp_path / "data").start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)
    try:
        async with Crowd(api.url, WATCHERS) as crowd:
            made = await call(api.url, "POST", LEASES, lease("a"))
            await crowd.reached(int(made["metadata"]["resourceVersion"]))
    finally:
        api.kill()


async def test_a_watch_for_lists_keeps_nothing_from_the_others(api: LeaseApiServer) -> None:
    """No event is a list: as upstream, it is sent as it is."""
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    odd = await Watch.open(api.url, accept=accept)
    plain = [await Watch.open(api.url) for _ in range(20)]
    await call(api.url, "POST", LEASES, lease("a"))
    for watch in (odd, *plain):
        event = await watch.read()
        assert event is not None
        assert event["object"]["kind"] == "Lease"
        await watch.close()
