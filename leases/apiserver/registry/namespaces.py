"""Namespaces as far as Leases need them: four system namespaces, and deletion of the others.

This module does the work of the namespace controller: it deletes the Leases of a deleted namespace,
and then the namespace. Source of the refusals: plugin/pkg/admission NamespaceLifecycle.
"""

import asyncio
import contextlib
import uuid
from functools import partial
from typing import Any

from leases.apiserver import errors
from leases.apiserver.http.options import DeleteOptions
from leases.apiserver.registry.delete import delete
from leases.apiserver.resources import NAME_LABEL, NAMESPACES, Resource
from leases.apiserver.storage.journal import Version, now_text, ordered_metadata
from leases.apiserver.storage.store import ObjectStore, Plan
from leases.wire.status import NotFound, StatusCause

# Seconds. The namespace controller also empties a deleted namespace with a delay.
SWEEP_AFTER = 3.0
SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_IMMORTAL = {"default", "kube-public", "kube-system"}
Object = dict[str, Any]


def completed(obj: Object) -> Object:
    """A new namespace with its name as a label, finalizer and phase, as the server adds them."""
    meta = dict(obj["metadata"])
    if name := meta.get("name"):
        meta["labels"] = dict(sorted({**meta.get("labels", {}), NAME_LABEL: name}.items()))
    spec = {"finalizers": ["kubernetes"]}
    return {"metadata": ordered_metadata(meta), "spec": spec, "status": {"phase": "Active"}}


class Namespaces:
    """The namespaces of one store; `resources` are the namespaced ones."""

    def __init__(
        self,
        store: ObjectStore,
        resources: tuple[Resource, ...],
        failed: errors.Failed = errors.log_failure,
    ) -> None:
        self._store = store
        self._failed = failed
        self.resources = tuple(each for each in resources if each.namespaced)
        self._sweeps: set[asyncio.Task[None]] = set()

    async def ensure_system(self) -> None:
        for name in SYSTEM_NAMESPACES:
            await self._store.write(NAMESPACES.plural, "", name, partial(_new, name))

    def check_takes_new(self, resource: Resource, namespace: str, name: str) -> None:
        """Raise 404 or 403 when the namespace takes no new objects."""
        if not resource.namespaced:
            return
        found = self._store.get(NAMESPACES.plural, "", namespace)
        if found is None:
            raise errors.not_found(NAMESPACES.plural, namespace, NAMESPACES.group)
        if not is_terminating(found):
            return
        subject = errors.qualified(resource.plural, resource.group)
        cause = StatusCause(
            reason="NamespaceTerminating",
            message=f"namespace {namespace} is being terminated",
            field="metadata.namespace",
        )
        message = (
            f'{subject} "{name}" is forbidden: unable to create new content in namespace '
            f"{namespace} "
            "because it is being terminated"
        )
        raise errors.forbidden(
            message, errors.about(name, resource.plural, resource.group, causes=(cause,))
        )

    async def mark_deleted(self, name: str, options: DeleteOptions) -> Object:
        """Mark a namespace as deleted and return it. Raises 403, 404 and 409."""
        if name in _IMMORTAL:
            subject = f'namespaces "{name}" is forbidden: this namespace may not be deleted'
            raise errors.failure(
                403, "Forbidden", subject, errors.about(name, NAMESPACES.plural, "")
            )
        marked: list[Object] = []

        def attempt(existing: Version | None) -> Plan:
            if existing is None:
                raise errors.not_found(NAMESPACES.plural, name, NAMESPACES.group)
            obj = existing.read()
            _check(obj["metadata"], options)
            if is_terminating(existing):
                marked.append(obj)
                return Plan()
            meta = obj["metadata"] | {"deletionTimestamp": now_text()}
            obj["metadata"] = ordered_metadata(meta)
            obj["status"] = {"phase": "Terminating"}
            marked.append(obj)
            return Plan() if options.dry_run else Plan(obj)

        stored = await self._store.write(NAMESPACES.plural, "", name, attempt)
        if options.dry_run:
            return marked[0]
        if self._is_empty(name):
            await self.finish(name)
        else:
            self._sweep_later(name)
        return marked[0] if stored is None else stored.read()

    def _sweep_later(self, name: str) -> None:
        task = asyncio.create_task(self._sweep(name), name=f"sweep namespace {name}")
        self._sweeps.add(task)
        task.add_done_callback(self._sweeps.discard)

    async def _sweep(self, name: str) -> None:
        """Empty a deleted namespace; try until it works."""
        while True:
            await asyncio.sleep(SWEEP_AFTER)
            try:
                await self._empty(name)
            except Exception as error:
                self._failed("sweep", error)
            else:
                return

    async def _empty(self, name: str) -> None:
        """Delete the objects of a namespace; those with finalizers are only marked."""
        await self._store.settle(name)  # a large object may still be on its way
        for resource in self.resources:
            for version in self._store.versions(resource.plural, f"{name}/"):
                with contextlib.suppress(NotFound):
                    await delete(self._store, resource, name, version.name, DeleteOptions())
        await self.finish(name)

    def resume(self) -> None:
        """Continue the deletions of namespaces that an earlier run did not finish."""
        for version in self._store.versions(NAMESPACES.plural):
            if is_terminating(version):
                self._sweep_later(version.name)

    async def close(self) -> None:
        for task in self._sweeps:
            task.cancel()
        await asyncio.gather(*self._sweeps, return_exceptions=True)

    async def finish(self, name: str) -> None:
        """Remove a namespace that is marked as deleted and empty."""

        def attempt(existing: Version | None) -> Plan:
            done = existing is not None and is_terminating(existing) and self._is_empty(name)
            return Plan(remove=True) if done else Plan()

        found = self._store.get(NAMESPACES.plural, "", name)
        if found is not None and is_terminating(found) and self._is_empty(name):
            await self._store.write(NAMESPACES.plural, "", name, attempt)

    def _is_empty(self, name: str) -> bool:
        return not any(self._store.holds_any(each.plural, name) for each in self.resources)


def _check(meta: Object, options: DeleteOptions) -> None:
    """Raises 409 as the storage of namespaces does: in other words than for other resources."""
    for name, field, wanted in (
        ("UID", "uid", options.uid),
        ("ResourceVersion", "resourceVersion", options.version),
    ):
        if wanted is not None and wanted != meta[field]:
            why = f"{name} in precondition: {wanted}, {name} in object meta: {meta[field]}"
            raise errors.conflict("namespaces", meta["name"], f"Precondition failed: {why}", "")


def is_terminating(version: Version) -> bool:
    return (
        b'"deletionTimestamp"' in version.body and "deletionTimestamp" in version.read()["metadata"]
    )


def _new(name: str, existing: Version | None) -> Plan:
    if existing is not None:
        return Plan()
    created = now_text()
    meta = {"name": name, "uid": str(uuid.uuid4()), "creationTimestamp": created}
    return Plan(completed({"metadata": meta}))
