"""The schemas of the OpenAPI documents, from the Go types of schema.py.

What `kubectl explain` says about them is in descriptions.json, by type and field (no name: the type
itself): the words of Kubernetes' own api/openapi-spec/swagger.json.
"""

import json
from pathlib import Path
from typing import Any

from leases.apiserver.codec import schema
from leases.apiserver.resources import Resource

Value = dict[str, Any]
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_NAMED: dict[str, Value] = {
    "Time": {"type": "string", "format": "date-time"},
    "MicroTime": {"type": "string", "format": "date-time"},
    "FieldsV1": {"type": "object"},
    "Patch": {"type": "object"},
}
_WORDS = Path(__file__).with_name("descriptions.json")
_LIST_META = {
    "continue": {"type": "string"},
    "remainingItemCount": {"type": "integer", "format": "int64"},
    "resourceVersion": {"type": "string"},
    "selfLink": {"type": "string"},
}
_CAUSE = {"field": {"type": "string"}, "message": {"type": "string"}, "reason": {"type": "string"}}


class _Schemas:
    """Schemas for one version of OpenAPI: they refer to each other differently."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.found: Value = {}

    def ref(self, name: str, *, default: bool = False) -> Value:
        root = "#/definitions/" if self.version == 2 else "#/components/schemas/"
        pointer = {"$ref": root + name}
        if self.version == 2:
            return pointer
        return {"default": {}, "allOf": [pointer]} if default else {"allOf": [pointer]}

    def items(self, name: str) -> Value:
        root = "#/definitions/" if self.version == 2 else "#/components/schemas/"
        return {"$ref": root + name}

    def name_of(self, kind: schema.Structure, owner: str) -> str:
        """Structs of the meta package keep its name, others that of their resource's package."""
        meta = (
            "ObjectMeta",
            "OwnerReference",
            "ManagedFieldsEntry",
            "Preconditions",
            "DeleteOptions",
            "FieldSelectorRequirement",
            "LabelSelectorRequirement",
        )
        return (
            f"{_META}.{kind.short}"
            if kind.short in meta
            else f"{owner.rpartition('.')[0]}.{kind.short}"
        )

    def of(self, kind: schema.GoType, owner: str, *, pointer: bool = False) -> Value:
        if isinstance(kind, schema.TimeType):
            return self.ref(f"{_META}.{'MicroTime' if kind.micro else 'Time'}")
        if isinstance(kind, schema.Raw):
            return self.ref(f"{_META}.FieldsV1")
        if isinstance(kind, schema.Integer):
            return {"type": "integer", "format": kind.name}
        if isinstance(kind, schema.Boolean):
            return {"type": "boolean"}
        if isinstance(kind, schema.Mapping):
            return {"type": "object", "additionalProperties": self.of(kind.item, owner)}
        if isinstance(kind, schema.SliceType):
            return self._listing(kind, owner)
        if isinstance(kind, schema.Structure):
            name = self.name_of(kind, owner)
            self.add(name, kind)
            return self.ref(name, default=not pointer)
        return {"type": "string"}

    def _listing(self, kind: schema.SliceType, owner: str) -> Value:
        if isinstance(kind.item, schema.Structure):
            name = self.name_of(kind.item, owner)
            self.add(name, kind.item)
            items = self.items(name)
        else:
            items = {"type": "string"}
        found: Value = {"type": "array", "items": items}
        if kind.key is None:
            return found | {"x-kubernetes-list-type": "atomic"}
        found["x-kubernetes-patch-strategy"] = "merge"
        if not kind.key:
            return found | {"x-kubernetes-list-type": "set"}
        keys = {"x-kubernetes-list-map-keys": [kind.key], "x-kubernetes-list-type": "map"}
        return found | keys | {"x-kubernetes-patch-merge-key": kind.key}

    def add(self, name: str, kind: schema.Structure, gvk: Value | None = None) -> None:
        if name in self.found:
            return
        self.found[name] = {}
        plain = [each for each, field in kind.fields.items() if field.always]
        required = [
            each for each in plain if not isinstance(kind.fields[each].kind, schema.Structure)
        ]
        found: Value = {"type": "object"}
        if required:
            found["required"] = required
        found["properties"] = {
            each: self.of(field.kind, name, pointer=field.pointer)
            for each, field in sorted(kind.fields.items())
        }
        if kind.extensible:
            found["x-kubernetes-preserve-unknown-fields"] = True
        if kind.atomic:
            found["x-kubernetes-map-type"] = "atomic"
        if gvk is not None:
            found["x-kubernetes-group-version-kind"] = [gvk]
        self.found[name] = found

    def add_list(self, name: str, item: str, gvk: Value) -> None:
        self.found[name] = {
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": {"type": "string"},
                "items": {"type": "array", "items": self.items(item)},
                "kind": {"type": "string"},
                "metadata": self.ref(f"{_META}.ListMeta", default=True),
            },
            "x-kubernetes-group-version-kind": [gvk],
        }

    def add_meta(self) -> None:
        """What every document needs beside its own kinds."""
        for name, value in _NAMED.items():
            self.found[f"{_META}.{name}"] = value
        self.add(f"{_META}.DeleteOptions", schema.DELETE_OPTIONS)
        self.found[f"{_META}.ListMeta"] = {"type": "object", "properties": _LIST_META}
        self.found[f"{_META}.StatusCause"] = {"type": "object", "properties": _CAUSE}
        causes = {"type": "array", "items": self.items(f"{_META}.StatusCause")}
        details: Value = {name: {"type": "string"} for name in ("group", "kind", "name", "uid")}
        details |= {"causes": causes, "retryAfterSeconds": {"type": "integer", "format": "int32"}}
        self.found[f"{_META}.StatusDetails"] = {"type": "object", "properties": details}
        texts = ("apiVersion", "kind", "message", "reason", "status")
        status: Value = {name: {"type": "string"} for name in texts}
        status |= {
            "code": {"type": "integer", "format": "int32"},
            "details": self.ref(f"{_META}.StatusDetails"),
            "metadata": self.ref(f"{_META}.ListMeta", default=True),
        }
        gvk = [{"group": "", "kind": "Status", "version": "v1"}]
        self.found[f"{_META}.Status"] = {
            "type": "object",
            "properties": status,
            "x-kubernetes-group-version-kind": gvk,
        }
        self.found[f"{_META}.WatchEvent"] = {
            "type": "object",
            "required": ["type", "object"],
            "properties": {"object": {"type": "object"}, "type": {"type": "string"}},
        }


def schemas(resources: list[Resource], *, version: int) -> Value:
    """Name to schema, for `version` 2 or 3 of OpenAPI."""
    made = _Schemas(version)
    made.add_meta()
    for resource in resources:
        package = resource.group.partition(".")[0] or "core"
        name = f"io.k8s.api.{package}.{resource.version}.{resource.kind}"
        gvk = {"group": resource.group, "kind": resource.kind, "version": resource.version}
        made.add(name, resource.schema, gvk)
        if not resource.is_review:
            made.add_list(f"{name}List", name, gvk | {"kind": resource.list_kind})
    _describe(made.found)
    return dict(sorted(made.found.items()))


def _describe(found: Value) -> None:
    words = json.loads(_WORDS.read_text())
    for name, value in found.items():
        said = words.get(name.rpartition(".")[2], {})
        properties = value.get("properties", {})
        for field in properties.keys() & said.keys():
            properties[field] = {"description": said[field]} | properties[field]
        if "" in said:
            found[name] = {"description": said[""]} | value
