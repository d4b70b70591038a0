"""Reviews: may I, may they, what may I, who am I, whose token is this. Nothing is stored.

Source: kubernetes/pkg/registry/{authorization,authentication}.
"""

from __future__ import annotations

from typing import Any

from leases.apiserver.auth.authorization import (
    AUTHORIZATION_GROUP,
    Access,
    AccessRule,
    PathAccess,
    permission,
    rules,
)
from leases.apiserver.auth.tokens import Tokens, User
from leases.apiserver.codec.decoding import Decoder
from leases.apiserver.codec.large_bodies import aside
from leases.apiserver.errors import bad_request, invalid
from leases.apiserver.http.bodies import media_type_of, read_object
from leases.apiserver.http.negotiation import negotiate
from leases.apiserver.http.options import write_options
from leases.apiserver.http.request import Request
from leases.apiserver.http.routes import RequestTarget
from leases.apiserver.registry.create_update import place_in_namespace, without_system_fields
from leases.apiserver.registry.managed_fields import UPDATE, Manager, updated, write_managed
from leases.apiserver.registry.review_validation import review_errors, selector_problems
from leases.apiserver.registry.tables import convert_object
from leases.apiserver.resources import Resource
from leases.apiserver.storage.records import now_text, ordered_metadata
from leases.wire.status import Unauthorized

# What a kube-apiserver calls itself by default; tokens that are not bound to an audience have it.
AUDIENCE = "https://kubernetes.default.svc.cluster.local"
Object = dict[str, Any]


class Reviews:
    """Answers reviews about the users of these tokens."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    async def create(self, request: Request, place: RequestTarget) -> None:
        """Raises 400, 406, 415 and 422."""
        resource = place.resource
        output = negotiate(request.header(b"accept"))
        media_type = media_type_of(request)
        data = await request.body()
        options = write_options(request, "CreateOptions")
        obj = await aside(
            len(data), read_object, request, data, media_type, resource, options.validation
        )
        obj["metadata"] = without_system_fields(obj["metadata"])
        place_in_namespace(obj, place.namespace)
        _track(resource, obj, options.manager)
        answer = self._reviewed(resource, obj, request.user)
        include = request.query.text("includeObject")
        await request.answer_value(201, convert_object(resource, answer, output, include), output)

    def _reviewed(self, resource: Resource, obj: Object, user: User) -> Object:
        if resource.kind == "SelfSubjectReview":
            meta = {"creationTimestamp": now_text()}
            return {"metadata": meta, "status": {"userInfo": _shown(user)}}
        if resource.kind == "SelfSubjectRulesReview":
            if not obj["spec"].get("namespace"):
                raise bad_request("no namespace on request")
            return {"metadata": {}, "spec": {}, "status": _rules_status(rules(user))}
        if resource.kind == "TokenReview":
            return obj | {"status": self._token_status(obj["spec"])}
        if wrong := review_errors(resource.kind, obj):
            raise invalid("", "", wrong, AUTHORIZATION_GROUP)
        spec = obj["spec"]
        if resource.kind != "SelfSubjectAccessReview":
            user = self._tokens.subject(spec.get("user", ""), tuple(spec.get("groups", ())))
        return obj | {"status": _access_status(user, spec)}

    def _token_status(self, spec: Object) -> Object:
        if not spec.get("token"):
            raise bad_request("token is required for TokenReview in authentication")
        try:
            user = self._tokens.user(f"Bearer {spec['token']}")
        except Unauthorized:
            user = None
        if user is None or AUDIENCE not in spec.get("audiences", [AUDIENCE]):
            return {"user": {}, "error": "invalid bearer token"}
        return {"authenticated": True, "user": _shown(user), "audiences": [AUDIENCE]}


def _track(resource: Resource, obj: Object, manager: str) -> None:
    """Write managedFields, though nothing is stored: the create handler does so for every kind."""
    obj["metadata"].pop("managedFields", None)
    version = resource.api_version
    manager_of = Manager(manager or "unknown", UPDATE, version)
    nothing = Decoder().decode({}, resource.schema)
    managed = updated({}, nothing, obj, manager_of, resource.schema, now_text())
    if managed:
        obj["metadata"]["managedFields"] = write_managed(managed, version)
    obj["metadata"] = ordered_metadata(obj["metadata"])


def _access_status(user: User, spec: Object) -> Object:
    asked = spec.get("resourceAttributes")
    access: Access | PathAccess
    if asked is None:
        path = spec["nonResourceAttributes"]
        access = PathAccess(path.get("verb", ""), path.get("path", ""))
    else:
        names = ("verb", "group", "resource", "namespace", "name", "subresource")
        access = Access(*(asked.get(name, "") for name in names))
    reason = permission(user, access)
    status = {"allowed": reason is not None}
    texts = {"reason": reason, "evaluationError": "; ".join(selector_problems(asked or {}))}
    return status | {name: text for name, text in texts.items() if text}


def _rules_status(found: list[AccessRule]) -> Object:
    return {
        "resourceRules": [
            {"verbs": rule.verbs, "apiGroups": rule.groups, "resources": rule.names}
            for rule in found
            if rule.groups
        ],
        "nonResourceRules": [
            {"verbs": rule.verbs, "nonResourceURLs": rule.names}
            for rule in found
            if not rule.groups
        ],
        "incomplete": False,
    }


def _shown(user: User) -> Object:
    """A UserInfo."""
    found = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {name: value for name, value in found.items() if value}
