"""Somebody else, who makes things happen while a client looks."""

from __future__ import annotations

from typing import Any

from tests.apiserver.clients import Client

GROUP = "/apis/coordination.k8s.io/v1"
MERGE = "application/merge-patch+json"


class Somebody:
    """Writes Leases in one namespace over a connection of its own; every write must succeed."""

    def __init__(self, url: str, namespace: str) -> None:
        self.client = Client(url)
        self.leases = f"{GROUP}/namespaces/{namespace}/leases"

    def create(self, name: str, holder: str, **labels: str) -> dict[str, Any]:
        meta = {"name": name, "labels": labels}
        return self._done(
            "POST", self.leases, {"metadata": meta, "spec": {"holderIdentity": holder}}
        )

    def hand_over(self, name: str, holder: str) -> dict[str, Any]:
        change = {"spec": {"holderIdentity": holder}}
        return self._done("PATCH", f"{self.leases}/{name}", change, content_type=MERGE)

    def delete(self, name: str) -> None:
        self._done("DELETE", f"{self.leases}/{name}")

    def read(self, name: str) -> dict[str, Any]:
        return self._done("GET", f"{self.leases}/{name}")

    def _done(self, *arguments: Any, **more: Any) -> dict[str, Any]:
        answer = self.client.call(*arguments, **more)
        assert answer.status in (200, 201), answer.text
        return answer.json

    def close(self) -> None:
        self.client.close()
