"""Convert answers: tables as kubectl shows them, and objects with metadata only."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from leases.apiserver.codec.go_values import age
from leases.apiserver.errors import bad_request, not_acceptable
from leases.apiserver.http.negotiation import Output
from leases.apiserver.resources import Resource
from leases.wire.status import go_quote

Object = dict[str, Any]
_INCLUDES = ("", "Metadata", "Object", "None")


def check_include(include: str) -> None:
    """Raises 400 for an unknown includeObject."""
    if include not in _INCLUDES:
        detail = "must be 'Metadata', 'Object', 'None', or empty"
        raise bad_request(
            "Unable to convert to Table as requested: includeObject: "
            f"Invalid value: {go_quote(include)}: {detail}"
        )


def convert_object(resource: Resource, obj: Object, output: Output, include: str) -> Object:
    """One object (without kind and apiVersion) as the Accept header asked. Raises 406."""
    if output.convert == "Table":
        meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        return table(resource, [obj], meta, output.version, include)
    if output.convert == "PartialObjectMetadata":
        return _partial(obj, output.version)
    if output.convert:
        kind = f"*{resource.package}.{resource.kind}"
        raise not_acceptable(
            f"you requested {output.convert}, but the requested object is not a list ({kind})"
        )
    return {"kind": resource.kind, "apiVersion": resource.api_version, **obj}


def convert_list(
    resource: Resource, items: Sequence[Object], meta: Object, output: Output, include: str
) -> Object:
    """A list as the Accept header asked. Raises 406."""
    if output.convert == "Table":
        return table(resource, items, meta, output.version, include)
    if output.convert == "PartialObjectMetadataList":
        return {
            "kind": output.convert,
            "apiVersion": f"meta.k8s.io/{output.version}",
            "metadata": meta,
            "items": [_partial(item, output.version) for item in items],
        }
    if output.convert:
        kind = f"*{resource.package}.{resource.list_kind}"
        raise not_acceptable(
            f"you requested {output.convert}, but the requested object is a list ({kind})"
        )
    return {
        "kind": resource.list_kind,
        "apiVersion": resource.api_version,
        "metadata": meta,
        "items": list(items),
    }


def _partial(obj: Object, version: str) -> Object:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": obj["metadata"],
    }


def table(
    resource: Resource,
    items: Sequence[Object],
    meta: Object,
    version: str,
    include: str,
    *,
    columns: bool = True,
) -> Object:
    """A Table. Without `columns` the definitions are null, as in later events of a watch."""
    check_include(include)
    now = datetime.now(UTC)
    definitions = [
        {
            "name": column.name,
            "type": "string",
            "format": column.format,
            "description": column.description,
            "priority": column.priority,
        }
        for column in resource.columns
    ]
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": meta,
        "columnDefinitions": definitions if columns else None,
        "rows": [
            {
                "cells": _cells(resource, item, now),
                "object": _included(resource, item, version, include),
            }
            for item in items
        ],
    }


def _included(resource: Resource, obj: Object, version: str, include: str) -> Object | None:
    if include == "None":
        return None
    if include == "Object":
        return {"kind": resource.kind, "apiVersion": resource.api_version, **obj}
    return _partial(obj, version)


def _cells(resource: Resource, obj: Object, now: datetime) -> list[Any]:
    return [
        age(column.cell(obj), now) if column.age else column.cell(obj)
        for column in resource.columns
    ]
