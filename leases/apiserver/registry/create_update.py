"""Create and update objects: defaults, preconditions, managedFields and validation.

Source: apiserver/pkg/registry/rest/{create,update}.go and registry/generic/registry/store.go.
"""

import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from leases.apiserver.codec.decoding import aside
from leases.apiserver.codec.go_json import dumps
from leases.apiserver.errors import already_exists, bad_request, internal, invalid, not_found
from leases.apiserver.http.options import WriteOptions
from leases.apiserver.http.request import RequestTarget
from leases.apiserver.registry.delete import check_version, given_version, is_numbered
from leases.apiserver.registry.managed_fields import after_update, keep_times_of_no_change
from leases.apiserver.registry.namespaces import Namespaces, completed
from leases.apiserver.registry.validation import create_errors, update_errors
from leases.apiserver.resources import CLE_GATE, LEASES, NAMESPACES, Resource
from leases.apiserver.storage.journal import Version, now_text, ordered_metadata
from leases.apiserver.storage.store import ObjectStore, Plan
from leases.wire.name_rules import generated_name

Object = dict[str, Any]
_NAME_TRIES = 8
_DUPLICATE_OWNERS = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in "
    "1.20+, "
    "and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) "
    "observed: "
)
_FOREIGN_NAMESPACE = (
    "the namespace of the provided object does not match the namespace sent on the request"
)
# The server sets these at creation, whatever the client sends.
_SYSTEM_FIELDS = (
    "selfLink", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
)  # fmt: skip


def without_system_fields(meta: Object) -> Object:
    return {name: value for name, value in meta.items() if name not in _SYSTEM_FIELDS}


class Written(msgspec.Struct):
    """The result of a write: the stored version, or the object where nothing is stored."""

    found: Version | Object
    created: bool = False
    removed: bool = False


# Gets the stored object (None: there is none), returns the wanted one.
Wanted = Callable[[Object | None], Object]


def place_in_namespace(obj: Object, namespace: str) -> None:
    """Set the namespace; none for cluster-wide kinds. Raises 400 when the object names another."""
    meta = obj["metadata"]
    if not namespace:
        meta.pop("namespace", None)
        return
    if meta.get("namespace", namespace) != namespace:
        raise bad_request(_FOREIGN_NAMESPACE)
    meta["namespace"] = namespace


def check_sent(place: RequestTarget, obj: Object, warn: Callable[[str], None]) -> None:
    """Raises 400 when the object is not the one that the URL names."""
    place_in_namespace(obj, place.namespace)
    name = place.name
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
    merge_owners(obj, warn)


def merge_owners(obj: Object, warn: Callable[[str], None]) -> None:
    """Drop repeated owner references, with a warning."""
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
        """`size` is that of the request's body. Raises 400, 403, 404, 409, 422 and 500."""
        numbered = is_numbered(obj["metadata"])
        place_in_namespace(obj, namespace)
        self._namespaces.check_takes_new(resource, namespace, obj["metadata"].get("name", ""))
        obj = obj | {"metadata": without_system_fields(obj["metadata"])}
        if resource.prepare is not None:
            resource.prepare(obj, None, "")
        await aside(size, _track, resource, None, obj, manager)
        if resource.conversion is not None:
            obj = resource.conversion.inward(obj)
        generated = not obj["metadata"].get("name") and bool(obj["metadata"].get("generateName"))
        for _ in range(_NAME_TRIES if generated else 1):
            new = await aside(size, self._completed, resource, obj)
            name = new["metadata"]["name"]
            if numbered and not dry_run:
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
        return Written(new if stored is None else stored, created=True)

    def _completed(self, resource: Resource, obj: Object) -> Object:
        """Add the fields that the server sets at creation. Raises 422."""
        if resource is NAMESPACES:
            obj = completed(obj)
        meta = without_system_fields(obj["metadata"])
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
        """Drop strategy and preferredHolder when the gate is off, as kube-apiserver does."""
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
        place: RequestTarget,
        wanted: Wanted,
        options: WriteOptions,
        *,
        tracks: bool = True,
        size: int,
    ) -> Written:
        """Store the object that `wanted` returns; create it where there is none.

        `tracks`: write its managedFields. `size` is that of the request's body. Raises what
        `wanted` raises, and 403, 404, 409, 422 and 500.
        """
        resource = place.resource
        written: list[Written] = []

        def attempt(existing: Version | None) -> Plan:
            old = None if existing is None else existing.read()
            if old is None and tracks and not resource.creates_on_update:
                raise not_found(resource.plural, place.name, resource.group)
            new = self._wanted(place, wanted, old, options.manager if tracks else None)
            if old is None:
                self._namespaces.check_takes_new(resource, place.namespace, place.name)
                given_version(new["metadata"])
                new = self._completed(resource, new)
            else:
                new = self._updated(resource, new, old)
            written.append(Written(new, created=old is None))
            if options.dry_run or new == old:
                return Plan()
            removed = old is not None and _finished(new, old) and resource.namespaced
            return Plan(remove=True) if removed else Plan(new)

        key = (resource.plural, place.namespace, place.name)
        stored = await self._store.write(*key, attempt, size=size)
        (result,) = written
        if not options.dry_run:
            result.found, result.removed = stored or result.found, stored is None
        return result

    def _wanted(
        self, place: RequestTarget, wanted: Wanted, old: Object | None, tracked: str | None
    ) -> Object:
        """The wanted object in the stored version, with managedFields of the manager `tracked`."""
        resource = place.resource
        seen = old if old is None else resource.shown(old)
        new = wanted(seen)
        if resource.prepare is not None:
            resource.prepare(new, seen, place.subresource)
        if tracked is not None:
            _track(resource, seen, new, tracked, place.subresource)
        return new if resource.conversion is None else resource.conversion.inward(new)

    def _updated(self, resource: Resource, new: Object, old: Object) -> Object:
        """Restore the fields that a client cannot change. Raises 409, 422 and 500."""
        meta, before = new["metadata"], old["metadata"]
        check_version(resource, meta, before)
        meta.pop("selfLink", None)
        meta.pop("generation", None)
        meta.setdefault("uid", before["uid"])
        meta["creationTimestamp"] = before["creationTimestamp"]
        if "generation" in before:
            meta["generation"] = before["generation"]
        if "deletionTimestamp" in before:
            meta["deletionTimestamp"] = before["deletionTimestamp"]
        if "deletionGracePeriodSeconds" in before:
            meta.setdefault("deletionGracePeriodSeconds", before["deletionGracePeriodSeconds"])
        new["metadata"] = ordered_metadata(meta)
        self._drop_gated(resource, new, old)
        keep_times_of_no_change(new, old)
        if wrong := update_errors(resource, new, old, coordinated=self.coordinated):
            raise invalid(resource.kind, meta["name"], wrong, resource.group)
        return new


def _track(
    resource: Resource, old: Object | None, new: Object, manager: str, subresource: str = ""
) -> None:
    """Write the managedFields that the object has after an update by this manager."""
    version, kind = resource.api_version, resource.schema
    entries = after_update(old, new, manager, version, kind, now_text(), subresource)
    new["metadata"].pop("managedFields", None)
    if entries:
        new["metadata"]["managedFields"] = entries


def _finished(new: Object, old: Object) -> bool:
    """Whether an update takes the last finalizer from an object that is being deleted."""
    return "deletionTimestamp" in old["metadata"] and not new["metadata"].get("finalizers")
