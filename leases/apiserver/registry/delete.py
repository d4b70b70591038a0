"""Delete objects: preconditions, finalizers, and propagation policies, which add finalizers.

Source: apiserver/pkg/registry/generic/registry/store.go, registry/rest/delete.go and
pkg/storage/interfaces.go.
"""

from typing import Any

from leases.apiserver.errors import MODIFIED, conflict, internal, invalid, not_found
from leases.apiserver.http.options import DeleteOptions
from leases.apiserver.http.request import RequestTarget
from leases.apiserver.resources import Resource
from leases.apiserver.storage.journal import Version, now_text, ordered_metadata
from leases.apiserver.storage.store import ObjectStore, Plan
from leases.wire.selectors import parse_uint
from leases.wire.status import ApiError, bad_value

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


ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"


class DeleteOutcome:
    """`held` is the object if finalizers keep it, else None; `uid` is its uid."""

    __slots__ = ("held", "uid")

    def __init__(self, uid: str, held: Object | None) -> None:
        self.uid = uid
        self.held = held


async def delete(
    store: ObjectStore, resource: Resource, namespace: str, name: str, options: DeleteOptions
) -> DeleteOutcome:
    """Raises 404 and 409."""
    result: list[DeleteOutcome] = []

    def attempt(existing: Version | None) -> Plan:
        if existing is None:
            raise not_found(resource.plural, name, resource.group)
        _check(resource, existing, options)
        old = existing.read()
        finalizers = _finalizers(old["metadata"].get("finalizers", []), options)
        if not finalizers:
            result.append(DeleteOutcome(existing.uid, None))
            return Plan() if options.dry_run else Plan(remove=True)
        held = _marked(old, finalizers)
        result.append(DeleteOutcome(existing.uid, held))
        return Plan() if options.dry_run or held == old else Plan(held)

    stored = await store.write(resource.plural, namespace, name, attempt)
    (deleted,) = result
    if deleted.held is not None and stored is not None and not options.dry_run:
        deleted.held = stored.read()
    return deleted


def _check(resource: Resource, existing: Version, options: DeleteOptions) -> None:
    if options.uid is not None and options.uid != existing.uid:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record "
            f"({existing.uid}). The object might have been deleted and then recreated"
        )
        raise conflict(resource.kind, existing.name, why, resource.group)
    version = str(existing.revision)
    if options.version is not None and options.version != version:
        why = (
            f"the ResourceVersion in the precondition ({options.version}) does not match the "
            f"ResourceVersion in record ({version}). The object might have been modified"
        )
        raise conflict(resource.kind, existing.name, why, resource.group)


def _finalizers(before: list[str], options: DeleteOptions) -> list[str]:
    """The object's finalizers with that of the propagation policy."""
    orphan = _wants(before, options, ORPHAN)
    foreground = _wants(before, options, FOREGROUND)
    after = [name for name in before if name not in (ORPHAN, FOREGROUND)]
    after += [ORPHAN] * orphan + [FOREGROUND] * foreground
    return before if set(after) == set(before) else after


def _wants(before: list[str], options: DeleteOptions, finalizer: str) -> bool:
    """Follow the given policy; without one, that of an earlier delete."""
    if options.orphan is not None:
        return options.orphan and finalizer == ORPHAN
    if options.propagation is not None:
        policy = "Orphan" if finalizer == ORPHAN else "Foreground"
        return options.propagation == policy
    first = next((name for name in before if name in (ORPHAN, FOREGROUND)), None)
    return first == finalizer


def _marked(old: Object, finalizers: list[str]) -> Object:
    meta = dict(old["metadata"])
    if "deletionGracePeriodSeconds" not in meta and meta.get("generation", 0) > 0:
        meta["generation"] += 1
    meta.setdefault("deletionTimestamp", now_text())
    meta["deletionGracePeriodSeconds"] = 0
    meta["finalizers"] = finalizers
    return old | {"metadata": ordered_metadata(meta)}
