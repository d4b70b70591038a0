"""Leaseboard in a storm: the largest cluster known, with pages open and every fault switched on.

python3 -m tests.benchmarks.storm [--leases 130000] [--elections 2000] [--rate 13000]
    [--seconds 120] [--pages 10] [--kill-at S] [--calm] [--tls] [--drop-mode mid]
    [--gone-style event]

Starts leasestorm and `manage.py serve --no-demo`, opens pages' sockets that subscribe to rows as a
browser does, and prints what the serving process used of one core, how late its event loop came
(idle, before there was a cluster, and under load), its memory, and whether `export_history` holds
exactly what the storm did (storm_check.py). Exits 1 if not. How late a process that does nothing
else came, at the same times, shows how much of that the machine causes.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path

from leases.apiserver.http.port import CERTIFICATE, certificate_for
from tests.benchmarks.parts.command import main
from tests.benchmarks.parts.figures import Usage
from tests.benchmarks.parts.open_pages import Pages
from tests.benchmarks.parts.storm_load import (
    all_written,
    ask,
    calm_options,
    check_history,
    fault_options,
    interrupted_at_end,
    source,
    storm,
    told_until,
)
from tests.support.processes import Server, free_port, wait_for

IDLE = 8.0  # seconds of doing nothing, to compare with
LOOK = 0.5  # seconds between questions: to answer them is work as well
PATHS = ("leases/", "leases/?kind=election", "leases/?sort=-renewed", "leases/?page=7", "")


def options(parser: ArgumentParser) -> None:
    calm_options(parser, seconds=120)
    fault_options(parser)
    parser.add_argument("--pages", type=int, default=10)
    parser.add_argument("--quiet-renewals", action="store_true", help="renewals only, no changes")
    parser.add_argument("--drop-mode", default="mid", choices=["mid", "abort", "clean"])
    parser.add_argument("--gone-style", default="event", choices=["event", "http"])
    parser.add_argument("--compact", action="store_true", help="a cut makes older versions 410")
    parser.add_argument("--framing", default="event", choices=["event", "go", "batch"])
    parser.add_argument("--tls", action="store_true", help="watch it over TLS")


def delays(file: Path, since: float, until: float) -> str:
    """Percentiles of the event loop's lateness in a span of time."""
    found = []
    for line in file.read_text().splitlines()[:-1]:
        at, late = line.split()
        if since <= float(at) <= until:
            found.append(float(late))
    if len(found) < 100:
        return "too few readings"
    cuts = statistics.quantiles(found, n=1000)
    return (
        f"median {cuts[499]:.1f} ms, p99 {cuts[989]:.1f} ms, p99.9 {cuts[998]:.1f} ms, "
        f"worst {max(found):.1f} ms"
    )


def control(stack: ExitStack, file: Path) -> None:
    """A process that only sleeps."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.parts.loop_delay", str(file)]
    )
    stack.callback(process.wait)
    stack.callback(process.kill)


def print_delays(folder: Path, what: str, run: int, since: float, until: float) -> None:
    """How late the event loop came, and beside it a process that only sleeps."""
    for name, file in (("event loop", f"delay-{run}"), ("only sleeping", "delay-control")):
        print(f"{name} late {what}: {delays(folder / file, since, until)}")


def serve(
    stack: ExitStack, folder: Path, port: int, run: int, pages_port: int, tls: Path | None
) -> Server:
    """A server that measures how late its event loop is."""
    program = ("-m", "tests.benchmarks.parts.loop_delay", str(folder / f"delay-{run}"))
    cluster = ("--cluster", source(port, tls))
    trusted = {} if tls is None else {"SSL_CERT_FILE": str(tls / CERTIFICATE)}
    server = Server(
        folder / "data", "--no-demo", *cluster, program=program, port=pages_port, **trusted
    )
    return interrupted_at_end(stack, server)


async def load(pages: Pages, number: int, seconds: float) -> None:
    tasks = [
        asyncio.create_task(pages.keep_open(PATHS[index % len(PATHS)])) for index in range(number)
    ]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def follow(server: Server, asked: Namespace, seconds: float, folder: Path, run: int) -> None:
    """Keep pages open for so long, and print what that took."""
    pages = Pages(server)
    with suppress(OSError):
        pages.get("leases/")
    usage, since = Usage(server.process.pid), time.time()
    asyncio.run(load(pages, asked.pages, seconds))
    until = time.time()
    print(f"CPU {usage.share:.1f} % of one core over {until - since:.0f} s")
    print(f"RSS {usage.memory():.0f} MiB, at most {usage.memory('VmHWM'):.0f} MiB")
    print_delays(folder, "under load", run, since, until)
    print(f"{asked.pages} pages open, {pages.frames} frames")
    pages.print_first_paints()


def measure(asked: Namespace, folder: Path) -> int:
    port, truth, pages_port = free_port(), folder / "truth", free_port()
    asked.tls = folder if asked.tls else None
    if asked.tls:
        certificate_for(folder, "127.0.0.1", now=datetime.now(UTC))
    with ExitStack() as stack:
        control(stack, folder / "delay-control")
        server = serve(stack, folder, port, 0, pages_port, asked.tls)
        began = time.time()
        time.sleep(IDLE)
        print_delays(folder, "when idle", 0, began, time.time())
        print(f"RSS when idle {Usage(server.process.pid).memory():.0f} MiB")
        with storm(asked, port, truth):
            listing = time.time()
            server.wait_synced(seconds=120, every=LOOK)
            print(f"synced {time.time() - listing:.1f} s after the storm began")
            wait_for(lambda: all_written(server), what="the first history", seconds=120, every=LOOK)
            print(f"all written {time.time() - listing:.1f} s after the storm began")
            print_delays(folder, "meanwhile", 0, listing, time.time())
            if asked.kill_at:
                follow(server, asked, asked.kill_at, folder, 0)
                server.kill()
                server = serve(stack, folder, port, 1, pages_port, asked.tls)
                server.wait_synced(seconds=120)
                print("killed and started again")
            rest = asked.seconds - (asked.kill_at or 0)
            follow(server, asked, rest, folder, int(bool(asked.kill_at)))
            until = told_until(server)
            made = ask(port, "/storm/stats", asked.tls)
        server.interrupt()
    print(json.dumps({k: made[k] for k in ("eventsMade", "slowWatchersCut", "drops", "gones")}))
    return check_history(folder / "data", truth, until, tls=bool(asked.tls))


if __name__ == "__main__":
    main(__doc__, measure, options)
