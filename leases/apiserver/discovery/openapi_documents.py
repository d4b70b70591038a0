"""The OpenAPI documents, versions 2 and 3, made from the same types that bodies are decoded into.

kubectl asks for version 3 to learn that the server validates fields; clients are generated from
either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leases.apiserver.discovery.openapi_schemas import schemas
from leases.apiserver.http.negotiation import PRODUCED, STREAMED
from leases.apiserver.resources import Resource

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
