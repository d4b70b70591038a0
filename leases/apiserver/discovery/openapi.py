"""The OpenAPI documents, versions 2 and 3, in JSON and protobuf.

Source: gnostic's openapiv2/OpenAPIv2.proto and openapiv3/OpenAPIv3.proto. Only fields that our
documents have are listed.

A type is a scalar (string, bool), `any` (YAML), a message, `*` for a repeated one, `N:` for a
message that holds the rest in its field N, or `named:` for repeated pairs of a name and a value.
`x-` stands for all extensions. A `default` holds a text; an object leaves it empty.

kubectl asks for version 3 to learn that the server validates fields; clients are generated from
either.

kubectl asks for version 3 to learn that the server validates fields, and for version 2 when a kind
such as List is not in it; clients are generated from either.
"""

import hashlib
from collections.abc import Callable
from functools import cached_property
from typing import Any

from leases.apiserver.codec.go_json import decode_stored, dumps
from leases.apiserver.codec.protobuf_wire import VARINT, tag_of, with_length
from leases.apiserver.codec.yaml_output import to_yaml
from leases.apiserver.discovery.openapi_schemas import schemas
from leases.apiserver.http.negotiation import JSON, PRODUCED, STREAMED, parse_accept
from leases.apiserver.http.request import TEXT, Request, verbs_of_subresource
from leases.apiserver.resources import Resource

Messages = dict[str, dict[str, tuple[int, str]]]


def _messages(fields: dict[str, str]) -> Messages:
    """Per message and name of a field in JSON: its number and type."""
    found: Messages = {}
    for message, text in fields.items():
        split = [field.split(" ") for field in text.split(", ")]
        found[message] = {name: (int(number), kind) for number, name, kind in split}
    return found


_V2 = _messages(
    {
        "Document": "1 swagger string, 2 info Info, 8 paths 2:named:PathItem, "
        "9 definitions 1:named:Schema",
        "Info": "1 title string, 2 version string",
        "PathItem": "2 get Operation, 3 put Operation, 4 post Operation, 5 delete Operation, "
        "8 patch Operation, 9 parameters 1:Parameter*",
        "Operation": "1 tags string*, 3 description string, 5 operationId string, "
        "6 produces string*, 7 consumes string*, 8 parameters 1:Parameter*, "
        "9 responses 1:named:1:Response, 10 schemes string*, 13 x- named:any",
        "Body": "1 description string, 2 name string, 3 in string, 4 required bool, "
        "5 schema Schema",
        "Query": "1 required bool, 2 in string, 3 description string, 4 name string, "
        "6 type string, 20 uniqueItems bool",
        "Path": "1 required bool, 2 in string, 3 description string, 4 name string, "
        "5 type string, 19 uniqueItems bool",
        "Response": "1 description string, 2 schema 1:Schema",
        "Schema": "1 $ref string, 2 format string, 4 description string, 5 default any, "
        "19 required string*, 21 additionalProperties 1:Schema, 22 type 1:string, "
        "23 items 1:Schema, 24 allOf Schema*, 25 properties 1:named:Schema, 31 x- named:any",
    }
)
_V3 = _messages(
    {
        "Document": "1 openapi string, 2 info Info, 4 paths 1:named:PathItem, "
        "5 components Components",
        "Info": "1 title string, 6 version string",
        "PathItem": "4 get Operation, 5 put Operation, 6 post Operation, 7 delete Operation, "
        "10 patch Operation, 13 parameters 1:Query*",
        "Operation": "1 tags string*, 3 description string, 5 operationId string, "
        "6 parameters 1:Query*, 7 requestBody 1:RequestBody, 8 responses 2:named:1:Response, "
        "13 x- named:any",
        "Query": "1 name string, 2 in string, 3 description string, 4 required bool, "
        "10 schema SchemaOrReference",
        "RequestBody": "1 description string, 2 content 1:named:MediaType, 3 required bool",
        "MediaType": "1 schema SchemaOrReference",
        "Response": "1 description string, 3 content 1:named:MediaType",
        "Components": "1 schemas 1:named:SchemaOrReference",
        "Reference": "1 $ref string",
        "Schema": "20 uniqueItems bool, 23 required string*, 25 type string, "
        "26 allOf SchemaOrReference*, 27 oneOf SchemaOrReference*, "
        "30 items 1:SchemaOrReference, 31 properties 1:named:SchemaOrReference, "
        "32 additionalProperties 1:SchemaOrReference, 33 default default, "
        "34 description string, 35 format string, 36 x- named:any",
    }
)


