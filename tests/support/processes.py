"""Leaseboard as its own process, for tests that need the real thing."""

from __future__ import annotations

import fcntl
import itertools
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import IO, Any, TypeVar

from tests.support.programs.forked import STRICT, ForkedProcess, Forking
from tests.support.programs.prepared import begin_with, prepared

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 120.0  # seconds, for a machine with too much to do
PORTS = range(10_240, 32_768)
_ports = itertools.cycle(random.sample(PORTS, len(PORTS)))
_claiming = Lock()  # threads of one test may choose at once
_claimed: deque[int] = deque(maxlen=16)  # locked as long as they are open
T = TypeVar("T")
StartedProcess = subprocess.Popen[bytes] | ForkedProcess
forking: Forking | None = None  # set where tests run; a benchmark measures whole starts


def free_port() -> int:
    """A port that nobody listens on, below those that Linux gives to outgoing connections.

    A port of that range could be taken by any connection before the server binds it. Two workers
    that choose one port would both find "their" server ready, so each claims the port before.
    """
    for port in _ports:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if _claim(port):
            return port
    raise AssertionError("no port is free on the loopback interface")


def _claim(port: int) -> bool:
    """Whether no other process of tests has chosen it lately."""
    folder = Path(tempfile.gettempdir()) / "leaseboard-test-ports"
    folder.mkdir(exist_ok=True)
    claim = os.open(folder / str(port), os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(claim)
        return False
    with _claiming:
        if len(_claimed) == _claimed.maxlen:
            os.close(_claimed[0])
        _claimed.append(claim)
    return True


def wait_for(
    look: Callable[[], T | None], *, what: str, seconds: float = LIMIT, every: float = 0.01
) -> T:
    """What `look` gives once it gives something true; fails with `what` after the limit.

    Looks less and less often, for a look may cost the machine more than a pause.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        seen = look()
        if seen:
            return seen
        time.sleep(every)
        every = max(every, min(1.3 * every, 0.2))
    raise AssertionError(f"waited {seconds:.0f} s in vain for {what}")


def start_python(
    *program: str, env: dict[str, str], stdout: IO[Any], stderr: IO[Any]
) -> StartedProcess:
    """Start `python3 PROGRAM`; in a test, from a process that has the libraries loaded."""
    if forking is not None:
        return forking.start(program, env, stdout.fileno(), stderr.fileno())
    return subprocess.Popen(
        [sys.executable, *program],
        cwd=ROOT, env=env, stdout=stdout, stderr=stderr,
    )  # fmt: skip


def environment(data: Path, **extra: str) -> dict[str, str]:
    """For a process that prints its links into a log, where a test reads them."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("LEASEBOARD_", "DJANGO_"))}
    ours = {"LEASEBOARD_DATA": str(data), "LEASEBOARD_PRINT_LINKS": "always"}
    return {**clean, **ours, "PYTHONUNBUFFERED": "1", **extra}


def manage(data: Path, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """One management command to its end."""
    return _run("manage.py", *arguments, env=environment(data, **extra))


def _run(*program: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        code = start_python(*program, env=env, stdout=stdout, stderr=stderr).wait(timeout=60)
        stdout.seek(0)
        stderr.seek(0)
        return subprocess.CompletedProcess(program, code, stdout.read(), stderr.read())


def fill(data: Path) -> None:
    """Make a data directory with an empty history and the static files."""
    begin_with(prepared(prepare), data)


def run_python(*program: str, data: Path) -> None:
    """One program to its end, with the settings for a data directory."""
    done = _run(*program, env=environment(data))
    assert done.returncode == 0, done.stderr


def prepare(data: Path) -> None:
    run_python("-m", "tests.support.programs.prepared", data=data)


def get(url: str) -> tuple[int, str]:
    """Status and text, errors included; 0 when nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return 0, ""


class Server:
    """One `manage.py serve` with what it printed; `program` stands in for `manage.py`.

    In a test a new data directory holds an empty history and the static files already, unless it
    is to be `bare`.
    """

    def __init__(
        self,
        data: Path,
        *arguments: str,
        port: int | None = None,
        program: Sequence[str] = ("manage.py",),
        bare: bool = False,
        **extra: str,
    ) -> None:
        self.port = port or free_port()
        self.api_port = free_port()
        self.data = data
        self._arguments = (arguments, program, extra)
        self.log = data.parent / f"serve-{self.port}.log"
        if forking is not None and not bare and not data.exists():
            fill(data)
        ports = ("--port", str(self.port), "--api-port", str(self.api_port))
        with self.log.open("ab") as log:
            self.process = start_python(
                *STRICT, *program, "serve", *ports, *arguments,
                env=environment(data, **extra), stdout=log, stderr=log,
            )  # fmt: skip
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

        def links_so_far() -> list[str]:
            found = re.findall(rf"^{label} +(\S+)", self.text, re.MULTILINE)
            assert found or self.process.poll() is None, self.text
            return found

        links = wait_for(links_so_far, what=f"the line {label!r}")
        return str(links[-1])

    def wait_synced(self, seconds: float = LIMIT, every: float = 0.05) -> None:
        what = "every cluster to be listed"
        ready = f"{self.url}/readyz"
        wait_for(lambda: get(ready) == (200, "ok\n"), what=what, seconds=seconds, every=every)

    def again(self) -> Server:
        """The same, started anew, on the port of this one, which has ended."""
        arguments, program, extra = self._arguments
        return Server(self.data, *arguments, port=self.port, program=program, **extra)

    def interrupt(self) -> int:
        """Ctrl-C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=60)

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
