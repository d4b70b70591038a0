"""The pages' port, and static files.

The addresses of proxies whose `X-Forwarded-For` counts come from uvicorn's own environment
variable FORWARDED_ALLOW_IPS.
"""

import hashlib
import shutil
import signal
import time
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from django.contrib.staticfiles.finders import get_finders
from django.contrib.staticfiles.storage import ManifestStaticFilesStorage
from django.core.management import call_command

from dashboard.access.proxy import keep_peer
from dashboard.board import running_board
from leases.listener.limits import KIB, MIB, Limits
from leases.listener.protocol import LimitedProtocol, LimitedWebSocket
from leases.listener.server import ListeningServer

LIMITS = Limits(
    head_bytes=64 * KIB,
    head_seconds=10.0,
    body_bytes=MIB,  # the largest form, an edit of a holder of 100 kB, needs a third of it
    body_seconds=30.0,
    stall_seconds=30.0,
    connections=4096,
    waiting=512,
    sockets=2048,
    pipelined=16,
    read_bytes=32 * KIB,
)
GRACE_SECONDS = 3
DRAIN_LOOK_SECONDS = 0.1
MAX_SOCKET_MESSAGE = 256 * KIB  # a page names the 500 Leases that it shows at most
PING_SECONDS = 20.0


class PagesConfig(uvicorn.Config):
    """Stores the address of each connection before uvicorn replaces it by X-Forwarded-For."""

    def load(self) -> None:
        super().load()
        self.loaded_app = keep_peer(self.loaded_app)


class DrainingServer(ListeningServer):
    """At SIGTERM lets `/readyz` fail for `drain_seconds`, so that proxies send nothing more. Then
    closes the port and all sockets. A second signal ends the wait.
    """

    drain_seconds = 0.0
    _closes_at: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if sig != signal.SIGTERM:
            super().handle_exit(sig, frame)
        elif self._closes_at is None and self.started:
            running_board().leave()
            self._closes_at = time.monotonic() + self.drain_seconds
            self.look_seconds = DRAIN_LOOK_SECONDS
        else:  # uvicorn would end the process by the signal; it ends with 0 instead
            self.should_exit = True
        self.look_now()

    async def on_tick(self, counter: int) -> bool:
        if self._closes_at is not None and time.monotonic() >= self._closes_at:
            self.should_exit = True
        return await super().on_tick(counter)


def pages_server(app: str, *, files: int, drain_seconds: float = 0.0) -> DrainingServer:
    """The server of the pages, for a process that may have `files` open files."""
    config = PagesConfig(
        app,
        http=LimitedProtocol,
        ws=LimitedWebSocket,
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=False,
        ws_max_size=MAX_SOCKET_MESSAGE,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PING_SECONDS,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        server_header=False,
    )
    server = DrainingServer(
        config, LIMITS.within(files), name="The pages' port", failed=_accepting_failed
    )
    server.drain_seconds = drain_seconds
    return server


def _accepting_failed(task: str, error: Exception) -> None:
    running = running_board()
    running.supervisor.failed(task, error, effect="New connections to the pages may be refused.")


STAMP = "sources.sha256"  # beside the collected files: what they were collected from


class HashedStorage(ManifestStaticFilesStorage):
    """Keeps the plain names until `collectstatic` has run, so that tests need not run it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._urls: dict[tuple[str, bool], str] = {}

    def url(self, name: str | None, force: bool = False) -> str:
        """Compute each URL once: pages ask for the same ones a hundred times."""
        key = name or "", bool(self.hashed_files)
        if key not in self._urls:
            self._urls[key] = super().url(key[0], force)
        return self._urls[key]

    def stored_name(self, name: str) -> str:
        return super().stored_name(name) if self.hashed_files else name


def collect(root: Path) -> None:
    """Write the static files to `root`, unless an earlier start wrote the same ones.

    A machine that failed soon after an earlier start may have left empty files, which would pass
    for collected ones: then all are written anew.
    """
    stamp, sources = root / STAMP, _sources()
    files = (path for path in root.rglob("*") if path.is_file())
    if any(path.stat().st_size == 0 for path in files):
        shutil.rmtree(root)
    elif stamp.exists() and stamp.read_text() == sources:
        return
    call_command("collectstatic", interactive=False, verbosity=0)
    stamp.write_text(sources)


def _sources() -> str:
    """A digest that changes when a source file is added, removed, resized or written."""
    digest = hashlib.sha256()
    for finder in get_finders():
        for name, storage in finder.list(None):
            stat = Path(storage.path(name)).stat()
            digest.update(f"{name} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()
