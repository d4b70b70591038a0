"""Reviews: may I, may they, what may I, who am I, whose token is this. Nothing is stored.

Source: kubernetes/pkg/registry/{authorization,authentication}.
"""

from typing import Any

from leases.apiserver import auth
from leases.apiserver.codec.decoding import Decoder, aside
from leases.apiserver.codec.go_json import dumps
from leases.apiserver.errors import bad_request, invalid, not_allowed, required
from leases.apiserver.http.bodies import media_type_of, read_object
from leases.apiserver.http.negotiation import negotiate
from leases.apiserver.http.options import write_options
from leases.apiserver.http.request import Request, RequestTarget
from leases.apiserver.registry.create_update import place_in_namespace, without_system_fields
from leases.apiserver.registry.managed_fields import UPDATE, Manager, updated, write_managed
from leases.apiserver.registry.tables import convert_object
from leases.apiserver.resources import Resource
from leases.apiserver.storage.journal import now_text, ordered_metadata
from leases.wire.name_rules import label_value_errors, qualified_name_errors
from leases.wire.selectors import SelectorError, parse_fields, parse_labels
from leases.wire.status import StatusCause, Unauthorized, bad_value, go_quote

Object = dict[str, Any]
_RESOURCE, _PATH = "spec.resourceAttributes", "spec.nonResourceAttributes"
_WITH_VALUES, _WITHOUT_VALUES = ("In", "NotIn"), ("Exists", "DoesNotExist")


def review_errors(kind: str, obj: Object) -> list[StatusCause]:
    """All errors of a SelfSubjectAccessReview, SubjectAccessReview or LocalSubjectAccessReview."""
    meta, spec = obj["metadata"], obj["spec"]
    local, asked, path = kind.startswith("Local"), spec.get("resourceAttributes"), _path_of(spec)
    wrong: list[StatusCause] = []
    if asked is not None and path != "null":
        detail = "cannot be specified in combination with resourceAttributes"
        wrong.append(bad_value(_PATH, path, detail))
    if asked is None and path == "null":
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        wrong.append(bad_value(_RESOURCE, path, detail))
    if not kind.startswith("Self") and not spec.get("user") and not spec.get("groups"):
        detail = "at least one of user or group must be specified"
        wrong.append(bad_value("spec.user", '""', detail))
    for name in ("fieldSelector", "labelSelector"):
        if (selector := (asked or {}).get(name)) is not None:
            wrong += _selector_errors(selector, f"{_RESOURCE}.{name}")
    allowed = {"managedFields", "namespace"} if local else {"managedFields"}
    if meta.keys() - allowed:
        detail = "must be empty except for namespace" if local else "must be empty"
        wrong.append(bad_value("metadata", dumps(meta).decode(), detail))
    if local and asked is not None and asked.get("namespace", "") != meta["namespace"]:
        given = go_quote(asked.get("namespace", ""))
        wrong.append(bad_value(f"{_RESOURCE}.namespace", given, "must match metadata.namespace"))
    if local and path != "null":
        wrong.append(bad_value(_PATH, path, "disallowed on this kind of request"))
    return wrong


def _path_of(spec: Object) -> str:
    """nonResourceAttributes as JSON of the internal Go type."""
    path = spec.get("nonResourceAttributes")
    if path is None:
        return "null"
    return dumps({"Path": path.get("path", ""), "Verb": path.get("verb", "")}).decode()


def _selector_errors(selector: Object, path: str) -> list[StatusCause]:
    raw, requirements = selector.get("rawSelector", ""), selector.get("requirements") or []
    wrong: list[StatusCause] = []
    if raw and requirements:
        detail = "may not specified at the same time as requirements"
        wrong.append(bad_value(f"{path}.rawSelector", go_quote(raw), detail))
    if not raw and not requirements:
        detail = f"when {path} is specified, requirements or rawSelector is required"
        wrong.append(required(f"{path}.requirements", detail))
    for index, requirement in enumerate(requirements):
        wrong += _requirement_errors(requirement, f"{path}.requirements[{index}]")
    return wrong


