"""The few requests that electors and kubelets send, as plain objects in and out."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec

from leases.domain.lease import ObjectName

LeaseObject = dict[str, Any]
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
_SECONDS = 5.0  # an API that does not answer in this time counts as down
_CONNECTIONS = 8


class ApiDownError(Exception):
    """No answer, or one that only says that the API server is ill. Try again, as everybody does."""


class DemoApi:
    """A Lease API as its clients in a cluster use it."""

    def __init__(self, *, url: str, token: str) -> None:
        self._url = url.rstrip("/")
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=_CONNECTIONS),
            timeout=aiohttp.ClientTimeout(total=_SECONDS),
            headers={
                "Authorization": f"Bearer {token}",
                "User-Agent": "demo/1.0",
                "Content-Type": "application/json",
            },
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def ensure_namespace(self, name: str) -> None:
        """Make the namespace unless it is there; an API without namespaces needs none."""
        await self._ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    async def get(self, key: ObjectName) -> LeaseObject | None:
        """The Lease, or None when there is none."""
        return await self._ask("GET", _path(key))

    async def create(self, lease: LeaseObject) -> LeaseObject | None:
        """The new Lease, or None when somebody was faster."""
        return await self._ask("POST", _LEASES.format(lease["metadata"]["namespace"]), lease)

    async def update(self, lease: LeaseObject) -> LeaseObject | None:
        """The Lease as written, or None when it is not any more what it was when read."""
        meta = lease["metadata"]
        return await self._ask("PUT", _path(ObjectName(meta["namespace"], meta["name"])), lease)

    async def delete(self, key: ObjectName) -> None:
        """Delete the Lease if it is there."""
        await self._ask("DELETE", _path(key))

    async def _ask(self, method: str, path: str, body: Any = None) -> LeaseObject | None:
        data = None if body is None else msgspec.json.encode(body)
        try:
            async with self._session.request(method, self._url + path, data=data) as response:
                text = await response.read()
                status = response.status
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ApiDownError(str(error)) from error
        if status >= 500 or status in (401, 403, 429):
            raise ApiDownError(f"{method} {path} was answered {status}")
        if status >= 400:
            return None
        try:
            answer: LeaseObject = msgspec.json.decode(text, type=LeaseObject)
        except msgspec.DecodeError as error:
            raise ApiDownError(f"{method} {path} was answered with garbage") from error
        # Half of the object, and of no use to anybody here: the server keeps its own.
        answer.get("metadata", {}).pop("managedFields", None)
        return answer


def _path(key: ObjectName) -> str:
    return f"{_LEASES.format(key.namespace)}/{key.name}"
