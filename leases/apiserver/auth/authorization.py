"""What a user may do, and the words of a refusal.

The role `write` may do everything, `read` gets, lists and watches. The groups add what Kubernetes'
default cluster roles give: discovery and the reviews of oneself.
"""

from __future__ import annotations

import msgspec

from leases.apiserver.auth.tokens import AUTHENTICATED, UNAUTHENTICATED, User
from leases.apiserver.errors import about, forbidden, qualified
from leases.wire.status import StatusDetails

AUTHENTICATION_GROUP, AUTHORIZATION_GROUP = "authentication.k8s.io", "authorization.k8s.io"
_READING = ("get", "list", "watch")
_ACCESS_REVIEWS = ("selfsubjectaccessreviews", "selfsubjectrulesreviews")
_WHO_AM_I = "selfsubjectreviews"
_SELF_REVIEWS = {(AUTHENTICATION_GROUP, _WHO_AM_I)} | {
    (AUTHORIZATION_GROUP, name) for name in _ACCESS_REVIEWS
}
_PUBLIC = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_WELL_KNOWN = ("/.well-known", "/.well-known/*")
_DISCOVERY = ("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*")


class Access(msgspec.Struct, frozen=True):
    """What a request wants to do with a resource, as Kubernetes' RequestInfo has it."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    subresource: str = ""


class PathAccess(msgspec.Struct, frozen=True):
    """What a request wants to do with a path that is no resource."""

    verb: str
    path: str


class AccessRule(msgspec.Struct, frozen=True):
    """Verbs on resources, or on paths when there are no groups."""

    verbs: tuple[str, ...]
    names: tuple[str, ...]
    groups: tuple[str, ...] = ()


def rules(user: User) -> list[AccessRule]:
    """All that the user may do, in the form of RBAC."""
    found = []
    if user.role == "write":
        found += [AccessRule(("*",), ("*",), ("*",)), AccessRule(("*",), ("*",))]
    if user.role == "read":
        found.append(AccessRule(_READING, ("*",), ("*",)))
    if AUTHENTICATED in user.groups:
        found += [
            AccessRule(("create",), _ACCESS_REVIEWS, (AUTHORIZATION_GROUP,)),
            AccessRule(("create",), (_WHO_AM_I,), (AUTHENTICATION_GROUP,)),
            AccessRule(("get",), _PUBLIC),
            AccessRule(("get",), _WELL_KNOWN),
            AccessRule(("get",), tuple(sorted(_DISCOVERY + _PUBLIC))),
        ]
    elif UNAUTHENTICATED in user.groups:
        found.append(AccessRule(("get",), _PUBLIC))
    return found


def permission(user: User, access: Access | PathAccess) -> str | None:
    """Why the user may do this (the role `write` needs no reason), or None when it may not."""
    if user.role == "write":
        return ""
    if isinstance(access, PathAccess):
        return _path_permission(user, access)
    if user.role == "read" and access.verb in _READING:
        return "allowed by the role read"
    self_review = access.verb == "create" and (access.group, access.resource) in _SELF_REVIEWS
    return _bound("system:basic-user") if self_review and AUTHENTICATED in user.groups else None


def _path_permission(user: User, access: PathAccess) -> str | None:
    if access.verb != "get":
        return None
    if access.path in _PUBLIC:
        for group in (AUTHENTICATED, UNAUTHENTICATED):
            if group in user.groups:
                return _bound("system:public-info-viewer", group)
    known = any(
        access.path.startswith(path[:-1]) if path.endswith("*") else access.path == path
        for path in _DISCOVERY + _WELL_KNOWN
    )
    return _bound("system:discovery") if known and AUTHENTICATED in user.groups else None


def _bound(role: str, group: str = AUTHENTICATED) -> str:
    return (
        f'RBAC: allowed by ClusterRoleBinding "{role}" of ClusterRole "{role}" to Group "{group}"'
    )


def authorize(user: User, access: Access | PathAccess) -> None:
    """Raises 403 in the words of the RBAC authorizer."""
    if permission(user, access) is None:
        raise refusal(user, access)


def refusal(user: User, access: Access | PathAccess) -> Exception:
    """The 403. Source: apiserver/pkg/endpoints/handlers/responsewriters/errors.go."""
    if isinstance(access, PathAccess):
        why = f'User "{user.name}" cannot {access.verb} path "{access.path}"'
        return forbidden(f"forbidden: {_without_html(why)}", StatusDetails())
    where = f'in the namespace "{access.namespace}"' if access.namespace else "at the cluster scope"
    resource = access.resource + (f"/{access.subresource}" if access.subresource else "")
    why = (
        f'User "{user.name}" cannot {access.verb} resource "{resource}" '
        f'in API group "{access.group}" {where}'
    )
    named = f' "{access.name}"' if access.name else ""
    subject = qualified(access.resource, access.group)
    message = f"{subject}{named} is forbidden: {_without_html(why)}"
    return forbidden(message, about(access.name, access.resource, access.group))


def _without_html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
