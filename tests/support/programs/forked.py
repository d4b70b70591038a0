"""Python programs as processes that begin with the libraries loaded.

To import Django, aiohttp and the Kubernetes client takes a second of a core, hundreds of times in
a run of the suite. So one process imports them and forks for each program. Of this repository it
has imported the rooms that need no settings: a program reads its environment and settings itself.

python3 -m tests.support.programs.forked FD FOLDER    (FD is a socket: one request per packet)
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import re
import resource
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
LIBRARIES = (
    "aiohttp", "aiosmtplib", "asgiref.sync", "axes.exceptions", "channels.generic.websocket",
    "channels.routing", "channels.security.websocket", "channels.sessions", "cryptography.fernet",
    "cryptography.hazmat.backends.openssl", "cryptography.hazmat.primitives.serialization",
    "cryptography.x509", "csp.middleware", "dj_database_url", "django.contrib.admin",
    "django.contrib.auth.apps", "django.contrib.auth.hashers",
    "django.contrib.auth.password_validation", "django.contrib.contenttypes.apps",
    "django.contrib.messages.storage.fallback", "django.contrib.sessions.backends.db",
    "django.contrib.staticfiles.finders", "django.contrib.staticfiles.storage",
    "django.core.management", "django.core.management.commands.migrate",
    "django.db.backends.postgresql.psycopg_any", "django.db.backends.sqlite3.base",
    "django.db.models.sql.compiler", "django.middleware.common", "django.shortcuts",
    "django.test.utils", "django.views.debug", "django.views.defaults", "django_htmx.middleware",
    "h11", "kubernetes.aio.client", "kubernetes.aio.config", "kubernetes.client",
    "kubernetes.leaderelection.leaderelection", "msgspec", "prometheus_client", "psycopg_pool",
    "servestatic", "sqlite3", "uvicorn.lifespan.on", "uvicorn.main",
    "uvicorn.protocols.http.httptools_impl", "uvicorn.protocols.websockets.websockets_sansio_impl",
    "uvloop", "websockets", "yaml",
)  # fmt: skip
ROOMS = "domain", "wire", "kube", "tracking", "listener", "apiserver", "demo"  # of leases
STRICT = ["-W", "error::ResourceWarning"]
LARGEST = 1 << 17  # bytes of a request: arguments and environment
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


class ForkedProcess:
    """What the tests use of subprocess.Popen."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        end = time.monotonic() + (timeout or float("inf"))
        pause = 0.001
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Forking:
    """Starts programs by fork; begins at the first one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # between a request and its answer
        self._requests: socket.socket | None = None
        self._server: subprocess.Popen[bytes] | None = None

    def start(
        self, program: tuple[str, ...], env: dict[str, str], stdout: int, stderr: int
    ) -> ForkedProcess:
        """`program` follows `python3`: STRICT or not, a file or `-m` and a module, arguments."""
        files = resource.getrlimit(resource.RLIMIT_NOFILE)
        request = {"program": program, "env": env, "umask": _umask(), "files": files}
        with self._lock:
            requests = self._requests or self._begin()
            socket.send_fds(requests, [json.dumps(request).encode()], [stdout, stderr])
            return ForkedProcess(int(requests.recv(64)))

    def _begin(self) -> socket.socket:
        # What loses its parent becomes a child of this process, which can wait for it.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            number = theirs.fileno()
            self._bytecode = tempfile.TemporaryDirectory("-bytecode", ignore_cleanup_errors=True)
            self._server = subprocess.Popen(
                [sys.executable, "-m", __name__, str(number), self._bytecode.name],
                cwd=ROOT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                pass_fds=[number],
            )
        atexit.register(self._end)
        return self._requests

    def _end(self) -> None:
        assert self._requests is not None
        assert self._server is not None
        self._requests.close()
        self._server.wait()
        self._bytecode.cleanup()


def _umask() -> int:
    found = re.search(r"^Umask:\s+(\d+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1], 8)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in LIBRARIES:
        importlib.import_module(name)
    if sys.dont_write_bytecode:  # every program would compile our 600 modules: 0.6 s of a core
        sys.dont_write_bytecode, sys.pycache_prefix = False, sys.argv[2]
    for room in (importlib.import_module(f"leases.{name}") for name in ROOMS):
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()  # or each program's collector would touch, and so copy, all that is loaded
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        while True:
            message, outputs, _, _ = socket.recv_fds(requests, LARGEST, 2)
            if not message:
                return
            pid = _fork_orphan()
            if not pid:
                break
            requests.send(str(pid).encode())
            for output in outputs:
                os.close(output)
    request = json.loads(message)
    os.umask(request["umask"])
    resource.setrlimit(resource.RLIMIT_NOFILE, request["files"])
    _become(request["env"], outputs)
    _run(request["program"])


def _fork_orphan() -> int:
    """The new process's number; 0 in the new process, whose parent has ended."""
    reading, writing = os.pipe()
    middle = os.fork()
    if not middle:
        pid = os.fork()
        if pid:
            os.write(writing, str(pid).encode())
            os._exit(0)
    else:
        os.waitpid(middle, 0)
    number = os.read(reading, 64) if middle else b"0"
    os.close(reading)
    os.close(writing)
    return int(number)


def _become(env: dict[str, str], outputs: list[int]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(env)
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
    for number, output in enumerate(outputs, start=1):
        os.dup2(output, number)
    os.closerange(3, max(outputs) + 1)


def _run(program: list[str]) -> Any:
    if program[:2] == STRICT:
        warnings.filterwarnings("error", category=ResourceWarning)
        program = program[2:]
    if program[0] == "-m":
        sys.argv[:] = program[1:]
        sys.path[0] = str(ROOT)
        return runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    sys.argv[:] = program
    sys.path[0] = str((ROOT / program[0]).parent)
    return runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    main()
