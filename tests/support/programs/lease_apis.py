"""Embedded Lease APIs as processes of their own, and what a server remembers of them."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import yaml

from tests.support.processes import (
    StartedProcess,
    environment,
    free_port,
    get,
    manage,
    start_python,
    wait_for,
)
from tests.support.programs.prepared import DATABASE


@contextmanager
def lease_api(data: Path) -> Iterator[tuple[StartedProcess, str]]:
    """An embedded Lease API alone, as its own process."""
    port = free_port()
    command = ("manage.py", "lease_api", "--port", str(port))
    with data.with_suffix(".log").open("ab") as log:
        process = start_python(*command, env=environment(data), stdout=log, stderr=log)
    try:
        wait_for(lambda: get(f"http://127.0.0.1:{port}/livez")[0] == 200, what="the Lease API")
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0


def context_file(path: Path, kubeconfig: Path) -> Path:
    """The same kubeconfig under a file of its own, as an operator would have it."""
    config = yaml.safe_load(kubeconfig.read_text())
    path.write_text(yaml.safe_dump(config))
    return path


def changes_in(data: Path, cluster: str, name: str = "") -> list[str]:
    """The changes that SQLite has by now, of one Lease or all; to export them takes a process."""
    database = f"file:{data / DATABASE}?mode=ro"
    select = "SELECT change FROM leases_change WHERE cluster = ? AND ? IN ('', name) ORDER BY id"
    with closing(sqlite3.connect(database, uri=True, timeout=60)) as there:
        return [change for (change,) in there.execute(select, (cluster, name))]


def history(data: Path, cluster: str) -> list[dict[str, object]]:
    done = manage(data, "export_history", "--cluster", cluster)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
