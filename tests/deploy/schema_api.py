"""An API server for `kubectl apply`: it takes the kinds of `deploy/` if their schemas allow them.

What it takes is kept and given back; a Deployment is rolled out at once. No controller acts.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import json_merge_patch
import yaml

from leases.apiserver.codec.protobuf_wire import WireMessage
from tests.deploy.schemas import faults

Manifest = dict[str, Any]
# Kind: group and version, plural, namespaced.
KINDS = {
    "Namespace": ("v1", "namespaces", False),
    "ConfigMap": ("v1", "configmaps", True),
    "Secret": ("v1", "secrets", True),
    "Service": ("v1", "services", True),
    "ServiceAccount": ("v1", "serviceaccounts", True),
    "PersistentVolumeClaim": ("v1", "persistentvolumeclaims", True),
    "Deployment": ("apps/v1", "deployments", True),
    "CronJob": ("batch/v1", "cronjobs", True),
    "Ingress": ("networking.k8s.io/v1", "ingresses", True),
    "NetworkPolicy": ("networking.k8s.io/v1", "networkpolicies", True),
    "PodDisruptionBudget": ("policy/v1", "poddisruptionbudgets", True),
    "ClusterRole": ("rbac.authorization.k8s.io/v1", "clusterroles", False),
    "ClusterRoleBinding": ("rbac.authorization.k8s.io/v1", "clusterrolebindings", False),
}
OF_PLURAL = {plural: kind for kind, (_, plural, _) in KINDS.items()}
VALIDATION = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}


def root_of(api: str) -> str:
    return f"apis/{api}" if "/" in api else f"api/{api}"


def resources_of(api: str) -> Manifest:
    """The discovery document of one group and version."""
    named = [
        {"name": plural, "singularName": kind.lower(), "kind": kind, "namespaced": namespaced,
         "verbs": ["create", "get", "list", "patch", "watch"]}
        for kind, (group, plural, namespaced) in KINDS.items() if group == api
    ]  # fmt: skip
    return {"kind": "APIResourceList", "groupVersion": api, "resources": named}


def openapi_of(api: str) -> Manifest:
    """Enough to tell kubectl that this server refuses unknown fields itself."""
    group, _, version = api.rpartition("/")
    paths = {
        f"/{root_of(api)}/{plural}/{{name}}": {
            "patch": {
                "parameters": [VALIDATION],
                "x-kubernetes-group-version-kind": {
                    "group": group, "version": version, "kind": kind,
                },
            }
        }
        for kind, (of, plural, _) in KINDS.items() if of == api
    }  # fmt: skip
    info = {"title": "Kubernetes", "version": "v1.36.0"}
    return {"openapi": "3.0.0", "info": info, "paths": paths}


APIS = sorted({group for group, _, _ in KINDS.values()})
DISCOVERY: dict[str, Manifest] = {
    "/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {
        "kind": "APIGroupList", "apiVersion": "v1",
        "groups": [
            {"name": api.partition("/")[0], "preferredVersion": version, "versions": [version]}
            for api in APIS if "/" in api
            for version in [{"groupVersion": api, "version": api.partition("/")[2]}]
        ],
    },
    "/openapi/v3": {
        "paths": {root_of(api): {"serverRelativeURL": f"/openapi/v3/{root_of(api)}"}
                  for api in APIS}
    },
    **{f"/{root_of(api)}": resources_of(api) for api in APIS},
    **{f"/openapi/v3/{root_of(api)}": openapi_of(api) for api in APIS},
}  # fmt: skip


# `kubectl create secret` speaks protobuf alone.
PROTOBUF = b"k8s\0"


def _texts(name: str, *fields: tuple[int, str]) -> WireMessage:
    message = WireMessage(name)
    for number, field in fields:
        message.add_bytes(number, field, str.encode, lambda value, _: value.decode())
    return message


def secret_of(sent: bytes) -> Manifest:
    """Read a Secret as Kubernetes writes it in protobuf."""
    metadata = _texts("ObjectMeta", (1, "name"), (3, "namespace"))
    secret = _texts("Secret", (3, "type"))
    secret.add_bytes(1, "metadata", metadata.encode, metadata.decode)
    secret.add_map(2, "data", bytes, lambda value, _: b64encode(value).decode())
    envelope = WireMessage("Unknown")
    envelope.add_bytes(2, "raw", bytes, lambda value, _: value)
    raw = envelope.decode(sent.removeprefix(PROTOBUF))["raw"]
    return {"apiVersion": "v1", "kind": "Secret"} | secret.decode(raw)


class SchemaApi(ThreadingHTTPServer):
    """`kept` holds what was taken, by `Kind/name`; `refused` why something was not."""

    daemon_threads = True

    def __init__(self, version: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.version = version
        self.kept: dict[str, Manifest] = {}
        self.refused: list[str] = []

    def write_kubeconfig(self, path: Path) -> None:
        named = {"cluster": {"server": f"http://127.0.0.1:{self.server_port}"}, "user": {},
                 "context": {"cluster": "it", "user": "it"}}  # fmt: skip
        config = {f"{one}s": [{"name": "it", one: value}] for one, value in named.items()}
        head = {"apiVersion": "v1", "kind": "Config", "current-context": "it"}
        path.write_text(yaml.safe_dump(head | config))


class Handler(BaseHTTPRequestHandler):
    server: SchemaApi

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path in DISCOVERY:
            self.answer(200, DISCOVERY[url.path])
            return
        query = parse_qs(url.query)
        kind, name = self.target(url.path)
        named = query.get("fieldSelector", [""])[0].partition("metadata.name=")[2]
        if "watch" in query:  # nothing happens any more
            self.send_response(200)
            self.end_headers()
            self.rfile.read(1)
        elif kind and not name:
            api = KINDS[kind][0]
            kept = self.server.kept.items()
            items = [one for key, one in kept if key.startswith(f"{kind}/{named}")]
            listed = {"kind": f"{kind}List", "apiVersion": api, "items": items}
            self.answer(200, listed | {"metadata": {"resourceVersion": "1"}})
        elif f"{kind}/{name}" in self.server.kept:
            self.answer(200, self.server.kept[f"{kind}/{name}"])
        else:
            self.refuse(404, "NotFound", f"{kind} {name} not found")

    def do_POST(self) -> None:
        kind, _ = self.target(urlsplit(self.path).path)
        body = self.body()
        self.keep(f"{kind}/{body['metadata']['name']}", body, 201)

    def do_PATCH(self) -> None:
        kind, name = self.target(urlsplit(self.path).path)
        self.keep(
            f"{kind}/{name}",
            json_merge_patch.merge(self.server.kept[f"{kind}/{name}"], self.body()),
            200,
        )

    def keep(self, key: str, manifest: Manifest, status: int) -> None:
        sent = {name: part for name, part in manifest.items() if name != "status"}
        found = faults(sent, self.server.version)
        namespace = manifest["metadata"].get("namespace")
        if namespace and f"Namespace/{namespace}" not in self.server.kept:
            found.append(f"namespace {namespace} not found")
        if found:
            self.server.refused += found
            self.refuse(422, "Invalid", "; ".join(found))
            return
        manifest["metadata"] |= {"uid": key, "resourceVersion": "1", "generation": 1}
        if manifest["kind"] == "Deployment":
            number = manifest["spec"]["replicas"]
            all_of = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
            manifest["status"] = {"observedGeneration": 1} | dict.fromkeys(all_of, number)
        self.server.kept[key] = manifest
        self.answer(status, manifest)

    def target(self, path: str) -> tuple[str, str]:
        """The kind and the name that a path is about."""
        parts = path.strip("/").split("/")
        parts = parts[2:] if parts[0] == "api" else parts[3:]
        if len(parts) > 2 and parts[0] == "namespaces":
            parts = parts[2:]
        plural, name = [*parts, "", ""][:2]
        return OF_PLURAL.get(plural, ""), name

    def body(self) -> Manifest:
        read = self.rfile.read(int(self.headers["Content-Length"]))
        body: Manifest = secret_of(read) if read.startswith(PROTOBUF) else json.loads(read)
        return body

    def refuse(self, code: int, reason: str, message: str) -> None:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
        self.answer(code, status | {"code": code, "reason": reason, "message": message})

    def answer(self, code: int, document: Manifest) -> None:
        sent = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@contextmanager
def serving_schemas(version: str) -> Iterator[SchemaApi]:
    """Serve one version of Kubernetes for the length of a test."""
    with SchemaApi(version) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
