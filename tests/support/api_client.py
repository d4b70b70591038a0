"""Requests to an embedded Lease API, as any client makes them."""

from __future__ import annotations

import base64
import json
import ssl
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml


class LeaseApi:
    """The API that a kubeconfig points to."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self.url = cluster["server"]
        self._trust = ssl.create_default_context(cadata=authority)
        self.token = config["users"][0]["user"]["token"]

    def send(
        self, method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> dict[str, Any]:
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": kind},
        )
        with urllib.request.urlopen(request, timeout=60, context=self._trust) as answer:
            item: dict[str, Any] = json.load(answer)
            return item

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
