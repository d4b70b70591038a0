"""leasestorm as a process, and Leaseboard beside it."""

from __future__ import annotations

import json
import math
import os
import re
import ssl
import subprocess
import sys
import time
import urllib.request
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from leases.apiserver.http.port import CERTIFICATE, KEY
from tests.benchmarks.parts.storm_check import SETTLING
from tests.support.processes import ROOT, Server, free_port, get, manage, wait_for

STORM = ROOT / "tests/benchmarks/leasestorm.py"
CLUSTER = "storm"
QUEUED = "history_queue_changes"
BREAKS = "watch_breaks_total{.*}"
MAX_WINDOWS = 10
SETTLE = 8.0  # seconds at the end: after a cut connection deadlines wait, for 5 s at most


def calm_options(
    parser: ArgumentParser, *, seconds: float, leases: int = 130_000, elections: int = 2_000,
    rate: float = 13_000,
) -> None:  # fmt: skip
    """Options of every benchmark beside a storm; unless more are given it cuts no connection."""
    parser.add_argument("--leases", type=int, default=leases)
    parser.add_argument("--elections", type=int, default=elections)
    parser.add_argument("--rate", type=float, default=rate)
    parser.add_argument("--seconds", type=float, default=seconds)
    parser.set_defaults(
        calm=True, tls=None, quiet_renewals=False, drop_mode="mid", gone_style="event",
        compact=False, framing="event",
    )  # fmt: skip


def fault_options(parser: ArgumentParser) -> None:
    """`--calm` takes the faults away, which are the default here."""
    parser.set_defaults(calm=False)
    parser.add_argument("--calm", action="store_true", help="no cut connections, no 410")
    parser.add_argument("--kill-at", type=float, help="kill -9 and start again, S seconds in")


@contextmanager
def storm(asked: Namespace, port: int, truth: Path, expire: float = 10) -> Iterator[None]:
    """The load of a large cluster, with its own log of what it did."""
    faults = [] if asked.calm else ["--drop-every", "23", "--gone-every", "41"]
    changes = ["--transitions-per-s", "20", "--expire-per-s", str(expire), "--delete-per-s", "5"]
    options = [
        "--leases", str(asked.leases), "--elections", str(asked.elections),
        "--rate", str(asked.rate), "--duration", "3600", "--revive-after", "45",
        "--recreate-after", "5", "--drop-mode", asked.drop_mode, "--gone-style", asked.gone_style,
        "--framing", asked.framing, *faults, *([] if asked.quiet_renewals else changes),
        *(["--compact"] if asked.compact else []),
    ]  # fmt: skip
    with leasestorm(port, truth, *options, tls=asked.tls):
        yield


@contextmanager
def leasestorm(
    port: int, truth: Path, *options: str, tls: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A storm with these options; it is asked to quit, so that it writes its log to the end.

    It speaks TLS where a folder with a certificate is given.
    """
    command = [sys.executable, str(STORM), "--port", str(port), "--truth", str(truth), "--quiet"]
    if tls is not None:
        command += ["--tls-cert", str(tls / CERTIFICATE), "--tls-key", str(tls / KEY)]
    process = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: stats(port, tls), what="the storm to begin", seconds=60)
        yield process
    finally:
        with suppress(OSError):
            ask(port, "/storm/quit", tls)
        process.wait(timeout=20)


def ask(port: int, path: str, tls: Path | None = None) -> dict[str, Any]:
    trusted = None if tls is None else ssl.create_default_context(cafile=tls / CERTIFICATE)
    with urllib.request.urlopen(f"{_url(port, tls)}{path}", timeout=5, context=trusted) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def stats(port: int, tls: Path | None = None) -> dict[str, Any] | None:
    try:
        return ask(port, "/storm/stats", tls)
    except OSError:
        return None


def source(port: int, tls: Path | None = None) -> str:
    """The `--cluster` of a server that watches the storm on this port."""
    return f"{CLUSTER}=url:{_url(port, tls)}"


def _url(port: int, tls: Path | None) -> str:
    return f"{'http' if tls is None else 'https'}://127.0.0.1:{port}"


def interrupted_at_end(stack: ExitStack, server: Server) -> Server:
    """The server; the end of the stack ends it, unless it has ended."""
    stack.callback(lambda: server.process.poll() is not None or server.interrupt())
    return server


@contextmanager
def storm_and_server(
    asked: Namespace, folder: Path, expire: float = 10
) -> Iterator[tuple[Server, Path]]:
    """A storm, a server that has listed it, and the path of the storm's own log."""
    port, truth = free_port(), folder / "truth"
    with ExitStack() as stack, storm(asked, port, truth, expire):
        server = Server(folder / "data", "--no-demo", "--cluster", source(port))
        interrupted_at_end(stack, server)
        server.wait_synced(seconds=180)
        yield server, truth


def all_written(server: Server, replace: int = 0) -> bool:
    """Whether no change waits for the database, or only the last so many of those that come."""
    return _read(server, QUEUED) <= replace


def told_until(server: Server) -> float:
    """Wait, and return the moment before which all that the one cluster did must be told.

    What happens while a list is read is told at its end, and after a break deadlines wait: so the
    watch must be up to date, and then not break nor fall behind for SETTLE seconds.
    """
    for _ in range(MAX_WINDOWS):
        wait_for(lambda: _is_followed(server), what="the watch", seconds=120, every=0.5)
        until, breaks = time.time() - 1, _read(server, BREAKS)
        if _stays_followed(server) and _read(server, BREAKS) == breaks:
            return until
    raise AssertionError(f"the watch is never up to date for {SETTLE:g} s")


def _stays_followed(server: Server) -> bool:
    for _ in range(int(SETTLE)):
        time.sleep(1)
        if not _is_followed(server):
            return False
    return True


def _is_followed(server: Server) -> bool:
    return _read(server, "connected{.*}") == 1 and _read(server, "seconds_behind{.*}") < 1


def _read(server: Server, name: str) -> float:
    return _figure(get(f"{server.url}/metrics")[1], name)


def waiting(metrics: str) -> float:
    """How many changes wait for the database; infinite if nothing says so."""
    return _figure(metrics, QUEUED)


def _figure(metrics: str, name: str) -> float:
    found = re.search(rf"^leaseboard_{name} (\S+)", metrics, re.MULTILINE)
    return float(found[1]) if found else math.inf


def check_history(
    data: Path,
    truth: Path,
    until: float,
    *,
    cluster: str = CLUSTER,
    tls: bool = False,
    **extra: str,
) -> int:
    """Compare the exported history with the storm's log; 1 if they differ. Over TLS lists take
    twice as long.

    STORM_KEEP names a folder that keeps both, and the server's log.
    """
    folder = data.parent
    history = folder / f"history-{cluster}"
    exported = manage(data, "export_history", "--cluster", cluster, **extra)
    history.write_text(exported.stdout)
    print(f"{cluster}: {len(exported.stdout.splitlines())} changes kept")
    if kept := os.environ.get("STORM_KEEP"):
        for file in (truth, history, next(folder.glob("*.log"))):
            (Path(kept) / file.name).write_bytes(file.read_bytes())
    return subprocess.call(
        [sys.executable, "-m", "tests.benchmarks.parts.storm_check", str(truth), str(history),
         "--until", str(until), "--settling", str(SETTLING * (1 + tls))],
        cwd=ROOT,
    )  # fmt: skip
