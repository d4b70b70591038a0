"""A small API server on loopback: Secrets of one namespace, listed and watched, and no Leases.

It asks for a bearer token, as a real one does. Certificates are not played.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import yaml
from aiohttp import web

TYPE = "cluster.x-k8s.io/secret"


def secret(
    name: str, labels: dict[str, str], sort: str = "Opaque", /, **data: str | bytes
) -> dict[str, Any]:
    encoded = {
        key: base64.b64encode(one.encode() if isinstance(one, str) else one).decode()
        for key, one in data.items()
    }
    return {"metadata": {"name": name, "labels": labels}, "type": sort, "data": encoded}


def kubeconfig(server: str, authority: str = "", /, **user: object) -> str:
    """One context; `authority` is a certificate in base64."""
    trusted = {"certificate-authority-data": authority} if authority else {}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {"server": server, **trusted}}],
            "users": [{"name": "u", "user": user}],
        }
    )


def argo_cd(name: str, server: str, **config: object) -> dict[str, Any]:
    labels = {"argocd.argoproj.io/secret-type": "cluster"}
    data = {"name": name, "server": server, "config": json.dumps(config)}
    return secret(f"cluster-{name}", labels, **data)


def cluster_api(cluster: str, text: str) -> dict[str, Any]:
    labels = {"cluster.x-k8s.io/cluster-name": cluster}
    return secret(f"{cluster}-kubeconfig", labels, TYPE, value=text)


class SecretApi:
    def __init__(self) -> None:
        self.url = ""
        self.secrets: dict[str, dict[str, Any]] = {}
        self.tokens: set[str] = set()  # that are accepted
        self.seen: list[str] = []  # the tokens of requests for Leases
        self.refuses = False  # whether Secrets are Forbidden
        self._version = 1
        self._watches: list[tuple[dict[str, str], asyncio.Queue[tuple[str, dict[str, Any]]]]] = []
        self._stopped = asyncio.Event()

    def put(self, one: dict[str, Any]) -> None:
        name = one["metadata"]["name"]
        self._tell("MODIFIED" if name in self.secrets else "ADDED", one)
        self.secrets[name] = one

    def delete(self, name: str) -> None:
        self._tell("DELETED", self.secrets.pop(name))

    def _tell(self, kind: str, one: dict[str, Any]) -> None:
        self._version += 1
        one["metadata"]["resourceVersion"] = str(self._version)
        for query, queue in self._watches:
            if _fits(one, query):
                queue.put_nowait((kind, one))

    async def serve_secrets(self, request: web.Request) -> web.StreamResponse:
        if self.refuses:
            return _status(403, "Forbidden", "secrets is forbidden")
        query = dict(request.query)
        if query.get("watch") != "true":
            items = [one for one in self.secrets.values() if _fits(one, query)]
            return web.json_response(
                {"metadata": {"resourceVersion": str(self._version)}, "items": items}
            )
        queue: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()
        self._watches.append((query, queue))
        return await self._stream(request, queue)

    async def serve_leases(self, request: web.Request) -> web.StreamResponse:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.seen.append(token)
        if token not in self.tokens:
            return _status(401, "Unauthorized", "Unauthorized")
        if request.query.get("watch") == "true":
            return await self._stream(request, asyncio.Queue())
        return web.json_response({"metadata": {"resourceVersion": "7"}, "items": []})

    async def _stream(
        self, request: web.Request, queue: asyncio.Queue[tuple[str, dict[str, Any]]]
    ) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        stopped = asyncio.create_task(self._stopped.wait())
        while True:
            coming = asyncio.create_task(queue.get())
            await asyncio.wait((coming, stopped), return_when=asyncio.FIRST_COMPLETED)
            if stopped.done():
                coming.cancel()
                return response
            kind, one = coming.result()
            await response.write(json.dumps({"type": kind, "object": one}).encode() + b"\n")

    def stop(self) -> None:
        self._stopped.set()


def _fits(one: dict[str, Any], query: dict[str, str]) -> bool:
    key, equals, value = query["labelSelector"].partition("=")
    labels = one["metadata"]["labels"]
    fields = query.get("fieldSelector", "")
    return (
        key in labels
        and (not equals or labels[key] == value)
        and fields in ("", f"type={one['type']}")
    )


def _status(code: int, reason: str, message: str) -> web.Response:
    body = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return web.json_response(body, status=code)


@asynccontextmanager
async def secret_api(namespace: str) -> AsyncIterator[SecretApi]:
    api = SecretApi()
    app = web.Application()
    app.router.add_get(f"/api/v1/namespaces/{namespace}/secrets", api.serve_secrets)
    app.router.add_get("/apis/coordination.k8s.io/v1/leases", api.serve_leases)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    api.url = f"http://{host}:{port}"
    try:
        yield api
    finally:
        api.stop()
        await runner.cleanup()
