"""What a durable renewal and a delivered watch event cost, beside a do-nothing echo.

python3 -m tests.benchmarks.renewal_cost [SECONDS] [ROUNDS]

Starts the embedded Lease API and an echo on the same uvicorn, each as a process of its own, and
lets renewals.py (JSON) and protobuf_renewals.py renew 64 Leases over 64 kept connections, over http
and https, at the one and at the other in turn. Prints CPU milliseconds (user and system, of the
server's process) per renewal and their ratios; then, per number of watchers, the events delivered
a second and the server's CPU microseconds for each.
"""

from __future__ import annotations

import asyncio
import re
import socket
import statistics
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from leases.apiserver.http.port import CERTIFICATE, KEY
from tests.apiserver.clients import ADMIN, LEASES, Process
from tests.apiserver.watch.crowd import Crowd, cpu_seconds
from tests.apiserver.watch.streams import call
from tests.benchmarks.parts.command import main
from tests.support.processes import ROOT, free_port, wait_for

CLIENTS = 64
WATCHERS = (1, 100, 1000)
WRITERS = 8
# kube-apiserver 1.36 with etcd 3.6, measured with renewals.py in one run with ours (0.21 ms).
UPSTREAM_MS = 0.95
SCRIPTS = {
    "JSON": ("tests/benchmarks/renewals.py",),
    "protobuf": ("-m", "tests.benchmarks.parts.protobuf_renewals"),
}
_RESULT = re.compile(r"renewals (\d+), errors (\d+), (\d+)/s, server CPU ([\d.]+) ms")


class Cost(msgspec.Struct, frozen=True):
    """Renewals a second, and the server's CPU milliseconds for each."""

    rate: int
    milliseconds: float

    def __str__(self) -> str:
        return f"{self.milliseconds:.3f} ms CPU each, {self.rate}/s"


@contextmanager
def echo(data: Path, scheme: str) -> Iterator[tuple[str, int]]:
    """The URL and the process id of the echo, with the certificate of the API in `data`."""
    port = free_port()
    options = ["--port", str(port), "--http", "httptools", "--loop", "asyncio"]
    options += ["--no-access-log", "--log-level", "error", "--no-server-header", "--no-date-header"]
    if scheme == "https":
        options += ["--ssl-certfile", str(data / CERTIFICATE), "--ssl-keyfile", str(data / KEY)]
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "tests.benchmarks.parts.echo:app", *options], cwd=ROOT
    )
    try:
        wait_for(lambda: _listens(port), what="the echo")
        yield f"{scheme}://127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def renew(url: str, pid: int, *, seconds: float, clients: int, encoding: str = "JSON") -> Cost:
    """The few writes around the renewals count in."""
    before = cpu_seconds(pid)
    done = subprocess.run(
        [sys.executable, *SCRIPTS[encoding], url, ADMIN, str(seconds), str(clients), str(pid)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    found = _RESULT.search(done.stdout)
    assert found is not None, done.stdout
    assert found[2] == "0", done.stdout
    return Cost(int(found[3]), 1000 * (cpu_seconds(pid) - before) / int(found[1]))


def compare(api: Process, scheme: str, *, seconds: float, rounds: int) -> dict[str, float]:
    """Renew at the API and at the echo in turn; the median milliseconds of each."""
    assert api.process is not None
    costs: dict[str, list[float]] = {}
    with echo(api.data, scheme) as (echo_url, echo_pid):
        url = api.url.replace("http:", f"{scheme}:")
        for _ in range(rounds):
            for encoding in SCRIPTS:
                for label, *where in (("API", url, api.process.pid), ("echo", echo_url, echo_pid)):
                    name = f"{label} {encoding}"
                    cost = renew(*where, seconds=seconds, clients=CLIENTS, encoding=encoding)
                    costs.setdefault(name, []).append(cost.milliseconds)
                    print(f"{scheme:5} {name:13} {cost}", flush=True)
    return {name: statistics.median(found) for name, found in costs.items()}


def report(scheme: str, medians: dict[str, float]) -> None:
    for encoding in SCRIPTS:
        renewal, plain = medians[f"API {encoding}"], medians[f"echo {encoding}"]
        print(
            f"median over {scheme}: a durable {encoding} renewal {renewal:.3f} ms, the echo "
            f"{plain:.3f} ms: {renewal / plain:.2f} times the echo, "
            f"{renewal / UPSTREAM_MS:.2f} of kube-apiserver's"
        )
    ratio = medians["API protobuf"] / medians["API JSON"]
    print(f"over {scheme} a protobuf renewal costs {ratio:.2f} of a JSON one", flush=True)


async def deliver(api: Process, count: int, *, seconds: float) -> None:
    """Renew with a few writers while `count` watchers look on."""
    assert api.process is not None
    async with Crowd(api.url, count) as crowd:
        before, start = cpu_seconds(api.process.pid), time.monotonic()
        await asyncio.to_thread(renew, api.url, api.process.pid, seconds=seconds, clients=WRITERS)
        listed = await call(api.url, "GET", LEASES)
        await crowd.reached(int(listed["metadata"]["resourceVersion"]), within=60)
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
        for scheme in ("http", "https"):
            found = compare(api, scheme, seconds=asked.seconds, rounds=asked.rounds)
            report(scheme, found)
        for count in WATCHERS:
            asyncio.run(deliver(api, count, seconds=asked.seconds))


if __name__ == "__main__":
    main(__doc__, measure, options)
