"""What attacks on the pages' port do to everybody else, one after the other beside the demo.

    python -m tests.benchmarks.under_attack [--root CHECKOUT] [--seconds 12] [--only NAME ...]

Starts `serve` with its demo in a directory thrown away, with the usual soft limit of 1,024 open
files. While an attack runs it opens three pages in turn, and moves a Lease to another holder and
waits until the live feed says so. Ends what it starts. Aim: the feed within 300 ms (p99), and at
most 100 MiB more memory throughout.
"""

from __future__ import annotations

import asyncio
import http.cookiejar
import json
import os
import resource
import signal
import subprocess
import sys
import time
import urllib.request
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from tests.benchmarks.parts.attacks import ATTACKS, HOST
from tests.benchmarks.parts.command import main
from tests.benchmarks.parts.figures import MIB, percentile
from tests.support.processes import ROOT, environment, free_port, get, wait_for
from tests.support.signing_in import send_form

PAGES = ("/c/embedded/", "/c/embedded/history/", "/c/embedded/wall/")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
LIMIT = 30.0


class Subject:
    """The `serve` under attack."""

    def __init__(self, root: Path, home: Path) -> None:
        self.data = home / "data"
        self.log = home / "log"
        self.port, self.api_port = free_port(), free_port()
        before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
        try:
            with self.log.open("wb") as log:
                self.process = subprocess.Popen(
                    [sys.executable, "manage.py", "serve", "--port", str(self.port),
                     "--api-port", str(self.api_port)],
                    cwd=root, env=environment(self.data, TMPDIR=str(home)), stdout=log, stderr=log,
                )  # fmt: skip
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (before, hard))
        self.url = f"http://{HOST}:{self.port}"
        wait_for(lambda: get(f"{self.url}/readyz")[0] == 200, what="the server to be ready")

    def sign_in(self) -> str:
        """By the printed link; the cookies."""
        jar = http.cookiejar.CookieJar()
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        line = next(x for x in self.log.read_text().splitlines() if x.startswith("Sign in "))
        link = line.split()[2]
        with opener.open(link, timeout=LIMIT) as answer:
            form = answer.read().decode()
        if 'name="token"' in form:
            send_form(opener, link, form)
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in jar)

    def resident(self) -> int:
        assert self.process.poll() is None, self.log.read_text()[-2000:]
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    def files(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))  # noqa: PTH208

    def spooled(self) -> int:
        """Bytes of unfinished bodies in the temporary directory, named there or not."""
        found = 0
        for entry in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with suppress(OSError):
                if "(deleted)" in str(entry.readlink()):
                    found += entry.stat().st_size
        return found

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass
class Seen:
    """What was measured while one attack ran."""

    pages: list[float] = field(default_factory=list)
    changes: list[float] = field(default_factory=list)
    failed: int = 0
    resident: int = 0
    files: int = 0
    spooled: int = 0