def encode_v2(document: dict[str, Any]) -> bytes:
    return _bytes(_V2, "Document", document)


def encode_v3(document: dict[str, Any]) -> bytes:
    return _bytes(_V3, "Document", document)


def _field(messages: Messages, number: int, kind: str, value: Any) -> bytes:
    if kind.endswith("*"):
        return b"".join([_field(messages, number, kind[:-1], each) for each in value])
    if kind.startswith("named:"):
        named = kind.removeprefix("named:")
        return b"".join(
            [
                with_length(
                    tag_of(number),
                    _field(messages, 1, "string", name) + _field(messages, 2, named, each),
                )
                for name, each in value.items()
            ]
        )
    if kind == "bool":
        return tag_of(number, VARINT) + b"\1" if value else b""
    data = _bytes(messages, kind, value)
    return with_length(tag_of(number), data) if data or kind != "string" else b""


def _bytes(messages: Messages, kind: str, value: Any) -> bytes:
    if kind == "string":
        return str(value).encode()
    if kind == "any":
        return with_length(tag_of(2), to_yaml(value))
    number, colon, inner = kind.partition(":")
    if colon:
        return _field(messages, int(number), inner, value)
    if kind == "default":
        return with_length(tag_of(3), value.encode()) if isinstance(value, str) else b""
    if kind not in messages:
        return _bytes(messages, _choice(kind, value), value)
    found = dict(value)
    extensions = {name: found.pop(name) for name in value if name.startswith("x-")}
    if extensions:
        found["x-"] = extensions
    fields = sorted((messages[kind][name], each) for name, each in found.items())
    return b"".join([_field(messages, *field, each) for field, each in fields])


def _choice(kind: str, value: Any) -> str:
    """The field that holds the value in a message of alternatives."""
    if kind == "Parameter":
        return {"body": "1:Body", "query": "2:3:Query", "path": "2:4:Path"}[value["in"]]
    assert kind == "SchemaOrReference", kind  # noqa: S101 - the tables have no other
    return "2:Reference" if "$ref" in value else "1:Schema"


Value = dict[str, Any]
_PATCH_TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_LIST_QUERY = {
    "allowWatchBookmarks": "boolean",
    "continue": "string",
    "fieldSelector": "string",
    "labelSelector": "string",
    "limit": "integer",
    "resourceVersion": "string",
    "resourceVersionMatch": "string",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}
_WRITE_QUERY = {"dryRun": "string", "fieldManager": "string", "fieldValidation": "string"}
_DELETE_QUERY = {
    "dryRun": "string",
    "gracePeriodSeconds": "integer",
    "orphanDependents": "boolean",
    "propagationPolicy": "string",
}
# Per verb: HTTP method, x-kubernetes-action, query, response codes beside 401, has a body.
_VERBS: dict[str, tuple[str, str, dict[str, str], tuple[str, ...], bool]] = {
    "list": ("get", "list", _LIST_QUERY, ("200",), False),
    "create": ("post", "post", _WRITE_QUERY, ("200", "201", "202"), True),
    "deletecollection": ("delete", "deletecollection", _DELETE_QUERY | _LIST_QUERY, ("200",), True),
    "get": ("get", "get", {}, ("200",), False),
    "update": ("put", "put", _WRITE_QUERY, ("200", "201"), True),
    "delete": ("delete", "delete", _DELETE_QUERY, ("200", "202"), True),
    "patch": ("patch", "patch", _WRITE_QUERY | {"force": "boolean"}, ("200", "201"), True),
}
_WORDS = {
    "list": "list", "create": "create", "deletecollection": "delete", "get": "read",
    "update": "replace", "delete": "delete", "patch": "patch",
}  # fmt: skip


