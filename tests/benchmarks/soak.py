"""Everything at once for a long time: `python -m tests.benchmarks.soak [--minutes 60]`.

A leasestorm and an embedded Lease API, two replicas on one PostgreSQL behind a proxy, pages and
walls that come and go, and a receiver of notifications that refuses now and then. Meanwhile API
servers are cut and answer 410 Gone, PostgreSQL is stopped and killed, and in the first third
replicas are ended and killed. Prints whether history is what was done, whether every incident was
notified, whether overview, Leases and wall answered all the time, whether a log has a traceback,
and whether memory stayed flat (less than 0.1 MiB a minute, from ten minutes after a start on).
Exits 1 if not. SOAK_KEEP names a folder that keeps logs.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import time
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path

from tests.benchmarks.parts.command import main
from tests.benchmarks.parts.elections_story import ElectionsStory
from tests.benchmarks.parts.restarts import restart
from tests.benchmarks.parts.soak_faults import Parts, make_faults
from tests.benchmarks.parts.soak_memory import Memory
from tests.benchmarks.parts.soak_messages import all_sent, check_messages, make_receiver
from tests.benchmarks.parts.soak_visitors import Visitors
from tests.benchmarks.parts.storm_load import (
    CLUSTER,
    SETTLE,
    ask,
    check_history,
    leasestorm,
    source,
)
from tests.support.api_client import LeaseApi
from tests.support.balancer import balancing
from tests.support.postgres import running
from tests.support.processes import free_port, get
from tests.support.programs.api_process import ApiProcess
from tests.support.receiving import http_receiver
from tests.support.replicas import Replicas
from tests.support.signing_in import cookies

STORM_SECONDS = 3600.0  # the longest that leasestorm allows
LONGEST_CUT = 30.0  # seconds, with the time to connect again
ELECTIONS = "c"  # the cluster of the embedded Lease API
RESTARTS = 1 / 3  # of the time, in which replicas end; 10 minutes at most
MAX_RESTARTS = 600.0


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument(
        "--warm", type=float, default=10.0, help="minutes from a start to flat (10)"
    )
    parser.add_argument("--leases", type=int, default=2_000, help="of nodes in the storm (2000)")
    parser.add_argument("--elections", type=int, default=100, help="in the storm (100)")
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--walls", type=int, default=50)


def measure(asked: Namespace, folder: Path) -> int:
    try:
        return asyncio.run(_soak(asked, folder))
    finally:
        if kept := os.environ.get("SOAK_KEEP"):
            Path(kept).mkdir(exist_ok=True)
            for file in folder.glob("*-*"):
                shutil.copy(file, kept)


async def _soak(asked: Namespace, folder: Path) -> int:
    # Else what is done to the replicas would wait for pages that are slow.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(64))
    storm_ends = time.time() + STORM_SECONDS
    async with _running(asked, folder) as parts:
        replicas, receiver = parts.replicas, parts.receiver
        browser = await asyncio.to_thread(make_receiver, replicas.one, receiver.url)
        [session] = [f"{one['name']}={one['value']}" for one in cookies(browser, replicas.one)
                     if one["name"].startswith("sessionid_")]  # fmt: skip
        printed = [server.printed("Wall") for server in (replicas.one, replicas.other)]
        wall = next(link for link in printed if "?" in link)  # one of the two made it
        visitors = Visitors(parts.pages.port, session, wall)
        memory = Memory(asked.warm * 60)
        await _follow(asked, parts, visitors, memory)
        # After a cut the replicas must have time to hear of what a storm did that ends by itself.
        until = min(time.time() - 1, storm_ends - LONGEST_CUT)
        await asyncio.sleep(SETTLE)
        with suppress(OSError):  # after an hour it has ended by itself
            await asyncio.to_thread(ask, parts.storm_port, "/storm/quit")
        await all_sent(parts.database)
        print(f"{asked.minutes:g} minutes over; {_relists(replicas)}")
        wrong = [visitors.failed(), memory.grew()]
        wrong.append(check_messages(parts.database, receiver.taken, len(receiver.received)))
        for name in ("one", "other"):
            await restart(replicas, name)
        wrong.append(_traces(folder))
        for cluster in (CLUSTER, ELECTIONS):
            check = partial(check_history, cluster=cluster, **replicas.environment)
            truth = folder / f"truth-{cluster}"
            wrong.append(bool(await asyncio.to_thread(check, folder / "one", truth, until)))
    print("wrong" if any(wrong) else "all is right")
    return int(any(wrong))


async def _follow(asked: Namespace, parts: Parts, visitors: Visitors, memory: Memory) -> None:
    """Everything at once, until the time is over."""
    begun, seconds = time.monotonic(), asked.minutes * 60
    beside = [
        asyncio.create_task(parts.story.run()),
        asyncio.create_task(visitors.stay(asked.pages, asked.walls)),
        asyncio.create_task(memory.sample(parts.replicas)),
    ]
    restarts = min(seconds * RESTARTS, MAX_RESTARTS)
    await make_faults(parts, begun + seconds, begun + restarts)
    for task in beside:
        task.cancel()
    ends = await asyncio.gather(*beside, return_exceptions=True)
    for end in ends:
        if not isinstance(end, asyncio.CancelledError):
            raise AssertionError("a part of the soak ended early") from end


@asynccontextmanager
async def _running(asked: Namespace, folder: Path) -> AsyncIterator[Parts]:
    """All parts, which know each other."""
    async with AsyncExitStack() as stack:
        postgres = stack.enter_context(running(synchronous_commit="on", autovacuum="on"))
        database, port = postgres.database(), free_port()
        truth = folder / f"truth-{CLUSTER}"
        stack.enter_context(leasestorm(port, truth, *_load(asked)))
        api = ApiProcess(folder / "api")
        stack.callback(api.kill)
        client = LeaseApi(folder / "api" / "kubeconfig")
        storm = await stack.enter_async_context(balancing([port], probing=False))
        elections = await stack.enter_async_context(balancing([api.port], probing=False))
        url = f"http://127.0.0.1:{elections.port}"
        replicas = await asyncio.to_thread(
            Replicas, folder, database, client, url, source(storm.port)
        )
        stack.callback(_end, replicas)
        ports = [replicas.one.port, replicas.other.port]
        yield Parts(
            replicas=replicas,
            postgres=postgres,
            database=database,
            pages=await stack.enter_async_context(balancing(ports)),
            storm=storm,
            storm_port=port,
            elections=elections,
            api=api,
            story=ElectionsStory(client, folder / f"truth-{ELECTIONS}"),
            receiver=await stack.enter_async_context(http_receiver()),
        )


def _load(asked: Namespace) -> list[str]:
    return [
        "--leases", str(asked.leases), "--elections", str(asked.elections),
        "--duration", f"{STORM_SECONDS:g}",
        "--transitions-per-s", "1", "--expire-per-s", "0.3", "--delete-per-s", "0.3",
        "--revive-after", "45", "--recreate-after", "5", "--drop-every", "47",
        "--gone-every", "83", "--bookmark-every", "10",
    ]  # fmt: skip


def _end(replicas: Replicas) -> None:
    for server in (replicas.one, replicas.other):
        if server.process.poll() is None:
            server.kill()


def _traces(folder: Path) -> bool:
    """Print how many tracebacks the logs of all processes and starts have; whether any."""
    logs = [file.read_text() for file in folder.rglob("*.log")]
    traces = sum(log.count("Traceback") for log in logs)
    print(f"{traces} tracebacks in {len(logs)} logs")
    return bool(traces)


def _relists(replicas: Replicas) -> str:
    """The lists that the processes of now have read, by cluster and reason."""
    found = [
        re.findall(
            r"^leaseboard_relists_total\{(.*)\} (\S+)", get(f"{one.url}/metrics")[1], re.MULTILINE
        )
        for one in (replicas.one, replicas.other)
    ]
    return "lists read since the last start: " + "; ".join(
        ", ".join(f"{labels} {number}" for labels, number in one) for one in found
    )


if __name__ == "__main__":
    main(__doc__, measure, options)
