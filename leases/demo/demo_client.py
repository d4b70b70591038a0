"""The few requests of electors and kubelets, with plain objects."""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec

from leases.domain.lease import ObjectName

LeaseObject = dict[str, Any]
VERSION = "v1.36.0"
_GROUP = "/apis/coordination.k8s.io"
_MERGE_PATCH = "application/merge-patch+json"
_SECONDS = 5.0  # an API that does not answer within this time counts as down
_CONNECTIONS = 8


class ApiDownError(Exception):
    """No answer, or a server error. Try again."""


class DemoApi:
    """A client of the Lease API; the API takes `program` for the field manager of its writes."""

    def __init__(self, *, url: str, token: str) -> None:
        self.program = "demo"
        self._url = url.rstrip("/")
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=_CONNECTIONS),
            timeout=aiohttp.ClientTimeout(total=_SECONDS),
            headers={
                "Authorization": f"Bearer {token}",
                "Content-Type": "application/json",
            },
        )

    def acting_as(self, program: str) -> DemoApi:
        """Return a client that shares the connections and writes as another program."""
        other = copy(self)
        other.program = program
        return other

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
        """Create the namespace if it is missing. An API without namespaces needs none."""
        await self._ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    async def serves_candidates(self) -> bool:
        """Whether the API serves LeaseCandidates, so that it elects."""
        return await self._ask("GET", f"{_GROUP}/v1beta1") is not None

    async def get(self, key: ObjectName, *, candidate: bool = False) -> LeaseObject | None:
        """Return the Lease (or LeaseCandidate), if any."""
        return await self._ask("GET", _path(key.namespace, key.name, candidate=candidate))

    async def create(self, lease: LeaseObject, *, candidate: bool = False) -> LeaseObject | None:
        """Return the new object; None if another client was faster."""
        path = _path(lease["metadata"]["namespace"], candidate=candidate)
        return await self._ask("POST", path, lease)

    async def update(self, lease: LeaseObject, *, candidate: bool = False) -> LeaseObject | None:
        """Return the written object; None if it changed since it was read."""
        meta = lease["metadata"]
        path = _path(meta["namespace"], meta["name"], candidate=candidate)
        return await self._ask("PUT", path, lease)

    async def delete(self, key: ObjectName, *, candidate: bool = False) -> None:
        """Delete the object if it exists."""
        await self._ask("DELETE", _path(key.namespace, key.name, candidate=candidate))

    async def write(self, method: str, path: str, body: Any = None) -> LeaseObject | None:
        """Send a request for an object beside the Leases. None where the API refuses it."""
        with suppress(ApiDownError):
            return await self._ask(method, path, body)
        return None

    async def _ask(self, method: str, path: str, body: Any = None) -> LeaseObject | None:
        data = None if body is None else msgspec.json.encode(body)
        headers = {"User-Agent": f"{self.program}/{VERSION}"}
        if method == "PATCH":
            headers["Content-Type"] = _MERGE_PATCH
        url = self._url + path
        try:
            async with self._session.request(method, url, data=data, headers=headers) as response:
                text = await response.read()
                status = response.status
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ApiDownError(str(error)) from error
        if status >= 500 or status in (401, 403, 429):
            raise ApiDownError(f"{method} {path} returned {status}")
        if status >= 400:
            return None
        try:
            answer: LeaseObject = msgspec.json.decode(text, type=LeaseObject)
        except msgspec.DecodeError as error:
            raise ApiDownError(f"{method} {path} returned invalid JSON") from error
        # managedFields are half of the object, and nobody here needs them.
        answer.get("metadata", {}).pop("managedFields", None)
        return answer


def _path(namespace: str, name: str = "", *, candidate: bool = False) -> str:
    version, plural = ("v1beta1", "leasecandidates") if candidate else ("v1", "leases")
    return f"{_GROUP}/{version}/namespaces/{namespace}/{plural}/{name}".rstrip("/")
