"""`serve` listens with limits: strangers can neither fill it nor keep it from answering."""

from __future__ import annotations

import re
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from dashboard.serving.pages_port import LIMITS, pages_server
from leases.listener.limits import MIB
from leases.listener.protocol import LimitedProtocol, LimitedWebSocket
from tests.support.processes import Server, get, serving

USUAL_FILES = 1024


@contextmanager
def open_files(soft: int) -> Iterator[None]:
    """This process, and those that it starts, may have so many."""
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, hard))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with open_files(USUAL_FILES):
        stack = ExitStack()
        data = tmp_path_factory.mktemp("pages") / "data"
        # No embedded API, which raises the limit of files for itself.
        one = stack.enter_context(serving(data, "--cluster", "far=url:http://127.0.0.1:9"))
    with stack:
        yield one
    assert "Traceback" not in one.text


@contextmanager
def connected(server: Server) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        yield connection


def answer_to(server: Server, data: bytes) -> bytes:
    with connected(server) as connection:
        connection.sendall(data)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    return answer


def test_it_may_have_as_many_files_as_the_system_lets_it(server):
    said = Path(f"/proc/{server.process.pid}/limits").read_text()
    found = re.search(r"Max open files +(\d+) +(\d+)", said)
    assert found is not None
    assert int(found[1]) == int(found[2])


def test_it_answers_beside_more_idle_connections_than_it_had_files(server):
    before = len(server.text)
    with open_files(4096), ExitStack() as stack:
        for _ in range(1200):
            stack.enter_context(connected(server))
        for path in ("/healthz", "/sign-in/"):
            assert get(f"{server.url}{path}")[0] == 200
        assert len(list(Path(f"/proc/{server.process.pid}/fd").iterdir())) < 1000
    assert len(server.text) - before < 500


def test_it_refuses_a_body_that_says_it_is_large_before_reading_it(server):
    head = b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    answer = answer_to(server, head % (600 * MIB))
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"1024 KiB at most" in answer
    assert b"connection: close" in answer


def test_it_refuses_a_head_that_is_large(server):
    answer = answer_to(server, b"GET / HTTP/1.1\r\nX: %s\r\n\r\n" % (b"y" * 65_600))
    assert answer.startswith(b"HTTP/1.1 431 ")


def test_it_logs_nothing_of_what_is_no_http(server):
    before = len(server.text)
    for _ in range(20):
        assert answer_to(server, b"\x16\x03\x01\x02\x00").startswith(b"HTTP/1.1 400 ")
    assert server.text[before:] == ""


def test_the_limits_and_both_protocols_are_those_of_the_pages():
    made = pages_server("dashboard.asgi:application", files=100_000)
    assert made.server_state.book.limits == LIMITS
    assert made.config.http is LimitedProtocol
    assert made.config.ws is LimitedWebSocket
    assert made.config.ws_max_size == 256 * 1024
    assert (LIMITS.head_bytes, LIMITS.body_bytes, LIMITS.head_seconds) == (65_536, MIB, 10)
