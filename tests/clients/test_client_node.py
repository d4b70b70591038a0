"""@kubernetes/client-node: its programs in node/ run against the server and print JSON lines."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.clients import Process
from tests.clients.presence import absent, program
from tests.clients.somebody import Somebody
from tests.support.processes import free_port

pytestmark = pytest.mark.clients
PROGRAMS = Path(__file__).with_name("node")
LIMIT = 30
ENDED = object()


class Node:
    """One running program; `next` is the next line that it prints."""

    def __init__(self, name: str, kubeconfig: Path, namespace: str) -> None:
        if not (PROGRAMS / "node_modules/@kubernetes/client-node").is_dir():
            absent("@kubernetes/client-node (npm ci in tests/clients/node)")
        self.process = subprocess.Popen(
            [program("node"), str(PROGRAMS / name), str(kubeconfig), namespace],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.lines: queue.Queue[Any] = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(ENDED)

    def next(self) -> Any:
        line = self.lines.get(timeout=LIMIT)
        assert line is not ENDED, "the program ended"
        return line

    def everything(self) -> dict[str, Any]:
        assert self.process.wait(timeout=LIMIT) == 0
        self.reader.join(timeout=LIMIT)
        lines = [line for line in self.lines.queue if line is not ENDED]
        return {name: value for line in lines for name, value in line.items()}

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self.reader.join(timeout=LIMIT)
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def running(name: str, kubeconfig: Path, namespace: str) -> Iterator[Node]:
    node = Node(name, kubeconfig, namespace)
    try:
        yield node
    finally:
        node.stop()


def test_every_verb_and_every_patch(secure: Path, namespace: str) -> None:
    with running("requests.mjs", secure, namespace) as node:
        assert node.everything() == {
            "same": True,
            "renewTime": "2024-05-01T10:00:00.123000Z",
            "again": 409,
            "replaced": "b",
            "stale": 409,
            "json": "c",
            "merge": "d",
            "strategic": "e",
            "conflict": 409,
            "apply": "f",
            "pages": ["one", "two"],
            "gone": 404,
            "left": 0,
        }


def test_a_watch_reports_the_writes_of_others(
    secure: Path, namespace: str, somebody: Somebody
) -> None:
    with running("watch.mjs", secure, namespace) as node:
        assert node.next() == ["OPEN"]
        somebody.create("one", "a")
        assert node.next() == ["ADDED", "one", "a"]
        somebody.hand_over("one", "b")
        assert node.next() == ["MODIFIED", "one", "b"]
        somebody.delete("one")
        assert node.next() == ["DELETED", "one", "b"]


def test_the_informer_follows_what_happens(
    secure: Path, namespace: str, somebody: Somebody
) -> None:
    somebody.create("one", "a")
    with running("informer.mjs", secure, namespace) as node:
        assert node.next() == ["add", "one", "a", 1]
        somebody.create("two", "b")
        assert node.next() == ["add", "two", "b", 2]
        somebody.hand_over("one", "c")
        assert node.next() == ["update", "one", "c", 2]
        somebody.delete("one")
        assert node.next() == ["delete", "one", "c", 1]


def test_the_informer_lists_anew_when_the_server_came_back(tmp_path: Path) -> None:
    api = Process(tmp_path / "data", "--port", str(free_port()))
    with api:
        somebody = Somebody(api.url, "default")
        somebody.create("one", "a")
        somebody.close()
        with running("informer.mjs", api.data / "kubeconfig", "default") as node:
            assert node.next() == ["add", "one", "a", 1]
            api.kill()
            api.start()
            somebody = Somebody(api.url, "default")
            somebody.hand_over("one", "b")
            somebody.close()
            while (line := node.next()) == ["error"]:
                pass
            assert line == ["update", "one", "b", 1]
