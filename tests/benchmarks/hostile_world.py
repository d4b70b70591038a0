"""What a counterpart that never answers, drips, floods or lies does to everybody else.

    python3 -m tests.benchmarks.hostile_world [--seconds 15] [--only NAME ...]

For each counterpart it starts `serve` with an embedded API, lets the counterpart at it, and
meanwhile asks: does an election that expires become an incident and a line of history, do pages and
the embedded API answer (a large create, a gzip list), and how much memory is taken? Then it sends
SIGTERM. Ends what it starts. Aim: every incident within 10 s, SIGTERM within 5 s, at most 100 MiB
more than without a counterpart. What can hang, and its bound: docs/decisions.md.
"""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.parts.command import main
from tests.benchmarks.parts.figures import MIB, percentile
from tests.support.api_client import LeaseApi, leases
from tests.support.processes import ROOT, Server, wait_for
from tests.support.programs.receivers import by_http, by_mail, make_receivers
from tests.support.signing_in import signed_in

WITHIN, END_WITHIN, MORE = 10.0, 5.0, 100 * MIB
PAGES = ("", "history/", "incidents/", "leases/", "wall/")
PLAIN = ("manage.py",)
HANGING = ("-m", "tests.serving.serve_without_shared_threads")
STEPPED = ("-m", "tests.serving.tasks.stepped")


@dataclass
class Counterpart:
    """`mail`, `http` and `api` name behaviours of tests/support/hostile.py, each at once."""

    mail: tuple[str, ...] = ()
    http: tuple[str, ...] = ()
    api: str = ""
    names: bool = False  # receivers whose names are never found
    lock: bool = False  # somebody holds the database's lock, and lets it go before SIGTERM
    incidents: bool = True  # False: their own review is what hangs
    program: tuple[str, ...] = PLAIN
    extra: dict[str, str] | None = None


COUNTERPARTS = {
    "nobody": Counterpart(),
    "mail: never answers": Counterpart(mail=("silent",) * 6),
    "mail: drips": Counterpart(mail=("drips lines", "drips bytes", "drips after its greeting") * 2),
    "mail: floods": Counterpart(
        mail=("floods lines", "floods one line", "floods after its greeting") * 2
    ),
    "mail: lies": Counterpart(mail=("answers no mail", "answers other codes") * 3),
    "http: never answers": Counterpart(http=("silent",) * 6),
    "http: drips": Counterpart(http=("drips a status", "drips 102", "drips a body") * 2),
    "http: floods": Counterpart(
        http=("floods 102", "floods headers", "floods a header", "floods a body")
    ),
    "http: lies": Counterpart(http=("lies about its length", "answers no HTTP") * 3),
    "names: never found": Counterpart(names=True, program=HANGING, extra={"HANG": "names"}),
    "cluster: never answers": Counterpart(api="silent"),
    "cluster: drips": Counterpart(api="drips a body"),
    "cluster: floods": Counterpart(api="floods a body"),
    "cluster: floods 102": Counterpart(api="floods 102"),
    "cluster: lies": Counterpart(api="lies about its length"),
    "database: locked": Counterpart(lock=True),
    "pools: each has a call that hangs": Counterpart(
        incidents=False, program=HANGING, extra={"HANG": "threads"}
    ),
    "loop: stands still at the end": Counterpart(program=HANGING, extra={"HANG": "loop"}),
    "clock: 400 days ahead": Counterpart(program=STEPPED, extra={"AHEAD": str(400 * 86_400)}),
}


@dataclass
class Seen:
    incidents: list[float]
    pages: list[float]
    api: list[float]
    resident: int = 0
    end: float = 0.0

    def wrong(self, base: int, *, incidents: bool) -> list[str]:
        found = []
        if incidents and (not self.incidents or max(self.incidents) > WITHIN):
            found.append("incidents came late or not at all")
        if self.end > END_WITHIN:
            found.append("SIGTERM took too long")
        if base and self.resident - base > MORE:
            found.append("too much memory")
        return found


