"""Creating and updating objects: what the registry does between the decoded object and the store.

Source: apiserver/pkg/registry/rest/{create,update}.go and registry/generic/registry/store.go.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from typing import Any

from leases.apiserver.codec.go_json import dumps
from leases.apiserver.codec.large_bodies import aside
from leases.apiserver.errors import (
    MODIFIED,
    already_exists,
    bad_request,
    conflict,
    internal,
    invalid,
)
from leases.apiserver.registry.managed_fields import after_update, keep_times_of_no_change
from leases.apiserver.registry.namespaces import Namespaces, completed
from leases.apiserver.registry.validation import create_errors, update_errors
from leases.apiserver.resources import CLE_GATE, LEASES, NAMESPACES, Resource
from leases.apiserver.storage.records import Version, now_text, ordered_metadata
from leases.apiserver.storage.store import ObjectStore, Plan
from leases.wire.name_rules import generated_name
from leases.wire.status_causes import bad_value

Object = dict[str, Any]
_NAME_TRIES = 8
_DIGITS = re.compile(r"[0-9]+", re.ASCII)
_DUPLICATE_OWNERS = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in "
    "1.20+, "
    "and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) "
    "observed: "
)
_FOREIGN_NAMESPACE = (
    "the namespace of the provided object does not match the namespace sent on the request"
)
# The server's own, whatever a client sends at creation.
_SYSTEM_FIELDS = (
    "selfLink", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
)  # fmt: skip


def _without_system_fields(meta: Object) -> Object:
    return {name: value for name, value in meta.items() if name not in _SYSTEM_FIELDS}


class Written:
    """What a write left behind: the object as it is answered, and whether it is new."""

    __slots__ = ("created", "obj")

    def __init__(self, obj: Object, *, created: bool = False) -> None:
        self.obj = obj
        self.created = created


# The wanted object from the one that is stored (None: there is none).
Wanted = Callable[[Object | None], Object]


def place_in_namespace(obj: Object, namespace: str) -> None:
    """Fill the namespace in. Raises 400 when the object names another."""
    meta = obj["metadata"]
    if meta.get("namespace", namespace) != namespace:
        raise bad_request(_FOREIGN_NAMESPACE)
    if namespace:
        meta["namespace"] = namespace


def check_name(obj: Object, name: str) -> None:
    """Raises 400 when the object is not the one that the URL names."""
    given = obj["metadata"].get("name", "")
    if not given:
        raise bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be "
            "provided"
        )
    if given != name:
        raise bad_request(
            f"the name of the object ({given}) does not match the name on the URL ({name})"
        )


def merge_owners(obj: Object, warn: Callable[[str], None]) -> None:
    """Drop owner references that are there already, with a warning."""
    owners = obj["metadata"].get("ownerReferences")
    if not owners or len(owners) < 2:
        return
    kept: dict[bytes, Object] = {}
    doubles: list[str] = []
    for owner in owners:
        text = dumps(owner)
        if text in kept:
            doubles.append(owner["uid"])
        kept[text] = owner
    if doubles:
        obj["metadata"]["ownerReferences"] = list(kept.values())
        warn(_DUPLICATE_OWNERS + ", ".join(dict.fromkeys(doubles)))


class Writer:
    """Creates and updates for one server; `gates` are its feature gates."""

    def __init__(self, store: ObjectStore, namespaces: Namespaces, gates: frozenset[str]) -> None:
        self._store = store
        self._namespaces = namespaces
        self.coordinated = CLE_GATE in gates

    def tracked(self, resource: Resource, old: Object | None, new: Object, manager: str) -> Object:
        """The object with its managedFields as they are after an update by this manager."""
        version, kind = resource.api_version, resource.schema
        entries = after_update(old, new, manager, version, kind, now_text())
        return _with_managed(new, entries)

    async def create(
        self,
        resource: Resource,
        namespace: str,
        obj: Object,
        manager: str,
        *,
        dry_run: bool,
        size: int,
    ) -> Written:
        """`size` is that of what was sent. Raises 400, 403, 404, 409, 422 and 500."""
        given = obj["metadata"].get("resourceVersion", "")
        place_in_namespace(obj, namespace)
        self._namespaces.check_takes_new(resource, namespace, obj["metadata"].get("name", ""))
        obj = obj | {"metadata": _without_system_fields(obj["metadata"])}
        obj = await aside(size, self.tracked, resource, None, obj, manager)
        generated = not obj["metadata"].get("name") and bool(obj["metadata"].get("generateName"))
        for _ in range(_NAME_TRIES if generated else 1):
            new = await aside(size, self._completed, resource, obj)
            name = new["metadata"]["name"]
            if _DIGITS.fullmatch(given) and int(given) and not dry_run:
                raise internal("resourceVersion should not be set on objects to be created")
            if generated and self._store.get(resource.plural, namespace, name) is not None:
                continue
            break

        def attempt(existing: Version | None) -> Plan:
            if existing is not None:
                deleting = "deletionTimestamp" in existing.read()["metadata"]
                raise already_exists(resource.plural, name, resource.group, deleting=deleting)
            self._namespaces.check_takes_new(resource, namespace, name)
            return Plan() if dry_run else Plan(new)

        stored = await self._store.write(resource.plural, namespace, name, attempt)
        return Written(new if stored is None else stored.read(), created=True)

    def _completed(self, resource: Resource, obj: Object) -> Object:
        """The object with what the server adds at creation. Raises 422."""
        if resource is NAMESPACES:
            obj = completed(obj)
        meta = _without_system_fields(obj["metadata"])
        meta.pop("resourceVersion", None)
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = generated_name(meta["generateName"])
        meta["uid"] = str(uuid.uuid4())
        meta["creationTimestamp"] = now_text()
        new = obj | {"metadata": ordered_metadata(meta)}
        self._drop_gated(resource, new, None)
        if wrong := create_errors(resource, new, coordinated=self.coordinated):
            raise invalid(resource.kind, meta.get("name", ""), wrong, resource.group)
        return new

    def _drop_gated(self, resource: Resource, new: Object, old: Object | None) -> None:
        """With the gate off, strategy and preferredHolder are dropped without a word."""
        if self.coordinated or resource is not LEASES:
            return
        kept = {} if old is None else old["spec"]
        gated = ("strategy", "preferredHolder")
        if any(name in new["spec"] and name not in kept for name in gated):
            new["spec"] = {
                name: value
                for name, value in new["spec"].items()
                if name not in gated or name in kept
            }

    async def update(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        wanted: Wanted,
        *,
        uid: str = "",
        dry_run: bool,
        size: int,
    ) -> Written:
        """Make the object what `wanted` says; one that is not there is created.

        `uid` is a precondition, `size` that of what was sent. Raises what `wanted` raises, and 403,
        404, 409, 422 and 500.
        """
        written: list[Written] = []

        def attempt(existing: Version | None) -> Plan:
            if uid and uid != (existing.uid if existing else ""):
                raise _foreign_uid(resource, namespace, name, uid, existing)
            old = None if existing is None else existing.read()
            new = wanted(old)
            if old is None:
                self._namespaces.check_takes_new(resource, namespace, name)
                new = self._completed(resource, new)
                written.append(Written(new, created=True))
                return Plan() if dry_run else Plan(new)
            new = self._updated(resource, new, old)
            written.append(Written(new))
            if _finished(new, old) and resource.namespaced:
                return Plan() if dry_run else Plan(remove=True)
            return Plan() if dry_run or new == old else Plan(new)

        stored = await self._store.write(resource.plural, namespace, name, attempt, size=size)
        (found,) = written
        if stored is None or dry_run:
            return found
        return Written(stored.read(), created=found.created)

    def _updated(self, resource: Resource, new: Object, old: Object) -> Object:
        """The new form of a stored object with what a client cannot change put back.

        Raises 409, 422, 500.
        """
        meta, before = dict(new["metadata"]), old["metadata"]
        _check_version(resource, meta, before)
        meta.pop("selfLink", None)
        meta.pop("generation", None)
        meta.setdefault("uid", before["uid"])
        meta["creationTimestamp"] = before["creationTimestamp"]
        if "generation" in before:
            meta["generation"] = before["generation"]
        if "deletionTimestamp" in before:
            meta["deletionTimestamp"] = before["deletionTimestamp"]
            meta["deletionGracePeriodSeconds"] = before.get("deletionGracePeriodSeconds", 0)
        new = new | {"metadata": ordered_metadata(meta)}
        if resource is NAMESPACES:
            new |= {"spec": old["spec"], "status": old["status"]}
        self._drop_gated(resource, new, old)
        keep_times_of_no_change(new, old)
        if wrong := update_errors(resource, new, old, coordinated=self.coordinated):
            raise invalid(resource.kind, meta["name"], wrong, resource.group)
        return new


def _with_managed(obj: Object, entries: list[Object]) -> Object:
    meta = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    if entries:
        meta["managedFields"] = entries
    return obj | {"metadata": meta}


def _finished(new: Object, old: Object) -> bool:
    """Whether an update takes the last finalizer from an object that is being deleted."""
    return "deletionTimestamp" in old["metadata"] and not new["metadata"].get("finalizers")


def _check_version(resource: Resource, meta: Object, before: Object) -> None:
    given = meta.get("resourceVersion", "") or "0"
    if not _DIGITS.fullmatch(given):
        raise internal(f'strconv.ParseUint: parsing "{given}": invalid syntax')
    if int(given) == 0:
        cause = bad_value("metadata.resourceVersion", "0", "must be specified for an update")
        raise invalid(resource.plural, meta["name"], [cause], resource.group)
    if int(given) != int(before["resourceVersion"]):
        raise conflict(resource.plural, meta["name"], MODIFIED, resource.group)
    meta["resourceVersion"] = before["resourceVersion"]


def _foreign_uid(
    resource: Resource, namespace: str, name: str, uid: str, existing: Version | None
) -> Exception:
    key = "/".join(part for part in ("/registry", resource.plural, namespace, name) if part)
    found = existing.uid if existing else ""
    why = (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, "
        "AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
    )
    return conflict(resource.plural, name, why, resource.group)
