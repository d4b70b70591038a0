"""PATCH: JSON patch, merge patch, strategic merge patch and apply, by content type.

Source: apiserver/pkg/endpoints/handlers/patch.go.
"""

from __future__ import annotations

from typing import Any

from leases.apiserver.decoding import DecodeError, Decoder
from leases.apiserver.errors import bad_request, bad_value, go_quote, invalid, not_found
from leases.apiserver.gojson import JsonError, dumps, loads, type_word
from leases.apiserver.options import WriteOptions, write_options
from leases.apiserver.request import Request
from leases.apiserver.resources import Resource
from leases.apiserver.routes import Place
from leases.apiserver.writing import Writer, Written, check_name, merge_owners, place_in_namespace

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
Object = dict[str, Any]


class Patcher:
    """Patches through one writer."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def patch(self, request: Request, place: Place) -> Written:
        given = request.header(b"content-type").partition(";")[0].strip()
        data = await request.body()
        options = write_options(request, "PatchOptions", apply=given == APPLY_PATCH)
        resource = place.resource

        def wanted(old: Object | None) -> Object:
            if old is None:
                raise not_found(resource.plural, place.name, resource.group)
            head = {"kind": resource.kind, "apiVersion": resource.api_version}
            try:
                patch = loads(data)
            except JsonError as error:
                raise bad_request(f"error decoding patch: {error}") from None
            if not isinstance(patch, dict):
                raise bad_request(f"error decoding patch: json: cannot unmarshal {type_word(patch)} into Go value of type map[string]interface {{}}")
            new = Decoder().decode(merge_patch(head | old, patch), resource.schema)
            new.pop("kind"), new.pop("apiVersion")
            place_in_namespace(new, place.namespace)
            check_name(new, place.name)
            return new

        return await self._writer.update(resource, place.namespace, place.name, wanted, dry_run=options.dry_run)


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result
