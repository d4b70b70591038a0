"""Requests to an embedded Lease API, as any client makes them."""

from __future__ import annotations

import base64
import http.client
import io
import json
import select
import ssl
import threading
import weakref
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

import yaml


class LeaseApi:
    """The API that a kubeconfig points to, over one kept connection: a TLS handshake is dear."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self.url = cluster["server"]
        self.token = config["users"][0]["user"]["token"]
        self._connection = http.client.HTTPSConnection(
            urlsplit(self.url).netloc,
            timeout=60,
            context=ssl.create_default_context(cadata=authority),
        )
        self._lock = threading.Lock()  # between a request and its answer
        weakref.finalize(self, self._connection.close)

    def send(
        self, method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        data = None if body is None else json.dumps(body).encode()
        with self._lock:
            self._forget_ended()
            try:
                self._connection.request(method, path, data, headers)
                with self._connection.getresponse() as answer:
                    content = answer.read()
            except BaseException:
                self._connection.close()  # half an exchange would spoil the next
                raise
        if answer.status >= 400:
            said = io.BytesIO(content)
            raise HTTPError(self.url + path, answer.status, answer.reason, answer.headers, said)
        item: dict[str, Any] = json.loads(content)
        return item

    def _forget_ended(self) -> None:
        """An idle connection has something to read only when the server has closed it."""
        sock = self._connection.sock
        if sock is not None and select.select([sock], [], [], 0)[0]:
            self._connection.close()

    def create(
        self, name: str, *, holder: str, duration: int = 3600, transitions: int = 0, **more: Any
    ) -> None:
        now = timestamp()
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": duration,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": transitions,
            **more,
        }
        self.send("POST", leases(), {"metadata": {"name": name}, "spec": spec})

    def patch(self, name: str, **spec: Any) -> dict[str, Any]:
        return self.send(
            "PATCH", f"{leases()}/{name}", {"spec": spec}, "application/merge-patch+json"
        )

    def take(self, name: str, *, holder: str, transitions: int) -> None:
        now = timestamp()
        self.patch(
            name,
            holderIdentity=holder,
            acquireTime=now,
            renewTime=now,
            leaseTransitions=transitions,
        )

    def label(self, name: str, **labels: str) -> None:
        self.send(
            "PATCH",
            f"{leases()}/{name}",
            {"metadata": {"labels": labels}},
            "application/merge-patch+json",
        )

    def delete(self, name: str) -> None:
        self.send("DELETE", f"{leases()}/{name}")


def timestamp() -> str:
    """Now, as the API writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def leases(namespace: str = "default") -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