def _requirement_errors(requirement: Object, path: str) -> list[StatusCause]:
    of_labels = ".labelSelector." in path
    key, operator = requirement["key"], requirement["operator"]
    values = requirement.get("values") or []
    wrong: list[StatusCause] = []
    if not of_labels and not key:
        wrong.append(required(f"{path}.key", "must be specified"))
    if operator in _WITH_VALUES and not values:
        detail = "must be specified when `operator` is 'In' or 'NotIn'"
        wrong.append(required(f"{path}.values", detail))
    if operator in _WITHOUT_VALUES and values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        wrong.append(not_allowed(f"{path}.values", detail))
    if of_labels:
        named = qualified_name_errors(key)
        wrong += [bad_value(f"{path}.key", go_quote(key), text) for text in named]
        for index, value in enumerate(values):
            place, shown = f"{path}.values[{index}]", go_quote(value)
            wrong += [bad_value(place, shown, text) for text in label_value_errors(value)]
    return wrong


def selector_problems(attributes: Object) -> list[str]:
    """The evaluation errors of selectors: they are only ignored, for no right depends on them.

    Source: pkg/registry/authorization/util/helpers.go (BuildEvaluationError).
    """
    found = []
    for name, parse in (("fieldSelector", parse_fields), ("labelSelector", parse_labels)):
        selector = attributes.get(name) or {}
        requirements = selector.get("requirements") or []
        good = [each for each in requirements if _is_known(each, name)]
        try:
            parse(selector.get("rawSelector", ""))
            failed = len(good) < len(requirements)
        except SelectorError:
            failed = True
        if failed:
            how = "partially ignored" if good else "ignored"
            found.append(f"{_RESOURCE}.{name} {how} due to parse error")
    return found


def _is_known(requirement: Object, selector: str) -> bool:
    if selector == "labelSelector":
        return requirement["operator"] in _WITH_VALUES + _WITHOUT_VALUES
    return requirement["operator"] in _WITH_VALUES and len(requirement["values"]) == 1


# What a kube-apiserver calls itself by default; tokens that are not bound to an audience have it.
AUDIENCE = "https://kubernetes.default.svc.cluster.local"


class Reviews:
    """Answers reviews about the users of these tokens."""

    def __init__(self, tokens: auth.Tokens) -> None:
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

    def _reviewed(self, resource: Resource, obj: Object, user: auth.User) -> Object:
        if resource.kind == "SelfSubjectReview":
            meta = {"creationTimestamp": now_text()}
            return {"metadata": meta, "status": {"userInfo": _shown(user)}}
        if resource.kind == "SelfSubjectRulesReview":
            if not obj["spec"].get("namespace"):
                raise bad_request("no namespace on request")
            return {"metadata": {}, "spec": {}, "status": _rules_status(auth.rules(user))}
        if resource.kind == "TokenReview":
            return obj | {"status": self._token_status(obj["spec"])}
        if wrong := review_errors(resource.kind, obj):
            raise invalid("", "", wrong, auth.AUTHORIZATION_GROUP)
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


def _access_status(user: auth.User, spec: Object) -> Object:
    asked = spec.get("resourceAttributes")
    access: auth.Access | auth.PathAccess
    if asked is None:
        path = spec["nonResourceAttributes"]
        access = auth.PathAccess(path.get("verb", ""), path.get("path", ""))
    else:
        names = ("verb", "group", "resource", "namespace", "name", "subresource")
        access = auth.Access(*(asked.get(name, "") for name in names))
    reason = auth.permission(user, access)
    status = {"allowed": reason is not None}
    texts = {"reason": reason, "evaluationError": "; ".join(selector_problems(asked or {}))}
    return status | {name: text for name, text in texts.items() if text}


def _rules_status(found: list[auth.AccessRule]) -> Object:
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


def _shown(user: auth.User) -> Object:
    """A UserInfo."""
    found = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {name: value for name, value in found.items() if value}
