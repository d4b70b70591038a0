"""What a path means: RequestInfo for the authorizer, then the target for the handlers.

Source: apiserver/pkg/endpoints/request/requestinfo.go and installer.go.
"""

from __future__ import annotations

import msgspec

from leases.apiserver.auth.authorization import Access
from leases.apiserver.errors import failure
from leases.apiserver.http.request import Request
from leases.apiserver.resources import Resource
from leases.wire.selectors import SelectorError, exact_name, parse_fields
from leases.wire.status import ApiError

_VERBS = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_OBJECT_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_NAMESPACE_SUBRESOURCES = {"status", "finalize"}


class BadPath(ApiError):
    """A path without a RequestInfo; the answer is a 500 in plain text."""


class RequestTarget(msgspec.Struct, frozen=True):
    """Where a request goes: a collection (no name) or an object, by a /watch/ path or not."""

    resource: Resource
    namespace: str
    name: str
    watch: bool
    subresource: str = ""


def access_of(request: Request) -> Access | None:
    """The access to authorize, or None for a path that is no resource. Raises BadPath."""
    parts = request.parts
    if len(parts) < 3 or parts[0] not in ("api", "apis"):
        return None
    group = ""
    rest = parts[1:]
    if parts[0] == "apis":
        if len(rest) < 3:
            return None
        group, rest = rest[0], rest[1:]
    rest = rest[1:]
    verb = _VERBS.get(request.method, "")
    by_path = rest[0] in ("watch", "proxy")
    if by_path:
        if len(rest) < 2:
            raise BadPath(failure(500, "", _no_kind(request)).status)
        verb, rest = rest[0], rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 and not by_path else ""
    if not name and verb == "get":
        verb, name = _collection_verb(request)
    elif not name and verb == "delete":
        verb = "deletecollection"
    return Access(verb, group, rest[0], namespace, name, subresource)


def _no_kind(request: Request) -> str:
    reason = f"unable to determine kind and namespace from url, {request.url}"
    return f'Internal Server Error: "{request.url}": failed to create RequestInfo: {reason}'


def _collection_verb(request: Request) -> tuple[str, str]:
    """list or watch, and the name that a field selector asks for."""
    name = ""
    try:
        name = exact_name(parse_fields(request.query.text("fieldSelector"))) or ""
    except SelectorError:
        return "list", ""
    if name in (".", "..") or "/" in name or "%" in name:
        name = ""
    return ("watch" if request.query.flag("watch") else "list"), name


def place_of(request: Request, resource: Resource) -> RequestTarget | None:
    """The target of a path in the resource, or None for a path that the resource does not have."""
    parts = request.parts[3 if resource.group else 2 :]
    watch = bool(parts) and parts[0] == "watch"
    if watch:
        parts = parts[1:]
    if resource.is_review:
        where = ["namespaces", *parts[1:2]] if resource.namespaced else []
        known = not watch and parts == [*where, resource.plural] and "" not in parts
        return RequestTarget(resource, "".join(where[1:]), "", watch) if known else None
    subresource = ""
    length = 5 if resource.namespaced else 3
    if not watch and len(parts) == length and parts[-1] in resource.subresources:
        subresource = parts.pop()
    if not resource.namespaced:
        if parts[:1] != [resource.plural] or len(parts) > 2 or "" in parts:
            return None
        return RequestTarget(resource, "", "".join(parts[1:]), watch, subresource)
    if parts == [resource.plural]:
        return RequestTarget(resource, "", "", watch)
    if len(parts) not in (3, 4) or "" in parts:
        return None
    if parts[0] != "namespaces" or parts[2] != resource.plural:
        return None
    return RequestTarget(resource, parts[1], "".join(parts[3:]), watch, subresource)


def allows_method(place: RequestTarget, method: str) -> bool:
    if place.watch:
        verb = "watch" if method == "GET" else None
    elif place.subresource and method == "DELETE":
        verb = None
    elif place.name:
        verb = _OBJECT_VERBS.get(method)
    elif place.resource.namespaced and not place.namespace:
        verb = "list" if method == "GET" else None
    else:
        verb = _COLLECTION_VERBS.get(method)
    return verb in place.resource.verbs
