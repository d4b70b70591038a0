"""The embedded Lease API as a process of its own, and a small client for it."""

from __future__ import annotations

import http.client
import json
import re
import signal
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

from leases.apiserver.auth import Tokens
from tests.support.processes import StartedProcess, environment, start_python, wait_for

ADMIN, VIEWER = "admin-token", "viewer-token"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


def make_tokens(data: Path) -> None:
    """The two users of the golden cases."""
    tokens = Tokens(data)
    tokens.replace("admin", "write", ADMIN)
    tokens.replace("viewer", "none", VIEWER)
    tokens.close()


class Process:
    """`manage.py lease_api` over a data directory; killed or stopped, and started again."""

    def __init__(self, data: Path, *arguments: str) -> None:
        self.data = data
        self.log = data.parent / "lease-api.log"
        self.arguments = arguments
        self.process: StartedProcess | None = None
        self.url = ""

    def start(self) -> Self:
        make_tokens(self.data)
        with self.log.open("wb") as log:
            self.process = start_python(
                "manage.py", "lease_api", "--port", "0", *self.arguments,
                env=environment(self.data), stdout=log, stderr=log,
            )  # fmt: skip
        self.url = wait_for(self._printed_url, what=f"the Lease API to start ({self.log})")
        return self

    def _printed_url(self) -> str | None:
        found = re.search(r"http://\S+", self.log.read_text())
        return found[0] if found else None

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()


class Answer:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.text = response.read().decode()

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text)
        return found


class Client:
    """One kept connection."""

    def __init__(self, url: str, token: str | None = ADMIN) -> None:
        self.token = token
        self.connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        **query: str,
    ) -> http.client.HTTPResponse:
        headers = {"Accept": accept, "User-Agent": "tests/1"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        data = body
        if body is not None:
            headers["Content-Type"] = content_type
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
        target = f"{path}?{urlencode(query)}" if query else path
        self.connection.request(method, target, data, headers)
        return self.connection.getresponse()

    def call(self, method: str, path: str, body: Any = None, **more: str) -> Answer:
        return Answer(self.send(method, path, body, **more))

    def close(self) -> None:
        self.connection.close()


def lease(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}