def _pascal(resource: Resource) -> str:
    group = resource.group.partition(".")[0].capitalize() or "Core"
    return group + resource.version.capitalize()


def _paths(resource: Resource) -> dict[str, dict[str, tuple[str, bool]]]:
    """Per path the verbs it has, with the operation's name and whether it is a watch."""
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    scope = "/namespaces/{namespace}" if resource.namespaced else ""
    base, watch = f"{root}{scope}/{resource.plural}", f"{root}/watch{scope}/{resource.plural}"
    where, kind = _pascal(resource), resource.kind
    owned = f"Namespaced{kind}" if resource.namespaced else kind
    found: dict[str, dict[str, tuple[str, bool]]] = {base: {}, f"{base}/{{name}}": {}}
    for verb in ("list", "create", "deletecollection"):
        collection = "Collection" if verb == "deletecollection" else ""
        found[base][verb] = (f"{_WORDS[verb]}{where}{collection}{owned}", False)
    for verb in ("get", "update", "delete", "patch"):
        found[f"{base}/{{name}}"][verb] = (f"{_WORDS[verb]}{where}{owned}", False)
    for part in resource.subresources:
        found[f"{base}/{{name}}/{part}"] = {
            verb: (f"{_WORDS[verb]}{where}{owned}{part.capitalize()}", False)
            for verb in ("get", "update", "patch")
            if verb in verbs_of_subresource(part)
        }
    if resource.namespaced:
        everywhere = f"{kind}ForAllNamespaces"
        found[f"{root}/{resource.plural}"] = {"list": (f"list{where}{everywhere}", False)}
        all_watch = f"watch{where}{kind}ListForAllNamespaces"
        found[f"{root}/watch/{resource.plural}"] = {"list": (all_watch, True)}
    found[watch] = {"list": (f"watch{where}{owned}List", True)}
    found[f"{watch}/{{name}}"] = {"get": (f"watch{where}{owned}", True)}
    return {
        path: {verb: named for verb, named in verbs.items() if verb in resource.verbs}
        for path, verbs in sorted(found.items())
    }


def _gvk(resource: Resource) -> Value:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _schema_name(resource: Resource, *, listed: bool = False) -> str:
    package = resource.group.partition(".")[0] or "core"
    return (
        f"io.k8s.api.{package}.{resource.version}.{resource.list_kind if listed else resource.kind}"
    )


def _answered(verb: str, resource: Resource, *, watch: bool) -> str:
    meta = "io.k8s.apimachinery.pkg.apis.meta.v1"
    if watch:
        return f"{meta}.WatchEvent"
    if verb in ("delete", "deletecollection"):
        return f"{meta}.Status"
    return _schema_name(resource, listed=verb == "list")


def _action(verb: str, *, watch: bool) -> str:
    if watch:
        return "watchlist" if verb == "list" else "watch"
    return _VERBS[verb][1]


def _path_items(
    resources: list[Resource],
    operation: Callable[..., Value],
    parameter: Callable[[tuple[str, str, str]], Value],
) -> Value:
    paths: Value = {}
    for resource in resources:
        for path, verbs in _paths(resource).items():
            if not verbs:
                continue
            paths[path] = {
                _VERBS[verb][0]: operation(resource, verb, name, watch=watch)
                for verb, (name, watch) in verbs.items()
            }
            paths[path]["parameters"] = [parameter(each) for each in _in_path(path)]
    return paths


def document_v3(resources: list[Resource]) -> Value:
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.0"},
        "paths": _path_items(resources, _operation_v3, _parameter_v3),
        "components": {"schemas": schemas(resources, version=3)},
    }


def _operation_v3(resource: Resource, verb: str, name: str, *, watch: bool) -> Value:
    _, _, query, codes, has_body = _VERBS[verb]
    ref = {"$ref": f"#/components/schemas/{_answered(verb, resource, watch=watch)}"}
    types = PRODUCED + STREAMED if watch or verb == "list" else PRODUCED
    content = {media_type: {"schema": ref} for media_type in types}
    responses: Value = {code: {"description": "OK", "content": content} for code in codes}
    responses["401"] = {"description": "Unauthorized"}
    operation: Value = {
        "tags": [_tag(resource)],
        "operationId": name,
        "parameters": [_parameter_v3(("query", *each)) for each in _query(query, watch=watch)],
        "responses": responses,
        "x-kubernetes-action": _action(verb, watch=watch),
        "x-kubernetes-group-version-kind": _gvk(resource),
    }
    if has_body:
        body = {"$ref": f"#/components/schemas/{_body(verb, resource)}"}
        media = _PATCH_TYPES if verb == "patch" else ("*/*",)
        operation["requestBody"] = {"content": {each: {"schema": body} for each in media}}
    return operation


