"""Read the body of an apply: YAML to a configuration that fits the type.

Source: apiserver/pkg/endpoints/handlers/patch.go (applyPatcher), structured-merge-diff's
typed/validate.go.
"""

from __future__ import annotations

from typing import Any

from leases.apiserver.codec import schema
from leases.apiserver.codec.go_json import Number, type_word
from leases.apiserver.codec.yaml_input import YamlError, load_yaml
from leases.apiserver.errors import bad_request, internal
from leases.apiserver.http.request import Request
from leases.apiserver.patch.strategic_merge import go_text
from leases.apiserver.resources import Resource
from leases.wire.status_causes import go_quote

Object = dict[str, Any]


def read_applied(request: Request, data: bytes, resource: Resource, validation: str) -> Object:
    """The configuration, checked against the type. Raises 400 and 500; warns on the request."""
    try:
        loaded = load_yaml(data)
    except YamlError as error:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from None
    value = {} if loaded.value is None else loaded.value
    if not isinstance(value, dict):
        raise bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot "
            f"unmarshal {type_word(value)} into Go value of type map[string]interface {{}}"
        )
    _check_type(value, resource)
    _check_fields(value, resource)
    if loaded.duplicates and validation == "Strict":
        lines = "".join(f"\n  {line}" for line in loaded.duplicates)
        raise bad_request(
            "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:"
            f"{lines}"
        )
    if validation == "Warn":
        for line in loaded.duplicates:
            request.warn(line)
    return {
        key: item for key, item in _integral(value).items() if key not in ("kind", "apiVersion")
    }


def _check_type(value: Object, resource: Resource) -> None:
    version, kind = value.get("apiVersion") or "", value.get("kind") or ""
    if (version, kind) != (resource.api_version, resource.kind):
        group, _, short = str(version).rpartition("/")
        raise bad_request(f"invalid object type: {group}/{short}, Kind={kind}")
    meta = value.get("metadata")
    if isinstance(meta, dict) and meta.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")


def _check_fields(value: Object, resource: Resource) -> None:
    wrong: list[str] = []
    _validate(value, resource.schema, "", wrong)
    if not wrong:
        return
    listed = (
        wrong[0] if len(wrong) == 1 else "\n".join(["errors:", *(f"  {text}" for text in wrong)])
    )
    meta = value.get("metadata")
    named = meta if isinstance(meta, dict) else {}
    place = f"{named.get('namespace') or ''}/{named.get('name') or ''}"
    group = resource.group
    raise internal(
        f"failed to create typed patch object ({place}; {group}/{resource.version}, "
        f"Kind={resource.kind}): {listed}"
    )


def _validate(value: Any, kind: schema.GoType, path: str, wrong: list[str]) -> None:
    if value is None or isinstance(kind, schema.TimeType | schema.Raw):
        return
    if isinstance(kind, schema.Structure | schema.Mapping):
        if not isinstance(value, dict):
            wrong.append(f"{path}: expected map, got &{{{go_text(value)}}}")
            return
        for name, item in value.items():
            _validate_member(name, item, kind, path, wrong)
    elif isinstance(kind, schema.SliceType):
        if not isinstance(value, list):
            wrong.append(f"{path}: expected list, got &{{{go_text(value)}}}")
            return
        _validate_items(value, kind, path, wrong)
    elif not _fits(value, kind):
        word = {schema.Boolean: "boolean", schema.Integer: "numeric (int or float)"}
        expected = word.get(type(kind), "string")
        wrong.append(f"{path}: expected {expected}, got {_go_value(value)}")


def _validate_member(
    name: str, item: Any, kind: schema.Structure | schema.Mapping, path: str, wrong: list[str]
) -> None:
    inner = f"{path}.{name}"
    if isinstance(kind, schema.Mapping):
        _validate(item, schema.TEXT, inner, wrong)
    elif name not in kind.fields and kind.extensible:
        pass
    elif name not in kind.fields:
        wrong.append(f"{inner}: field not declared in schema")
    else:
        _validate(item, kind.fields[name].kind, inner, wrong)


def _validate_items(items: list[Any], kind: schema.SliceType, path: str, wrong: list[str]) -> None:
    seen: set[Any] = set()
    for index, item in enumerate(items):
        if kind.key and not (isinstance(item, dict) and item.get(kind.key) is not None):
            wrong.append(
                f"{path}: element {index}: associative list with keys has an element that omits "
                f'key field "{kind.key}" (and doesn\'t have default value)'
            )
            continue
        identity = item[kind.key] if kind.key else item
        hashable = go_text(identity) if isinstance(identity, dict | list) else identity
        if kind.key is not None and hashable in seen:
            shown = f'[{kind.key}="{identity}"]' if kind.key else f'[="{identity}"]'
            wrong.append(f"{path}: duplicate entries for key {shown}")
        seen.add(hashable)
        _validate(item, kind.item, f"{path}[{index}]", wrong)


def _fits(value: Any, kind: schema.GoType) -> bool:
    if isinstance(kind, schema.Boolean):
        return isinstance(value, bool)
    if isinstance(kind, schema.Integer):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, str)


def _go_value(value: Any) -> str:
    if isinstance(value, str):
        shown = go_quote(value)
    elif isinstance(value, dict):
        pairs = ", ".join(f"{go_quote(key)}:{_go_plain(item)}" for key, item in value.items())
        shown = f"map[string]interface {{}}{{{pairs}}}"
    elif isinstance(value, list):
        shown = f"[]interface {{}}{{{', '.join(map(_go_plain, value))}}}"
    else:
        shown = go_text(value)
    return f"&value.valueUnstructured{{Value:{shown}}}"


def _go_plain(value: Any) -> str:
    return go_quote(value) if isinstance(value, str) else go_text(value)


def _integral(value: Any) -> Any:
    """Make whole numbers integers: Go loses their text when it converts YAML to JSON."""
    if isinstance(value, Number) and float(value).is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _integral(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_integral(item) for item in value]
    return value
