"""What a write expects of the stored object: its resourceVersion and its uid.

Source: apiserver/pkg/registry/generic/registry/store.go and pkg/storage/interfaces.go.
"""

from __future__ import annotations

import re
from typing import Any

from leases.apiserver.errors import MODIFIED, conflict, internal, invalid
from leases.apiserver.http.routes import RequestTarget
from leases.apiserver.resources import Resource
from leases.wire.status_causes import bad_value

Object = dict[str, Any]
DIGITS = re.compile(r"[0-9]+", re.ASCII)


def check_version(resource: Resource, meta: Object, before: Object) -> None:
    """Give the metadata the stored resourceVersion. Raises 409, 422 and 500."""
    if resource.unconditional_update and not meta.get("resourceVersion"):
        meta["resourceVersion"] = before["resourceVersion"]
        return
    given = meta.get("resourceVersion", "") or "0"
    if not DIGITS.fullmatch(given):
        raise internal(f'strconv.ParseUint: parsing "{given}": invalid syntax')
    if int(given) == 0:
        cause = bad_value("metadata.resourceVersion", "0", "must be specified for an update")
        raise invalid(resource.plural, meta["name"], [cause], resource.group)
    if int(given) != int(before["resourceVersion"]):
        raise conflict(resource.plural, meta["name"], MODIFIED, resource.group)
    meta["resourceVersion"] = before["resourceVersion"]


def check_uid(place: RequestTarget, new: Object, old: Object | None) -> None:
    """Raises 409 when the object names the uid of another one."""
    uid, found = new["metadata"].get("uid", ""), old["metadata"]["uid"] if old else ""
    if not uid or uid == found:
        return
    plural, name = place.resource.plural, place.name
    key = "/".join(part for part in ("/registry", plural, place.namespace, name) if part)
    why = (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, "
        "AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
    )
    raise conflict(plural, name, why, place.resource.group)