class Watch:
    """Measures beside the attack."""

    def __init__(self, subject: Subject, cookie: str) -> None:
        self.subject = subject
        self.cookie = cookie
        config = yaml.safe_load((subject.data / "kubeconfig").read_text())
        self.token = config["users"][0]["user"]["token"]
        self.number = 0
        self.moved: dict[str, asyncio.Future[float]] = {}

    async def run(self, seconds: float) -> Seen:
        seen = Seen()
        tasks = [asyncio.create_task(part(seen)) for part in (self._pages, self._look)]
        tasks.append(asyncio.create_task(self._changes(seen, time.monotonic() + seconds)))
        done, _ = await asyncio.wait([tasks[-1]], timeout=seconds + LIMIT)
        seen.failed += not done
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended
        return seen

    async def feed(self) -> None:
        """Reads the live feed, and comes back when it is cut."""
        url = f"ws://{HOST}:{self.subject.port}/c/embedded/live/changes/"
        headers = {"Cookie": self.cookie, "Origin": self.subject.url}
        while True:
            with suppress(OSError, TimeoutError, WebSocketException):
                async with connect(url, additional_headers=headers, max_size=None) as socket:
                    async for frame in socket:
                        for change in json.loads(frame)["changes"]:
                            waiting = self.moved.get(change.get("holder") or "")
                            if waiting is not None and not waiting.done():
                                waiting.set_result(time.monotonic())
            await asyncio.sleep(0.1)

    async def _pages(self, seen: Seen) -> None:
        at = 0
        while True:
            path, at = PAGES[at % len(PAGES)], at + 1
            begun = time.monotonic()
            try:
                async with asyncio.timeout(LIMIT):  # `wait_for` may lose a cancellation
                    code = await self._get(path)
            except (OSError, TimeoutError):
                code = 0
            seen.pages.append(time.monotonic() - begun)
            seen.failed += code != 200
            await asyncio.sleep(0.1)

    async def _get(self, path: str) -> int:
        return (await self._ask(self.subject.port, "GET", path, f"Cookie: {self.cookie}"))[0]

    async def _ask(self, port: int, method: str, path: str, *lines: str, body: bytes = b"") -> Any:
        reader, writer = await asyncio.open_connection(HOST, port)
        try:
            head = [f"{method} {path} HTTP/1.1", f"Host: {HOST}:{port}", "Connection: close",
                    f"Content-Length: {len(body)}", *lines]  # fmt: skip
            writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
            answer = await reader.read()
        finally:
            writer.close()
        return int(answer[9:12] or b"0"), answer.partition(b"\r\n\r\n")[2]

    async def move(self) -> float:
        """Give the Lease to another holder; seconds until the feed says so."""
        self.number += 1
        holder = f"holder-{self.number}"
        heard = self.moved[holder] = asyncio.get_running_loop().create_future()
        lease = {"metadata": {"name": "attacked"}, "spec": {"holderIdentity": holder,
                 "leaseDurationSeconds": 3600, "leaseTransitions": self.number}}  # fmt: skip
        begun = time.monotonic()
        first = self.number == 1
        method, path = ("POST", LEASES) if first else ("PATCH", f"{LEASES}/attacked")
        kind = "application/json" if first else "application/merge-patch+json"
        async with asyncio.timeout(LIMIT):
            code, text = await self._ask(
                self.subject.api_port, method, path, f"Authorization: Bearer {self.token}",
                f"Content-Type: {kind}", body=json.dumps(lease).encode(),
            )  # fmt: skip
            assert code in (200, 201), text
            return await heard - begun

    async def _changes(self, seen: Seen, until: float) -> None:
        while time.monotonic() < until:
            begun = time.monotonic()
            try:
                seen.changes.append(await self.move())
            except (OSError, TimeoutError):
                seen.changes.append(time.monotonic() - begun)
                seen.failed += 1
            await asyncio.sleep(0.1)

    async def _look(self, seen: Seen) -> None:
        while True:
            seen.resident = max(seen.resident, self.subject.resident())
            seen.files = max(seen.files, self.subject.files())
            seen.spooled = max(seen.spooled, self.subject.spooled())
            await asyncio.sleep(0.25)


def begin_attack(name: str, port: int, seconds: float, cookie: str) -> subprocess.Popen[str]:
    """In a process of its own, so that it takes no time from the measuring."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.parts.attacks", name, str(port), str(seconds),
         cookie],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def end_attack(attacker: subprocess.Popen[str]) -> str:
    """What the attacker printed."""
    try:
        return attacker.communicate(timeout=10)[0].strip()
    except subprocess.TimeoutExpired:
        attacker.kill()
        return attacker.communicate()[0].strip() or "did not end by itself"


async def attack_all(subject: Subject, names: list[str], seconds: float) -> None:
    cookie = subject.sign_in()
    watch = Watch(subject, cookie)
    reading = asyncio.create_task(watch.feed())
    await asyncio.sleep(1.0)
    await watch.move()
    await watch.run(3.0)  # the first pages read templates
    calm = subject.resident()
    print(f"{'attack':15} {'page p99':>9} {'worst':>8} {'feed p99':>9} {'worst':>8} {'failed':>6} "
          f"{'RSS + MiB':>9} {'spool MiB':>9} {'log kB':>9} {'files':>6}")  # fmt: skip
    for name in ["none", *names]:
        logged = subject.log.stat().st_size
        attacker = None if name == "none" else begin_attack(name, subject.port, seconds, cookie)
        try:
            seen = await watch.run(seconds)
        finally:
            printed = await asyncio.to_thread(end_attack, attacker) if attacker else ""
        log = subject.log.stat().st_size - logged
        ms = [1000 * value for value in (percentile(seen.pages, 0.99), max(seen.pages, default=0),
              percentile(seen.changes, 0.99), max(seen.changes, default=0))]  # fmt: skip
        print(f"{name:15} {ms[0]:6.0f} ms {ms[1]:5.0f} ms {ms[2]:6.0f} ms {ms[3]:5.0f} ms "
              f"{seen.failed:6} {(seen.resident - calm) / MIB:9.0f} {seen.spooled / MIB:9.0f} "
              f"{log / 1000:9.1f} {seen.files:6}", flush=True)  # fmt: skip
        if attacker is not None:
            print(f"{'':15} attacker: {printed}", flush=True)
        await asyncio.sleep(2.0)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    print(f"afterwards: {subject.files()} files, RSS + {(subject.resident() - calm) / MIB:.0f} MiB")


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout to attack")
    parser.add_argument("--seconds", type=float, default=12.0, help="for each attack")
    parser.add_argument("--only", nargs="+", choices=list(ATTACKS), default=list(ATTACKS))


def measure(asked: Namespace, home: Path) -> None:
    subject = Subject(asked.root, home)
    try:
        asyncio.run(attack_all(subject, asked.only, asked.seconds))
    finally:
        subject.stop()


if __name__ == "__main__":
    main(__doc__, measure, options)
