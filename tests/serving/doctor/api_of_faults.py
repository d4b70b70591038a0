"""A small API server in a thread, over real HTTP or TLS, with one fault at a time."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

EVENT = {
    "type": "BOOKMARK",
    "object": {"kind": "Lease", "metadata": {"resourceVersion": "101"}},
}


@dataclass
class Faults:
    """A healthy API server without any."""

    refused: tuple[str, ...] = ()  # verbs and resources that the account may not use
    status: int = 200  # of every answer
    ahead: float = 0.0  # seconds of its clock
    hangs: bool = False
    version: Any = None  # instead of Kubernetes' own
    has_leases: bool = True
    cuts: bool = False  # ends each watch at once
    tls: ssl.SSLContext | None = None
    leaseboard: str = ""  # the version of a Leaseboard that it pretends to be
    secrets: list[Any] = field(default_factory=list)  # of its one namespace


class ApiOfFaults(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, faults: Faults) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.faults = faults
        self.ended = threading.Event()
        if faults.tls:
            self.socket = faults.tls.wrap_socket(self.socket, server_side=True)

    @property
    def url(self) -> str:
        return f"http{'s' if self.faults.tls else ''}://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients go away on purpose."""


@contextmanager
def serving_faults(faults: Faults) -> Iterator[ApiOfFaults]:
    with ApiOfFaults(faults) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.ended.set()
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ApiOfFaults

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        return formatdate(time.time() + self.server.faults.ahead, usegmt=True)

    def do_GET(self) -> None:
        url, faults = urlsplit(self.path), self.server.faults
        query = parse_qs(url.query)
        if url.path == "/version":
            self._answer(faults.version or {"gitVersion": "v1.34.1"})
        elif url.path.endswith("/secrets"):
            self._answer({"metadata": {"resourceVersion": "100"}, "items": faults.secrets})
        elif not faults.has_leases:
            self._answer({"kind": "Status", "code": 404, "message": "not found"}, 404)
        elif "watch" in query:
            self._watch()
        elif "list" in faults.refused:
            self._answer({"kind": "Status", "code": 403, "message": "leases is forbidden"}, 403)
        else:
            self._answer({"metadata": {"resourceVersion": "100"}, "items": []})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        wanted = asked["spec"]["resourceAttributes"]
        refused = {wanted["verb"], wanted["resource"]} & set(self.server.faults.refused)
        if wanted["resource"] != "leases":
            refused = {wanted["resource"]} & set(self.server.faults.refused)
        self._answer({"status": {"allowed": not refused}}, 201)

    def _watch(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if self.server.faults.cuts:
            self.wfile.write(b"0\r\n\r\n")
            return
        line = json.dumps(EVENT).encode() + b"\n"
        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        self.wfile.flush()
        self.server.ended.wait(60)
        self.close_connection = True

    def _answer(self, body: Any, status: int = 200) -> None:
        faults = self.server.faults
        if faults.hangs:
            self.server.ended.wait(60)
            self.close_connection = True
            return
        if faults.status != 200:
            status, body = faults.status, {"kind": "Status", "message": "denied"}
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        if faults.leaseboard:
            self.send_header("Leaseboard-Version", faults.leaseboard)
        self.end_headers()
        self.wfile.write(text)
