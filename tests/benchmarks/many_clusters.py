"""Many clusters in one Leaseboard: what they cost while nobody looks, and whether each is exact.

python3 -m tests.benchmarks.many_clusters [--clusters 100] [--leases 13] [--rate 100]
    [--changes 8] [--faulty 0] [--slow 0] [--pages 0] [--warm 10] [--seconds 60]
    [--kill-at S]

Starts one process that plays the Lease APIs of all clusters, of `--leases` Leases each, which
renew `--rate` times a second and change hands `--changes` times a second, in all clusters together.
Starts `manage.py serve` for them, without pages, and prints what it uses of one core, its memory,
and the clusters whose exported history is not exactly what their storm did; exits 1 if there are
any. With `--pages`, the page of all clusters is open on so many screens meanwhile, and its server
time is printed (median of 15 requests); `--rate 0 --changes 0` are clusters without Leases, in
which nothing happens. `--faulty` clusters cut their watches every 7 s and refuse to resume every
17 s; what `--slow` clusters say arrives half a second late. It measures `--seconds`, from `--warm`
seconds after the first history on: in the first minutes after a start, the totals of the day are
counted more often than later.
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread

from websockets.asyncio.client import connect

from tests.benchmarks.parts.command import main
from tests.benchmarks.parts.figures import Usage
from tests.benchmarks.parts.open_pages import TRIES, Pages
from tests.benchmarks.parts.storm_check import compare
from tests.benchmarks.parts.storm_load import SETTLE, ask, interrupted_at_end, stats, waiting
from tests.benchmarks.parts.storm_truth import WORDS, Event, read
from tests.support.processes import ROOT, Server, free_port, get, manage, wait_for

LOOK = 0.5
NEVER = 5.0  # seconds
FEW = 50  # changes that have just come
LATE = 2.0  # seconds
RARELY = 5.0  # seconds: metrics of many elections cost the server, too


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--leases", type=int, default=13, help="of each cluster")
    parser.add_argument("--rate", type=float, default=100, help="renewals a second in all clusters")
    parser.add_argument("--changes", type=float, default=8, help="a second in all clusters")
    parser.add_argument("--faulty", type=int, default=0, help="clusters that cut their watches")
    parser.add_argument(
        "--slow", type=int, default=0, help="clusters that answer half a second late"
    )
    parser.add_argument("--pages", type=int, default=0, help="of all clusters, open meanwhile")
    parser.add_argument("--warm", type=float, default=10.0, help="seconds before that")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--kill-at", type=float, help="kill -9 and start again, S seconds in")


@contextmanager
def storms(asked: Namespace, folder: Path, ports: list[int]) -> Iterator[None]:
    """All clusters, in one process."""
    changes, elections = asked.changes / asked.clusters, max(1, asked.leases // 10)
    leases = asked.leases - elections
    if not asked.rate:
        leases = elections = 0  # what nobody renews is lost, and much happens then
    load = [
        "--leases", str(leases), "--elections", str(elections),
        "--apiservers", "0", "--tick", "0.05",
        "--rate", str(max(asked.rate / asked.clusters, 0.0001)),
        "--transitions-per-s", str(changes / 2), "--expire-per-s", str(changes / 4),
        "--delete-per-s", str(changes / 4), "--revive-after", "45", "--recreate-after", "5",
        "--duration", "3600", "--quiet",
    ]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.parts.many_storms", str(folder),
         str(asked.faulty), str(asked.slow), *map(str, ports), "--", *load],
        cwd=ROOT, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        for port in ports:
            wait_for(lambda port=port: stats(port), what="the storms to begin", seconds=120)
        yield
    finally:
        for port in ports:
            with suppress(OSError):
                ask(port, "/storm/quit")
        process.wait(timeout=30)


def serve(stack: ExitStack, folder: Path, ports: list[int]) -> Server:
    """Leaseboard, once it has listed every cluster and written that."""
    named = [f"c{number}=url:http://127.0.0.1:{port}" for number, port in enumerate(ports)]
    clusters = [word for one in named for word in ("--cluster", one)]
    server = interrupted_at_end(stack, Server(folder / "data", "--no-demo", *clusters))
    server.wait_synced(seconds=180, every=LOOK)
    what = "the first history, and the present"
    wait_for(lambda: keeps_up(server), what=what, seconds=300, every=RARELY)
    return server


def keeps_up(server: Server) -> bool:
    """Whether the first history is written, and no cluster's events wait."""
    text = get(f"{server.url}/metrics")[1]
    behind = re.findall(r"^leaseboard_seconds_behind\S+ (\S+)", text, re.MULTILINE)
    return waiting(text) < FEW and max(map(float, behind), default=0.0) < LATE


