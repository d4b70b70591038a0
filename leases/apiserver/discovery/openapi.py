"""Serve the OpenAPI documents, versions 2 and 3, in JSON and protobuf.

kubectl asks for version 3 to learn that the server validates fields, and for version 2 when a kind
such as List is not in it; clients are generated from either.
"""

from __future__ import annotations

import hashlib

from leases.apiserver.codec.go_json import decode_stored, dumps
from leases.apiserver.discovery.openapi_documents import document_v2, document_v3
from leases.apiserver.discovery.openapi_protobuf import encode_v2, encode_v3
from leases.apiserver.http.negotiation import JSON, parse_accept
from leases.apiserver.http.request import TEXT, Request
from leases.apiserver.resources import Resource


class OpenApi:
    """Documents of a server with these resources, as bytes."""

    def __init__(self, resources: tuple[Resource, ...]) -> None:
        versions: dict[str, list[Resource]] = {}
        for resource in resources:
            root = f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"
            versions.setdefault(root, []).append(resource)
        self._documents = {root: dumps(document_v3(found)) for root, found in versions.items()}
        paths = {
            root: {"serverRelativeURL": f"/openapi/v3/{root}?hash={_hash(document)}"}
            for root, document in self._documents.items()
        }
        self._index = dumps({"paths": paths})
        self._v2 = dumps(document_v2(resources))
        self._binary: dict[str, bytes] = {}

    async def serve(self, request: Request) -> bool:
        """Answer a path under /openapi/; False when there is no such document."""
        path = request.path.rstrip("/")
        if path == "/openapi/v3":
            await _answer(request, self._index, _hash(self._index), TEXT)
            return True
        version = 2 if path == "/openapi/v2" else 3
        root = path.removeprefix("/openapi/v3/")
        document = self._v2 if version == 2 else self._documents.get(root)
        if document is None:
            return False
        content_type = _content_type(request.header(b"accept") or "*/*", version)
        if content_type is None:
            await request.answer(406, b"", TEXT, [(b"vary", b"Accept")])
            return True
        body = document if content_type == JSON else self._in_binary(path, document, version)
        await _answer(request, body, _hash(document), content_type)
        return True

    def _in_binary(self, path: str, document: bytes, version: int) -> bytes:
        if path not in self._binary:
            encode = encode_v2 if version == 2 else encode_v3
            self._binary[path] = encode(decode_stored(document))
        return self._binary[path]


def _content_type(accept: str, version: int) -> str | None:
    """The type of the answer; None when the client accepts none.

    Source: kube-openapi/pkg/{handler,handler3}/handler.go.
    """
    binary = f"com.github.proto-openapi.spec.v{version}.v1.0+protobuf"
    deprecated = f"com.github.proto-openapi.spec.v{version}@v1.0+protobuf"
    types = {"json": JSON, binary: f"application/{binary}", deprecated: f"application/{binary}"}
    for clause in parse_accept(accept):
        if clause.kind in ("application", "*"):
            if clause.subkind == "*":
                return JSON
            if clause.subkind in types:
                return types[clause.subkind]
    return None


async def _answer(request: Request, body: bytes, etag: str, content_type: str) -> None:
    tag = f'"{etag}"'.encode()
    more = [(b"etag", tag), (b"vary", b"Accept")]
    if request.header(b"if-none-match").encode() == tag:
        await request.answer(304, b"", content_type, more)
    else:
        await request.answer(200, body, content_type, more)


def _hash(body: bytes) -> str:
    return hashlib.sha512(body).hexdigest().upper()