def _tag(resource: Resource) -> str:
    group = resource.group.partition(".")[0] or "core"
    return f"{group}_{resource.version}"


def _body(verb: str, resource: Resource) -> str:
    meta = "io.k8s.apimachinery.pkg.apis.meta.v1"
    if verb == "patch":
        return f"{meta}.Patch"
    return f"{meta}.DeleteOptions" if verb.startswith("delete") else _schema_name(resource)


def _query(query: dict[str, str], *, watch: bool) -> list[tuple[str, str]]:
    asked = _LIST_QUERY if watch else query
    return sorted({**asked, "pretty": "string"}.items())


def _in_path(path: str) -> list[tuple[str, str, str]]:
    return [("path", name, "string") for name in ("name", "namespace") if f"{{{name}}}" in path]


def _parameter_v3(parameter: tuple[str, str, str]) -> Value:
    place, name, kind = parameter
    found: Value = {"name": name, "in": place}
    if place == "path":
        found["required"] = True
    return found | {"schema": {"type": kind, "uniqueItems": True}}


def document_v2(resources: tuple[Resource, ...]) -> Value:
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "v1.36.0"},
        "paths": _path_items(list(resources), _operation_v2, _parameter_v2),
        "definitions": schemas(list(resources), version=2),
    }


def _operation_v2(resource: Resource, verb: str, name: str, *, watch: bool) -> Value:
    _, _, query, codes, has_body = _VERBS[verb]
    ref = {"$ref": f"#/definitions/{_answered(verb, resource, watch=watch)}"}
    responses: Value = {code: {"description": "OK", "schema": ref} for code in codes}
    responses["401"] = {"description": "Unauthorized"}
    parameters = [_parameter_v2(("query", *each)) for each in _query(query, watch=watch)]
    if has_body:
        body = {"$ref": f"#/definitions/{_body(verb, resource)}"}
        required = {} if verb.startswith("delete") else {"required": True}
        parameters.insert(0, {"name": "body", "in": "body", **required, "schema": body})
    return {
        "consumes": list(_PATCH_TYPES) if verb == "patch" else ["*/*"],
        "produces": list(PRODUCED + STREAMED if watch or verb == "list" else PRODUCED),
        "schemes": ["https"],
        "tags": [_tag(resource)],
        "operationId": name,
        "parameters": parameters,
        "responses": responses,
        "x-kubernetes-action": _action(verb, watch=watch),
        "x-kubernetes-group-version-kind": _gvk(resource),
    }


def _parameter_v2(parameter: tuple[str, str, str]) -> Value:
    place, name, kind = parameter
    found: Value = {"name": name, "in": place, "type": kind, "uniqueItems": True}
    return found | {"required": True} if place == "path" else found


class OpenApi:
    """Documents of a server with these resources, as bytes; made when the first is asked for."""

    def __init__(self, resources: tuple[Resource, ...]) -> None:
        self._resources = resources
        self._binary: dict[str, bytes] = {}

    @cached_property
    def _documents(self) -> dict[str, bytes]:
        """Those of version 3, by group and version."""
        versions: dict[str, list[Resource]] = {}
        for resource in self._resources:
            root = f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"
            versions.setdefault(root, []).append(resource)
        return {root: dumps(document_v3(found)) for root, found in versions.items()}

    @cached_property
    def _index(self) -> bytes:
        paths = {
            root: {"serverRelativeURL": f"/openapi/v3/{root}?hash={_hash(document)}"}
            for root, document in self._documents.items()
        }
        return dumps({"paths": paths})

    @cached_property
    def _v2(self) -> bytes:
        return dumps(document_v2(self._resources))

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
