"""Read the body of an apply: YAML to a configuration that fits the type.

Source: apiserver/pkg/endpoints/handlers/patch.go (applyPatcher), apimachinery's
managedfields/internal, structured-merge-diff's typed/{validate,helpers}.go.
"""

from __future__ import annotations

from typing import Any

import msgspec

from leases.apiserver.codec import schema
from leases.apiserver.codec.go_fmt import go_syntax, go_text, go_type
from leases.apiserver.codec.go_json import type_word
from leases.apiserver.codec.yaml.yaml_input import YamlError, load_yaml
from leases.apiserver.errors import bad_request, internal
from leases.apiserver.registry.field_sets import item_element, shown
from leases.apiserver.resources import Resource

Object = dict[str, Any]


class Configuration(msgspec.Struct):
    """What a client applies. `duplicates` has a message for every repeated key."""

    value: Object
    duplicates: list[str]

    @property
    def fields(self) -> Object:
        """The configuration without kind and apiVersion."""
        return {key: item for key, item in self.value.items() if key not in ("kind", "apiVersion")}

    def shown(self, resource: Resource) -> str:
        """How messages name it."""
        meta = self.value.get("metadata")
        named = meta if isinstance(meta, dict) else {}
        place = "/".join(_text(named.get(name)) for name in ("namespace", "name"))
        return f"({place}; {resource.api_version}, Kind={resource.kind})"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def read_applied(data: bytes, resource: Resource) -> Configuration:
    """The configuration, checked against the type. Raises 400 and 500."""
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
    found = Configuration(_integral(value), loaded.duplicates)
    _check_type(found.value, resource)
    if wrong := type_errors(found.value, resource.schema):
        listed = "\n".join(["errors:", *(f"  {text}" for text in wrong)])
        why = wrong[0] if len(wrong) == 1 else listed
        raise internal(f"failed to create typed patch object {found.shown(resource)}: {why}")
    return found


def _check_type(value: Object, resource: Resource) -> None:
    version, kind = _text(value.get("apiVersion")), _text(value.get("kind"))
    if (version, kind) != (resource.api_version, resource.kind):
        group, slash, short = version.partition("/")
        if "/" in short:
            group, short, kind = "", "", ""
        elif not slash:
            group, short = "", group
        raise bad_request(f"invalid object type: {group}/{short}, Kind={kind}")
    meta = value.get("metadata")
    entries = meta.get("managedFields") if isinstance(meta, dict) else None
    if entries is not None and not type_errors(entries, schema.MANAGED_FIELDS):
        raise bad_request("metadata.managedFields must be nil")


def type_errors(value: Any, kind: schema.GoType, path: str = "") -> list[str]:
    """What does not fit, each with its path."""
    if value is None or isinstance(kind, schema.Raw):
        return []
    if isinstance(kind, schema.Structure | schema.Mapping):
        if not isinstance(value, dict):
            return [f"{path}: expected map, got &{{{go_text(value)}}}"]
        return _map_errors(value, kind, path)
    if isinstance(kind, schema.SliceType):
        if not isinstance(value, list):
            return [f"{path}: expected list, got &{{{go_text(value)}}}"]
        return _list_errors(value, kind, path)
    wrong = _scalar_error(value, kind)
    return [f"{path}: expected {wrong}"] if wrong else []


def _scalar_error(value: Any, kind: schema.GoType) -> str:
    if isinstance(kind, schema.TimeType):
        return f"any scalar, got &{{{go_text(value)}}}" if isinstance(value, dict | list) else ""
    if isinstance(kind, schema.Boolean):
        return "" if isinstance(value, bool) else f"boolean, got &{{{go_text(value)}}}"
    if isinstance(kind, schema.Integer):
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        return "" if fits else f"numeric (int or float), got {go_type(value)}"
    if isinstance(value, str):
        return ""
    return f"string, got &value.valueUnstructured{{Value:{go_syntax(value)}}}"


def _map_errors(value: Object, kind: schema.Structure | schema.Mapping, path: str) -> list[str]:
    wrong: list[str] = []
    for name, item in value.items():
        if isinstance(kind, schema.Mapping):
            wrong += type_errors(item, kind.item, f"{path}.{name}")
        elif name in kind.fields:
            wrong += type_errors(item, kind.fields[name].kind, f"{path}.{name}")
        elif not kind.extensible:
            return [*wrong, f"{path}.{name}: field not declared in schema"]
    return wrong


def _list_errors(items: list[Any], kind: schema.SliceType, path: str) -> list[str]:
    """Stops at the first item that has no identity in its list."""
    wrong: list[str] = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        place = f"[{index}]"
        if kind.key is not None:
            if why := _no_identity(item, kind.key):
                return [*wrong, f"{path}: element {index}: {why}"]
            element = item_element(item, kind)
            place = shown((element,))
            if element in seen:
                wrong.append(f"{path}: duplicate entries for key {place}")
            seen.add(element)
        wrong += type_errors(item, kind.item, f"{path}{place}")
    return wrong


def _no_identity(item: Any, key: str) -> str:
    """Why an item can be told apart from no other; a key that is left out has the default ""."""
    if key:
        before = "associative list with keys may not have"
        if item is None:
            return f"{before} a null element"
        return "" if isinstance(item, dict) else f"{before} non-map elements"
    if isinstance(item, dict):
        return "associative list without keys has an element that's a map type"
    if isinstance(item, list):
        return "not supported: associative list with lists as elements"
    null = "associative list without keys has an element that's an explicit null"
    return null if item is None else ""


def _integral(value: Any) -> Any:
    """Numbers as Go reads them after YAML became JSON: whole ones of 64 bits are integers."""
    if isinstance(value, dict):
        return {key: _integral(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_integral(item) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    whole = isinstance(value, int) or float(value).is_integer()
    return int(value) if whole and -(2**63) <= value < 2**63 else float(value)