class Fleet(Pages):
    """The page of all clusters on some screens."""

    characters = 0  # of all frames

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.heard: list[tuple[float, set[str]]] = []  # when one page got which strips or cells

    def get(self, path: str) -> str:
        began = time.perf_counter()
        with self.opener.open(f"{self.server.url}/?all", timeout=60) as answer:
            text: str = answer.read().decode()
        self.page_times.append((time.perf_counter() - began) * 1000)
        return text

    async def keep(self, *, listens: bool) -> None:
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.cookies)
        url = f"{self.server.url}/live/fleet/".replace("http", "ws", 1)
        headers = {"Cookie": cookies, "Origin": self.server.url}
        async with connect(
            url, additional_headers=headers, compression=None, max_size=None
        ) as socket:
            await socket.send(json.dumps({"show": {}, "jumps": 0, "clusters": True}))
            async for message in socket:
                self.frames += 1
                self.characters += len(message)
                if listens:
                    self.heard.append((time.time(), set(json.loads(message).get("regions", ()))))

    def delays(self, cluster: str, truth: list[Event], since: float, until: float) -> list[float]:
        """Seconds from each write of a change to the next drawing of its cluster."""
        mine = {f"strip-{cluster}", f"cell-{cluster}"}
        drawn = [at for at, regions in self.heard if regions & mine]
        written = [one["t"] for one in truth if one["kind"] in WORDS]
        return [
            next((at for at in drawn if at > began), began + NEVER) - began
            for began in written
            if since <= began <= until - NEVER
        ]


@contextmanager
def open_fleet(server: Server, number: int) -> Iterator[Fleet]:
    fleet, loop = Fleet(server), asyncio.new_event_loop()
    for _ in range(TRIES + 1):
        fleet.get("")
    times = fleet.page_times[1:]
    print(f"the page: median {statistics.median(times):.0f} ms, worst {max(times):.0f} ms")
    tasks = [loop.create_task(fleet.keep(listens=not page)) for page in range(number)]
    thread = Thread(target=loop.run_forever)
    thread.start()
    yield fleet
    for task in tasks:
        loop.call_soon_threadsafe(task.cancel)
    asyncio.run_coroutine_threadsafe(_all_of(tasks), loop).result(timeout=30)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


async def _all_of(tasks: list[asyncio.Task[None]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


def measure(asked: Namespace, folder: Path) -> int:
    ports = [free_port() for _ in range(asked.clusters)]
    with ExitStack() as stack, storms(asked, folder, ports):
        server = serve(stack, folder, ports)
        if asked.kill_at:
            time.sleep(asked.kill_at)
            server.kill()
            server = serve(stack, folder, ports)
        fleet = stack.enter_context(open_fleet(server, asked.pages)) if asked.pages else None
        time.sleep(asked.warm)
        since = time.time()
        before = (fleet.frames, fleet.characters) if fleet else (0, 0)
        usage = Usage(server.process.pid)
        time.sleep(asked.seconds)
        if fleet:
            frames, kilobytes = fleet.frames - before[0], (fleet.characters - before[1]) / 1000
            each, first = kilobytes / max(1, frames), before[1] / asked.pages / 1000
            print(f"{asked.pages} pages of all clusters, in all {frames / asked.seconds:.1f} "
                  f"frames/s of {each:.1f} kB, after {first:.0f} kB to each")  # fmt: skip
            assert frames, "the pages heard nothing"
        print(f"CPU {usage.share:.2f} % of one core over {asked.seconds:.0f} s", flush=True)
        print(f"RSS {usage.memory():.0f} MiB, at most {usage.memory('VmHWM'):.0f} MiB", flush=True)
        until = time.time() - 1
        time.sleep(SETTLE)
        server.interrupt()
    if fleet:
        print_delays(fleet, folder, asked.clusters, since, until)
    return check(folder, asked.clusters, until)


def print_delays(fleet: Fleet, folder: Path, clusters: int, since: float, until: float) -> None:
    late = sorted(
        delay
        for number in range(clusters)
        for delay in fleet.delays(f"c{number}", read(folder / f"truth-{number}"), since, until)
    )
    if late:
        print(f"{len(late)} changes were on the page after {statistics.median(late) * 1000:.0f} ms "
              f"at the median, p90 {late[len(late) * 9 // 10] * 1000:.0f} ms")  # fmt: skip


def check(folder: Path, clusters: int, until: float) -> int:
    """Compare each cluster's history with its storm's log; 1 if one differs."""
    kept: dict[str, list[Event]] = defaultdict(list)
    for line in manage(folder / "data", "export_history").stdout.splitlines():
        change = json.loads(line)
        kept[change["cluster"]].append(change)
    made = found = wrong = 0
    for number in range(clusters):
        changes = kept[f"c{number}"]
        findings = compare(read(folder / f"truth-{number}"), changes, until=until)
        made, found = made + findings.made.total(), found + findings.found.total()
        if not findings.clean:
            wrong += 1
            print(f"c{number}: {json.dumps(findings.summary)}")
    print(f"{made} changes made, {found} kept with the first sight of each Lease")
    print(f"{wrong} of {clusters} clusters differ from what their storm did")
    return int(wrong > 0)


if __name__ == "__main__":
    main(__doc__, measure, options)
