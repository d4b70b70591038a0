"""What Pods and Events beside the Leases cost the embedded API in memory.

python3 -m tests.benchmarks.many_objects [--pods 10000] [--events 100000] [--clients 16]

Starts `manage.py lease_api`, creates the Pods, then the Events, then writes as many Events again
over the first ones. Prints the memory after each step and after a restart, how long the server
takes to start, and how long lists by a field selector and by pages take.
"""

from __future__ import annotations

import asyncio
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.apiserver.clients import Client, Process
from tests.apiserver.watch.streams import request
from tests.benchmarks.parts.command import main
from tests.benchmarks.parts.figures import Usage

PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/api/v1/namespaces/default/events"


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--clients", type=int, default=16)


def pod(number: int) -> dict[str, Any]:
    containers = [{"name": "main", "image": f"registry.example.com/app:{number % 40}"}]
    labels = {"app": f"app-{number % 200}", "pod-template-hash": "5d4f8c7b9"}
    spec = {"nodeName": f"node-{number % 500}", "containers": containers}
    return {"metadata": {"name": f"app-{number:06}", "labels": labels}, "spec": spec}


def event(number: int) -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": "default", "name": f"app-{number % 10_000:06}"}
    now = "2024-05-01T10:00:00Z"
    return {
        "metadata": {"name": f"app.{number:08x}", "namespace": "default"},
        "involvedObject": about,
        "reason": "Pulled",
        "message": f"Successfully pulled image number {number} in 1.2 s",
        "source": {"component": "kubelet", "host": f"node-{number % 500}"},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "type": "Normal",
    }


async def send(url: str, clients: int, requests: Iterator[tuple[str, str, Any]]) -> None:
    where = urlsplit(url)

    async def one() -> None:
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        for method, path, body in requests:
            writer.write(request(method, path, body))
            head = await reader.readuntil(b"\r\n\r\n")
            assert int(head.split(None, 2)[1]) < 300, head
            await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split()[0]))
        writer.close()

    await asyncio.gather(*(one() for _ in range(clients)))


def measure(asked: Namespace, folder: Path) -> None:
    api = Process(folder / "data").start()

    def print_memory(what: str) -> None:
        assert api.process is not None
        usage = Usage(api.process.pid)
        print(f"{what:32} {usage.memory():6.0f} MiB, at most {usage.memory('VmHWM'):.0f} MiB")

    def write(what: str, requests: Iterator[tuple[str, str, Any]]) -> None:
        asyncio.run(send(api.url, asked.clients, requests))
        print_memory(what)

    print_memory("empty")
    write(f"{asked.pods:,} Pods", (("POST", PODS, pod(n)) for n in range(asked.pods)))
    write(f"{asked.events:,} Events", (("POST", EVENTS, event(n)) for n in range(asked.events)))
    again = (event(n) | {"count": 2} for n in range(asked.events))
    write(
        "the same Events again",
        (("PUT", f"{EVENTS}/{one['metadata']['name']}", one) for one in again),
    )
    lists(api)
    print_memory("after the lists")
    api.stop()
    began = time.monotonic()
    api.start()
    print(f"a start over them takes {time.monotonic() - began:.1f} s")
    print_memory("after a restart")
    api.stop()


def lists(api: Process) -> None:
    client = Client(api.url)
    for what, query in (
        ("by involvedObject.name", {"fieldSelector": "involvedObject.name=app-000007"}),
        ("the first 500", {"limit": "500"}),
    ):
        began = time.monotonic()
        found = client.call("GET", EVENTS, **query).json["items"]
        print(f"list of {len(found)} Events {what}: {1000 * (time.monotonic() - began):.0f} ms")
    client.close()


if __name__ == "__main__":
    main(__doc__, measure, options)
