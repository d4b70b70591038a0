"""What a durable renewal and a delivered watch event cost, beside a do-nothing echo.

python3 -m tests.benchmarks.renewal_cost [SECONDS] [ROUNDS]

Starts the embedded Lease API and an echo on the same uvicorn, each as a process of its own, and
lets renewals.py renew 64 Leases over 64 kept connections, at the one and at the other in turn.
Prints CPU milliseconds (user and system, of the server's process) per renewal and their ratio;
then, per number of watchers, the events delivered a second and the server's CPU microseconds for
each.
"""

from __future__ import annotations

import asyncio
import re
import statistics
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.apiserver.clients import ADMIN, LEASES, Process
from tests.apiserver.watch.crowd import Crowd, cpu_seconds
from tests.apiserver.watch.streams import call
from tests.benchmarks.parts.command import main
from tests.support.processes import ROOT, free_port, get, wait_for

CLIENTS = 64
WATCHERS = (1, 100, 1000)
WRITERS = 8
# kube-apiserver 1.36 with etcd 3.6 (fsync off, TLS), measured with the same renewals.py.
UPSTREAM_MS = 1.7
_RESULT = re.compile(r"renewals (\d+), errors (\d+), (\d+)/s, server CPU ([\d.]+) ms")


@contextmanager
def echo() -> Iterator[tuple[str, int]]:
    """The URL and the process id of the echo."""
    port = free_port()
    options = ["--port", str(port), "--http", "httptools", "--loop", "asyncio"]
    quiet = ["--no-access-log", "--log-level", "error", "--no-server-header", "--no-date-header"]
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "tests.benchmarks.parts.echo:app", *options, *quiet],
        cwd=ROOT,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: get(url)[0] == 200, what="the echo")
        yield url, process.pid
    finally:
        process.terminate()
        process.wait()


def renew(url: str, pid: int, *, seconds: float, clients: int) -> tuple[int, float]:
    """Renewals a second, and CPU milliseconds for each; the few writes around them count in."""
    before = cpu_seconds(pid)
    script = ROOT / "tests" / "benchmarks" / "renewals.py"
    done = subprocess.run(
        [sys.executable, script, url, ADMIN, str(seconds), str(clients), str(pid)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = _RESULT.search(done.stdout)
    assert found is not None, done.stdout
    assert found[2] == "0", done.stdout
    return int(found[3]), 1000 * (cpu_seconds(pid) - before) / int(found[1])


def compare(api: Process, *, seconds: float, rounds: int) -> None:
    assert api.process is not None
    costs: dict[str, list[float]] = {"renewal": [], "echo": []}
    with echo() as (url, pid):
        for _ in range(rounds):
            for label, where in (
                ("renewal", (api.url, api.process.pid)),
                ("echo", (url, pid)),
            ):
                rate, cost = renew(*where, seconds=seconds, clients=CLIENTS)
                costs[label].append(cost)
                print(f"{label:8} {cost:.3f} ms CPU each, {rate}/s", flush=True)
    renewal, plain = (statistics.median(costs[label]) for label in ("renewal", "echo"))
    print(
        f"median: a durable renewal {renewal:.3f} ms, the echo {plain:.3f} ms: "
        f"{renewal / plain:.2f} times the echo, {renewal / UPSTREAM_MS:.2f} of kube-apiserver's"
    )


async def deliver(api: Process, count: int, *, seconds: float) -> None:
    """Renew with a few writers while `count` watchers look on."""
    assert api.process is not None
    async with Crowd(api.url, count) as crowd:
        before, start = cpu_seconds(api.process.pid), time.monotonic()
        await asyncio.to_thread(renew, api.url, api.process.pid, seconds=seconds, clients=WRITERS)
        listed = await call(api.url, "GET", LEASES)
        await crowd.told(int(listed["metadata"]["resourceVersion"]), within=60)
        elapsed = time.monotonic() - start
        spent = cpu_seconds(api.process.pid) - before
        assert len({tuple(watch.versions) for watch in crowd.watches}) == 1
        events, delivered = len(crowd.watches[0].versions), crowd.delivered
    print(
        f"{count} watchers: {events} events, {delivered / elapsed:.0f} delivered a second, "
        f"{1e6 * spent / delivered:.1f} us CPU for each",
        flush=True,
    )


def options(parser: ArgumentParser) -> None:
    parser.add_argument("seconds", nargs="?", type=float, default=5)
    parser.add_argument("rounds", nargs="?", type=int, default=3)


def measure(asked: Namespace, folder: Path) -> None:
    with Process(folder / "data") as api:
        compare(api, seconds=asked.seconds, rounds=asked.rounds)
        for count in WATCHERS:
            asyncio.run(deliver(api, count, seconds=asked.seconds))


if __name__ == "__main__":
    main(__doc__, measure, options)
