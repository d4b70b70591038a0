"""Leaseboard as its own process, for tests that need the real thing."""

from __future__ import annotations

import itertools
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 30.0
PORTS = range(10_240, 32_768)
_ports = itertools.cycle(random.sample(PORTS, len(PORTS)))
T = TypeVar("T")


def free_port() -> int:
    """A port that nobody listens on, below those that Linux gives to outgoing connections.

    A port of that range could be taken by any connection before the server binds it.
    """
    for port in _ports:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free on the loopback interface")


def wait_for(
    look: Callable[[], T | None], *, what: str, seconds: float = LIMIT, every: float = 0.05
) -> T:
    """What `look` gives once it gives something true; fails with `what` after the limit."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        seen = look()
        if seen:
            return seen
        time.sleep(every)
    raise AssertionError(f"waited {seconds:.0f} s in vain for {what}")


def environment(data: Path, **extra: str) -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("LEASEBOARD_", "DJANGO_"))}
    return {**clean, "LEASEBOARD_DATA": str(data), "PYTHONUNBUFFERED": "1", **extra}


def manage(data: Path, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """One management command to its end."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment(data, **extra),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def get(url: str) -> tuple[int, str]:
    """Status and text, errors included; 0 when nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return 0, ""


class Server:
    """One `manage.py serve` with what it printed; `program` stands in for `manage.py`."""

    def __init__(
        self,
        data: Path,
        *arguments: str,
        port: int | None = None,
        program: Sequence[str] = ("manage.py",),
        **extra: str,
    ) -> None:
        self.port = port or free_port()
        self.api_port = free_port()
        self.data = data
        self._arguments = (arguments, program, extra)
        self.log = data.parent / f"serve-{self.port}.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-W",
                    "error::ResourceWarning",
                    *program,
                    "serve",
                    "--port",
                    str(self.port),
                    "--api-port",
                    str(self.api_port),
                    *arguments,
                ],
                cwd=ROOT,
                env=environment(data, **extra),
                stdout=log,
                stderr=log,
            )
        wait_for(self._ready, what="the server to be ready")

    def _ready(self) -> bool:
        assert self.process.poll() is None, self.text
        return get(f"{self.url}/healthz")[0] == 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def api_url(self) -> str:
        return f"http://127.0.0.1:{self.api_port}"

    @property
    def kubeconfig(self) -> Path:
        return self.data / "kubeconfig"

    @property
    def text(self) -> str:
        return self.log.read_text()

    def printed(self, label: str) -> str:
        """The link printed behind a label, of the newest start."""
        return re.findall(rf"^{label} +(\S+)", self.text, re.MULTILINE)[-1]

    def wait_synced(self, seconds: float = LIMIT, every: float = 0.05) -> None:
        what = "every cluster to be listed"
        ready = f"{self.url}/readyz"
        wait_for(lambda: get(ready)[0] == 200, what=what, seconds=seconds, every=every)

    def again(self) -> Server:
        """The same, started anew, on the port of this one, which has ended."""
        arguments, program, extra = self._arguments
        return Server(self.data, *arguments, port=self.port, program=program, **extra)

    def interrupt(self) -> int:
        """Ctrl-C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=15)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def serving(data: Path, *arguments: str, **extra: str) -> Iterator[Server]:
    """A server for the length of a test."""
    with ended(Server(data, *arguments, **extra)) as server:
        yield server


@contextmanager
def ended(server: Server) -> Iterator[Server]:
    """Sees to it that a server does not outlive the test."""
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.interrupt()
