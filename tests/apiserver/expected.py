"""What independent libraries make of a patch."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import json_merge_patch
import jsonpatch
import jsonpointer


class Refused(Exception):
    """The patch cannot be carried out."""


def merged(document: Any, patch: Any) -> Any:
    return without_nulls(json_merge_patch.merge(deepcopy(document), deepcopy(patch)))


def without_nulls(value: Any) -> Any:
    """The library upstream drops the nulls of objects in lists, which the RFC keeps."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def patched(document: Any, operations: list[Any]) -> Any:
    """With three habits of the library upstream: `replace` adds a member that is not there, such a
    one passes a `test` for null, and `copy` copies it as null. Raises Refused.
    """
    for operation in operations:
        kind, new = operation["op"], _is_new_member(document, operation["path"])
        if kind == "test" and new and operation["value"] is None:
            continue
        done = operation | {"op": "add"} if kind == "replace" and new else operation
        if kind == "copy" and _is_new_member(document, operation["from"]):
            done = operation | {"op": "add", "value": None}
        try:
            document = jsonpatch.apply_patch(document, [done])
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
            raise Refused(str(error)) from None
    return document


def _is_new_member(document: Any, path: str) -> bool:
    try:
        container, last = jsonpointer.JsonPointer(path).to_last(document)
    except jsonpointer.JsonPointerException:
        return False
    return isinstance(container, dict) and last not in container
