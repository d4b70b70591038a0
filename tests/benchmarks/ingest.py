"""CPU seconds per 100,000 watch events: our reading path beside its peers, in one run.

python3 -m tests.benchmarks.ingest [--leases 20000] [--events 400000] [--rounds 3] [--only NAME]...

Each reader is a process of its own on a leasestorm of its own that makes events as fast as they are
taken. Ours is the whole runtime: rules, deadlines, recorder and publisher on. The floor reads with
aiohttp, splits lines and decodes them into typed values, and does nothing with them. Slow readers
get fewer events. Each reads once a round, and the medians are printed.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.benchmarks.parts.command import main
from tests.benchmarks.parts.storm_load import STORM
from tests.support.processes import ROOT

PATH = "/apis/coordination.k8s.io/v1/leases"
WARM = 5000  # events before the measuring begins


class Done(Exception):
    """Enough events were read."""


class Meter:
    """Counts events, and takes the CPU time between the first that count and the last."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.seen = 0
        self._began = (0, 0.0, 0.0)
        self.result: dict[str, float] = {}

    def count(self, events: int = 1) -> None:
        """Note that so many more events were read. Raises Done."""
        before = self.seen
        self.seen += events
        if before < WARM <= self.seen:
            self._began = (self.seen, _cpu(), time.perf_counter())
        elif self.seen >= self.wanted + WARM:
            events_from, cpu, clock = self._began
            self.result = {
                "events": self.seen - events_from,
                "cpu": _cpu() - cpu,
                "seconds": time.perf_counter() - clock,
            }
            raise Done


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def floor(url: str, meter: Meter) -> None:
    """Read, split, one typed decode."""
    import aiohttp

    from leases.wire.watch_decoding import read_event, read_page

    async def run() -> None:
        async with aiohttp.ClientSession(read_bufsize=256 * 1024) as session:
            async with session.get(f"{url}{PATH}?limit=1") as answer:
                version = read_page(await answer.read()).metadata.resource_version
            query = {"watch": "true", "resourceVersion": version}
            async with session.get(f"{url}{PATH}", params=query) as answer:
                rest = b""
                while chunk := await answer.content.readany():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        read_event(line)
                    meter.count(len(lines))

    asyncio.run(run())


def leaseboard(url: str, meter: Meter) -> None:
    """Our reading path with everything behind it but pages."""
    with tempfile.TemporaryDirectory() as data:
        os.environ |= {"LEASEBOARD_DATA": data, "DJANGO_SETTINGS_MODULE": "dashboard.settings"}
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", interactive=False, verbosity=0)
        asyncio.run(_follow(url, meter, Path(data)))


async def _follow(url: str, meter: Meter, data: Path) -> None:
    from dashboard.config import parse_clusters
    from dashboard.serving.runtime import Options, Runtime

    runtime = Runtime(Options(clusters=parse_clusters(f"storm=url:{url}"), data=data))
    await runtime.start()
    cluster = runtime.clusters["storm"]
    while not cluster.synced or runtime.recorder.waiting:
        await asyncio.sleep(0.01)
    await asyncio.sleep(2)  # the list is written down
    last = cluster.counters.events
    try:
        while True:
            await asyncio.sleep(0.05)
            now = cluster.counters.events
            meter.count(now - last)
            last = now
    finally:
        await runtime.stop()


def _kubernetes(url: str) -> Any:
    from kubernetes import client

    configuration = client.Configuration(host=url)
    client.Configuration.set_default(configuration)
    return client.CoordinationV1Api(client.ApiClient(configuration))


def kubernetes_watch(url: str, meter: Meter, **options: Any) -> None:
    """kubernetes.watch.Watch."""
    from kubernetes.watch import Watch

    api = _kubernetes(url)
    version = api.list_lease_for_all_namespaces(limit=1).metadata.resource_version
    stream = Watch().stream(
        api.list_lease_for_all_namespaces, resource_version=version, timeout_seconds=300, **options
    )
    for _ in stream:
        meter.count()


def kubernetes_raw(url: str, meter: Meter) -> None:
    """The same with deserialize=False."""
    kubernetes_watch(url, meter, deserialize=False)


