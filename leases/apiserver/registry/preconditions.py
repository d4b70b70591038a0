"""What a write expects of the stored object: its resourceVersion and its uid.

Source: apiserver/pkg/registry/generic/registry/store.go and pkg/storage/interfaces.go.
"""

from __future__ import annotations

from typing import Any

from leases.apiserver.errors import MODIFIED, conflict, internal, invalid
from leases.apiserver.http.routes import RequestTarget
from leases.apiserver.resources import Resource
from leases.wire.go_numbers import parse_uint
from leases.wire.status import ApiError
from leases.wire.status_causes import bad_value

Object = dict[str, Any]


def given_version(meta: Object) -> int:
    """The resourceVersion, 0 without one. Raises 500 when it cannot be read."""
    given = meta.get("resourceVersion", "")
    try:
        return parse_uint(given) if given else 0
    except ValueError as error:
        raise internal(str(error)) from None


def is_numbered(meta: Object) -> bool:
    """Whether there is a resourceVersion. etcd3's store.Create ignores what is no number."""
    try:
        return given_version(meta) > 0
    except ApiError:
        return False


def check_version(resource: Resource, meta: Object, before: Object) -> None:
    """Give the metadata the stored resourceVersion. Raises 409, 422 and 500."""
    given = given_version(meta)
    if given == 0 and not resource.unconditional_update:
        cause = bad_value("metadata.resourceVersion", "0", "must be specified for an update")
        raise invalid(resource.plural, meta["name"], [cause], resource.group)
    if given not in (0, int(before["resourceVersion"])):
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