@contextmanager
def hostile_ports() -> Iterator[dict[str, int]]:
    """One process with all behaviours: it may not take the time of the one that is measured."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.hostile"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def receivers_of(one: Counterpart, ports: dict[str, int]) -> dict[str, tuple[str, dict[str, Any]]]:
    wanted = {}
    for number, name in enumerate(one.mail):
        wanted[f"{name} {number}"] = by_mail(ports[name])
    for number, name in enumerate(one.http):
        wanted[f"{name} {number}"] = by_http(ports[name])
    if one.names:
        for number in range(6):
            wanted[f"mail {number}"] = by_mail(25, f"mail-{number}.hangs.example.com")
            wanted[f"hook {number}"] = by_http(80, f"hook-{number}.hangs.example.com")
    return wanted


class Visitor:
    """Opens pages, writes Leases, and waits for what becomes of them."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._api = LeaseApi(server.kubeconfig)
        self._browser = signed_in(server)
        self._number = 0
        self.seen = Seen([], [], [])

    def _open(self, path: str) -> bytes:
        begun = time.monotonic()
        with self._browser.open(f"{self._server.url}/c/own/{path}", timeout=60) as answer:
            text: bytes = answer.read()
        self.seen.pages.append(time.monotonic() - begun)
        return text

    def look(self, *, written: bool) -> None:
        """One round; `written`: history can be written, so the incident must come."""
        self._number += 1
        name = f"expires-{self._number}"
        begun = time.monotonic()
        self._api.create(name, holder=f"holder-{self._number}", duration=1, transitions=3)
        self._list_and_create()
        for page in PAGES:
            self._open(page)
        if written:
            sought = f'"default/{name}"', f'"{name}"'
            paths = "incidents/?format=json", "history/?format=json"
            for path in paths:
                wait_for(
                    lambda path=path: any(one.encode() in self._open(path) for one in sought),
                    what=f"{name} on {path}",
                    seconds=60,
                )
            self.seen.incidents.append(time.monotonic() - begun - 1.0)  # it lasts a second

    def _list_and_create(self) -> None:
        begun = time.monotonic()
        large = {"generateName": "large-", "annotations": {"a": "x" * 100_000}}
        self._api.send("POST", leases(), {"metadata": large, "spec": {}})
        headers = {"Authorization": f"Bearer {self._api.token}", "Accept-Encoding": "gzip"}
        request = urllib.request.Request(f"{self._server.api_url}{leases()}", headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()
        self.seen.api.append(time.monotonic() - begun)


def resident(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def run(one: Counterpart, folder: Path, ports: dict[str, int], seconds: float) -> Seen:
    clusters = ["--no-demo", "--cluster", "own=embedded"]
    if one.api:
        clusters += ["--cluster", f"other=url:http://127.0.0.1:{ports[one.api]}"]
    data = folder / "data"
    server = Server(data, *clusters, program=one.program, **(one.extra or {}))
    try:
        visitor = Visitor(server)
        if wanted := receivers_of(one, ports):
            make_receivers(data, wanted)
        database = sqlite3.connect(data / "leaseboard.sqlite3", isolation_level=None)
        with closing(database):
            if one.lock:
                database.execute("BEGIN IMMEDIATE")
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                visitor.look(written=one.incidents and not one.lock)
        if one.lock:
            visitor.look(written=True)
        seen = visitor.seen
        seen.resident = resident(server.process.pid)
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(timeout=60)
        seen.end = time.monotonic() - begun
        return seen
    finally:
        if server.process.poll() is None:
            server.kill()


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=15.0, help="for each counterpart")
    parser.add_argument("--only", nargs="+", choices=list(COUNTERPARTS), default=list(COUNTERPARTS))


def measure(asked: Namespace, folder: Path) -> int:
    failed, base = 0, 0
    print(f"{'counterpart':<36}{'incident':>10}{'page p99':>10}{'API':>8}{'RSS MiB':>9}{'end':>7}")
    with hostile_ports() as ports:
        for number, name in enumerate(asked.only):
            place = folder / str(number)
            place.mkdir()
            seen = run(COUNTERPARTS[name], place, ports, asked.seconds)
            if name == "nobody":
                base = seen.resident
            wrong = seen.wrong(base, incidents=COUNTERPARTS[name].incidents)
            failed += bool(wrong)
            print(
                f"{name:<36}{max(seen.incidents, default=0):>8.1f} s"
                f"{1000 * percentile(seen.pages, 0.99):>7.0f} ms{max(seen.api):>6.1f} s"
                f"{seen.resident / MIB:>9.0f}{seen.end:>5.1f} s  {'; '.join(wrong)}",
                flush=True,
            )
    print("wrong" if failed else "all is right")
    return int(bool(failed))


if __name__ == "__main__":
    main(__doc__, measure, options)