def kubernetes_informer(url: str, meter: Meter) -> None:
    """kubernetes.informer.SharedInformer, once it is filled."""
    from kubernetes.informer import MODIFIED, SharedInformer

    done = threading.Event()

    def count(_: object) -> None:
        try:
            meter.count()
        except Done:
            done.set()

    informer = SharedInformer(_kubernetes(url).list_lease_for_all_namespaces)
    informer.add_event_handler(MODIFIED, count)
    informer.start()
    done.wait()
    os._exit(_print_result(meter))  # its thread would read on


def lightkube(url: str, meter: Meter) -> None:
    """lightkube's watch."""
    from lightkube import Client, KubeConfig
    from lightkube.resources.coordination_v1 import Lease

    config = KubeConfig.from_dict(
        {
            "clusters": [{"name": "storm", "cluster": {"server": url}}],
            "users": [{"name": "reader", "user": {"token": "any"}}],
            "contexts": [{"name": "storm", "context": {"cluster": "storm", "user": "reader"}}],
            "current-context": "storm",
        }
    )
    client = Client(config=config, trust_env=False)
    newest = json.loads(_get(f"{url}{PATH}?limit=1"))["metadata"]["resourceVersion"]
    for _ in client.watch(Lease, namespace="*", resource_version=newest):
        meter.count()


def _get(url: str) -> bytes:
    import urllib.request

    with urllib.request.urlopen(url, timeout=10) as answer:
        body: bytes = answer.read()
        return body


READERS: dict[str, tuple[str, Callable[[str, Meter], None], int]] = {
    "floor": ("read, split, typed decode", floor, 1),
    "leaseboard": ("leaseboard, everything on", leaseboard, 1),
    "lightkube": ("lightkube watch", lightkube, 10),
    "raw": ("kubernetes Watch, deserialize=False", kubernetes_raw, 10),
    "informer": ("kubernetes.informer", kubernetes_informer, 20),
    "watch": ("kubernetes Watch", kubernetes_watch, 20),
}


def _print_result(meter: Meter) -> int:
    print(json.dumps(meter.result), flush=True)
    return 0


def read(name: str, url: str, events: int) -> None:
    """One reader, in this process."""
    meter = Meter(events)
    try:
        READERS[name][1](url, meter)
    except Done:
        _print_result(meter)


def read_once(name: str, asked: Namespace) -> dict[str, float]:
    """One reader, in processes of its own."""
    events = asked.events // READERS[name][2]
    storm = subprocess.Popen(
        [sys.executable, str(STORM), "--port", "0", "--leases", str(asked.leases),
         "--elections", str(asked.leases // 65), "--max", "--duration", "600", "--quiet"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert storm.stdout is not None
    try:
        url = storm.stdout.readline().split()[1]
        reader = subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.ingest", "--read", name, url, str(events)],
            cwd=ROOT, capture_output=True, text=True, timeout=600, check=True,
        )  # fmt: skip
    finally:
        storm.terminate()
        storm.wait(timeout=20)
        storm.stdout.close()
    found: dict[str, float] = json.loads(reader.stdout.splitlines()[-1])
    return found


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--leases", type=int, default=20_000)
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", choices=READERS)
    parser.add_argument("--read", nargs=3, metavar=("NAME", "URL", "EVENTS"))


def measure(asked: Namespace, _folder: Path) -> None:
    if asked.read:
        read(asked.read[0], asked.read[1], int(asked.read[2]))
        return
    costs: dict[str, list[float]] = {name: [] for name in asked.only or READERS}
    for _ in range(asked.rounds):
        for name, some in costs.items():
            found = read_once(name, asked)
            some.append(found["cpu"] / found["events"] * 100_000)
    medians = {name: statistics.median(some) for name, some in costs.items()}
    print(f"{'CPU seconds per 100,000 events':38} {'CPU':>7} {'x floor':>8} {'x ours':>8}")
    for name, cost in medians.items():
        bases = (medians.get("floor"), medians.get("leaseboard"))
        ratios = "".join(f" {cost / of:8.2f}" if of else " " * 9 for of in bases)
        print(f"{READERS[name][0]:38} {cost:7.3f}{ratios}")


if __name__ == "__main__":
    main(__doc__, measure, options)
