"""Validate access reviews. Source: kubernetes/pkg/apis/authorization/validation/validation.go."""

from __future__ import annotations

from typing import Any

from leases.apiserver.codec.go_json import dumps
from leases.apiserver.errors import not_allowed, required
from leases.wire.name_rules import label_value_errors, qualified_name_errors
from leases.wire.selectors import SelectorError, parse_fields, parse_labels
from leases.wire.status import StatusCause
from leases.wire.status_causes import bad_value, go_quote

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
