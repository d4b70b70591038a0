"""A way to the embedded API on which Pods, Nodes and Events are forbidden, as by a narrow role."""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.api_client import LeaseApi

FORBIDDEN = re.compile(r"/api/v1/(namespaces/[^/]+/)?(pods|nodes|events)\b")
_HOP = {"connection", "transfer-encoding", "host", "authorization", "content-length"}


class ForbiddingProxy(ThreadingHTTPServer):
    """Adds the credentials of a kubeconfig, which may be written later."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.kubeconfig: Path | None = None
        self.refused: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: ForbiddingProxy
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        path = urlsplit(self.path).path
        if FORBIDDEN.match(path):
            self.server.refused.append(path)
            self._answer(403, b'{"kind":"Status","code":403,"reason":"Forbidden","message":"no"}')
        elif self.server.kubeconfig is None or not self.server.kubeconfig.exists():
            self._answer(503, b"not yet")
        else:
            self._pass_on(LeaseApi(self.server.kubeconfig))

    do_GET = do_POST = answer  # noqa: N815 - the names that http.server wants

    def _answer(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _pass_on(self, api: LeaseApi) -> None:
        """Send the request on, and the answer's bytes back up to their end."""
        self.close_connection = True
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = urlsplit(api.url)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
        headers |= {
            "Host": parts.netloc,
            "Connection": "close",
            "Authorization": f"Bearer {api.token}",
            "Content-Length": str(len(body)),
        }
        lines = [f"{self.command} {self.path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        with (
            contextlib.suppress(ConnectionError),
            socket.create_connection((parts.hostname, parts.port)) as upstream,
        ):
            upstream.sendall("\r\n".join([*lines, "", ""]).encode() + body)
            with upstream.makefile("rb", 0) as answer:
                shutil.copyfileobj(answer, self.wfile)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextlib.contextmanager
def forbidding_proxy() -> Iterator[ForbiddingProxy]:
    with ForbiddingProxy() as proxy:
        thread = threading.Thread(target=proxy.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()
