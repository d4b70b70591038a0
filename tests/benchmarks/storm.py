"""Leaseboard in a storm: the largest cluster known, with pages open and every fault switched on.

python3 -m tests.benchmarks.storm [--leases 130000] [--elections 2000] [--rate 13000]
    [--seconds 120] [--pages 10] [--kill-at S] [--calm] [--drop-mode mid] [--gone-style event]

Starts leasestorm and `manage.py serve --no-demo`, opens pages' sockets that subscribe to rows as a
browser does, and prints what the serving process used of one core, how late its event loop came
(idle, before there was a cluster, and under load), its memory, and whether `export_history` holds
exactly what the storm did (storm_check.py). Exits 1 if not. How late a process that does nothing
else came, at the same times, tells how much of that is the machine's.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.support.processes import ROOT, Server, free_port, get, manage, wait_for
from tests.support.signing_in import press_button

STORM = ROOT / "tests/benchmarks/leasestorm.py"
IDLE = 8.0  # seconds of doing nothing, to compare with
LOOK = 0.5  # seconds between questions: to answer them is work as well
SETTLE = 8.0  # seconds at the end: after a cut connection deadlines wait, for 5 s at most
PATHS = ("leases/", "leases/?kind=election", "leases/?sort=-renewed", "leases/?page=7", "")
FIRST_PAINTS = (
    "", "leases/", "leases/?sort=-renewed", "leases/?q=pool-7", "leases/?labels=app",
    "leases/?page=2000", "nodes/", "holders/", "history/", "timeline/", "wall/",
)  # fmt: skip
TRIES = 15
TICKS = os.sysconf("SC_CLK_TCK")


def calm_storm(about: str | None, *, seconds: float) -> ArgumentParser:
    """What all that run beside a storm may be told; without more it cuts no connection."""
    parser = ArgumentParser(description=(about or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--leases", type=int, default=130_000)
    parser.add_argument("--elections", type=int, default=2_000)
    parser.add_argument("--rate", type=float, default=13_000)
    parser.add_argument("--seconds", type=float, default=seconds)
    parser.set_defaults(
        calm=True, quiet_renewals=False, drop_mode="mid", gone_style="event", compact=False,
        framing="event",
    )  # fmt: skip
    return parser


def arguments() -> Namespace:
    parser = calm_storm(__doc__, seconds=120)
    parser.add_argument("--pages", type=int, default=10)
    parser.add_argument("--kill-at", type=float, help="kill -9 and start again, S seconds in")
    parser.set_defaults(calm=False)
    parser.add_argument("--calm", action="store_true", help="no cut connections, no 410")
    parser.add_argument("--quiet-renewals", action="store_true", help="renewals only, no changes")
    parser.add_argument("--drop-mode", default="mid", choices=["mid", "abort", "clean"])
    parser.add_argument("--gone-style", default="event", choices=["event", "http"])
    parser.add_argument("--compact", action="store_true", help="a cut makes older versions 410")
    parser.add_argument("--framing", default="event", choices=["event", "go", "batch"])
    return parser.parse_args()


@contextmanager
def storm(asked: Namespace, port: int, truth: Path, expire: float = 10) -> Iterator[None]:
    """The load, with its own log of what it did."""
    faults = [] if asked.calm else ["--drop-every", "23", "--gone-every", "41"]
    changes = ["--transitions-per-s", "20", "--expire-per-s", str(expire), "--delete-per-s", "5"]
    command = [
        sys.executable, str(STORM), "--port", str(port), "--truth", str(truth), "--quiet",
        "--leases", str(asked.leases), "--elections", str(asked.elections),
        "--rate", str(asked.rate), "--duration", "3600", "--revive-after", "45",
        "--recreate-after", "5", "--drop-mode", asked.drop_mode, "--gone-style", asked.gone_style,
        "--framing", asked.framing, *faults, *([] if asked.quiet_renewals else changes),
        *(["--compact"] if asked.compact else []),
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: stats(port), what="the storm to begin", seconds=60)
        yield
    finally:
        with suppress(OSError):
            ask(port, "/storm/quit")
        process.wait(timeout=20)


def all_written(server: Server, replace: int = 0) -> bool:
    """Whether no change waits for the database, or only the last so many of those that come."""
    text = get(f"{server.url}/metrics")[1]
    waiting = re.search(r"^leaseboard_history_queue_changes (\S+)", text, re.MULTILINE)
    return waiting is not None and float(waiting[1]) <= replace


def ask(port: int, path: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def stats(port: int) -> dict[str, Any] | None:
    try:
        return ask(port, "/storm/stats")
    except OSError:
        return None


class Usage:
    """What a process used between two moments."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.began, self.cpu = time.monotonic(), self._cpu()

    def _cpu(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    @property
    def share(self) -> float:
        """Percent of one core."""
        return 100 * (self._cpu() - self.cpu) / (time.monotonic() - self.began)

    def memory(self, what: str) -> float:
        """VmRSS or VmHWM in MiB."""
        text = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(rf"{what}:\s+(\d+) kB", text)
        assert found is not None
        return int(found[1]) / 1024


class Pages:
    """Open pages: what a browser asks for and answers, without drawing."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.cookies = CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))
        self.frames = 0
        self.page_times: list[float] = []

    def sign_in(self) -> None:
        press_button(self.opener, self.server.printed("Sign in"))

    def get(self, path: str) -> str:
        began = time.perf_counter()
        with self.opener.open(f"{self.server.url}/c/storm/{path}", timeout=30) as answer:
            text: str = answer.read().decode()
        self.page_times.append((time.perf_counter() - began) * 1000)
        return text

    async def keep_open(self, path: str) -> None:
        """One page, opened again whenever its socket closes."""
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.cookies)
        url = f"{self.server.url}/c/storm/live/page/".replace("http", "ws", 1)
        headers = {"Cookie": cookies, "Origin": self.server.url}
        while True:
            with suppress(OSError, ConnectionClosed):
                text = await asyncio.to_thread(self.get, path)
                shown = re.findall(r'data-key="([^"]+)"', text)
                async with connect(url, additional_headers=headers, compression=None) as socket:
                    await socket.send(json.dumps({"show": {"row": shown}, "feed": None}))
                    async for _ in socket:
                        self.frames += 1
            await asyncio.sleep(1)


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


def serve(stack: ExitStack, folder: Path, port: int, run: int, pages_port: int) -> Server:
    file = folder / f"delay-{run}"
    server = Server(
        folder / "data", "--no-demo", "--cluster", f"storm=url:http://127.0.0.1:{port}",
        program=("-m", "tests.benchmarks.parts.loop_delay", str(file)), port=pages_port,
    )  # fmt: skip
    stack.callback(lambda: server.process.poll() is not None or server.interrupt())
    return server


async def load(pages: Pages, number: int, seconds: float) -> None:
    tasks = [
        asyncio.create_task(pages.keep_open(PATHS[index % len(PATHS)])) for index in range(number)
    ]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def follow(server: Server, asked: Namespace, seconds: float, folder: Path, run: int) -> None:
    """Pages open for so long, and what that took."""
    pages = Pages(server)
    pages.sign_in()
    with suppress(OSError):
        pages.get("leases/")
    usage, since = Usage(server.process.pid), time.time()
    asyncio.run(load(pages, asked.pages, seconds))
    until = time.time()
    print(f"CPU {usage.share:.1f} % of one core over {until - since:.0f} s")
    print(f"RSS {usage.memory('VmRSS'):.0f} MiB, at most {usage.memory('VmHWM'):.0f} MiB")
    print_delays(folder, "under load", run, since, until)
    print(f"{asked.pages} pages open, {pages.frames} frames")
    print_page_times(pages)


def print_page_times(pages: Pages) -> None:
    """The first paint of each page, while the storm goes on."""
    shown = re.findall(r'data-key="([^"]+)"', pages.get("leases/?kind=election"))
    for path in (*FIRST_PAINTS, f"leases/{shown[0]}/"):
        pages.get(path)
        pages.page_times.clear()
        for _ in range(TRIES):
            pages.get(path)
        some = sorted(pages.page_times)
        median = statistics.median(some)
        print(f"{path or 'overview':32} median {median:4.0f} ms, worst {some[-1]:.0f} ms")


def main() -> int:
    asked = arguments()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        port, truth, pages_port = free_port(), folder / "truth", free_port()
        control(stack, folder / "delay-control")
        server = serve(stack, folder, port, 0, pages_port)
        began = time.time()
        time.sleep(IDLE)
        print_delays(folder, "when idle", 0, began, time.time())
        print(f"RSS when idle {Usage(server.process.pid).memory('VmRSS'):.0f} MiB")
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
                server = serve(stack, folder, port, 1, pages_port)
                server.wait_synced(seconds=120)
                print("killed and started again")
            rest = asked.seconds - (asked.kill_at or 0)
            follow(server, asked, rest, folder, int(bool(asked.kill_at)))
            until = time.time() - 1
            time.sleep(SETTLE)
            made = ask(port, "/storm/stats")
        server.interrupt()
        print(json.dumps({k: made[k] for k in ("eventsMade", "slowWatchersCut", "drops", "gones")}))
        return compare(folder, truth, until)


def compare(folder: Path, truth: Path, until: float) -> int:
    history = folder / "history"
    exported = manage(folder / "data", "export_history", "--cluster", "storm")
    history.write_text(exported.stdout)
    kept = os.environ.get("STORM_KEEP")
    if kept:
        for file in (truth, history, next(folder.glob("*.log"))):
            (Path(kept) / file.name).write_bytes(file.read_bytes())
    return subprocess.call(
        [sys.executable, "-m", "tests.benchmarks.parts.storm_check", str(truth), str(history),
         "--until", str(until)],
        cwd=ROOT,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
