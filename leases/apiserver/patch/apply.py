"""Server-side apply: merge applied fields, remove released ones, refuse fields of other managers.

Source: structured-merge-diff's merge/update.go and typed/merge.go; managedfields/internal.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from leases.apiserver.codec import schema
from leases.apiserver.codec.go_json import JsonError, dumps_sorted, loads
from leases.apiserver.errors import failure
from leases.apiserver.patch.apply_body import type_errors
from leases.apiserver.registry.field_sets import (
    Path,
    Paths,
    applied_paths,
    compare,
    elements,
    is_granular,
    item_element,
    kind_of,
    shown,
)
from leases.apiserver.registry.managed_fields import (
    APPLY,
    UPDATE,
    Managed,
    Manager,
    Owned,
    current,
    updated,
    write_managed,
)
from leases.apiserver.registry.validation import ANNOTATIONS_LIMIT
from leases.wire.status import ApiError, StatusCause, StatusDetails
from leases.wire.status_causes import go_quote

BEFORE_FIRST = "before-first-apply"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL = "kubectl"
Object = dict[str, Any]
Conflicts = list[tuple[Manager, Path]]


class Apply:
    """One apply by one manager to one type."""

    def __init__(self, kind: schema.Structure, version: str, manager: str, now: str) -> None:
        self._kind = kind
        self._version = version
        self._manager = Manager(manager, APPLY, "")
        self._now = now

    def merge(self, live: Object | None, config: Object, *, force: bool) -> Object:
        """The live object (canonical; None when there is none) with the configuration applied.

        Not yet canonical again. `config` has kind and apiVersion. Raises 409 with a cause per field
        that another manager owns.
        """
        base = self._kind.zero if live is None else _bare(live)
        managed = self._managed(live)
        fields = {key: item for key, item in config.items() if key not in ("kind", "apiVersion")}
        new, owners, conflicts = self._merged(base, fields, managed)
        if conflicts and not force and self._manager.name == KUBECTL:
            forgiven = self._written_by_kubectl(base)
            conflicts = [each for each in conflicts if each[1] not in forgiven]
        if conflicts and not force:
            raise apply_conflict(conflicts, self._version)
        if new != base:
            owners[self._manager] = Owned(owners[self._manager].paths, self._now)
        owners = {manager: owned for manager, owned in owners.items() if owned.paths}
        if self._manager.name == KUBECTL:
            update_last_applied(new, config)
        new["metadata"]["managedFields"] = write_managed(owners, self._version)
        return new

    def _managed(self, live: Object | None) -> Managed:
        """The present owners. Fields of an untracked object belong to `before-first-apply`."""
        if live is None:
            return {}
        managed = current(live, {"metadata": {}})
        if managed:
            return managed
        before = Manager(BEFORE_FIRST, UPDATE, self._version)
        return updated({}, None, _bare(live), before, self._kind, self._now)

    def _merged(
        self, base: Object, config: Object, managed: Managed
    ) -> tuple[Object, Managed, Conflicts]:
        """The new object, its owners once the others lost what changed, and what they lost."""
        owned = applied_paths(config, self._kind)
        before = managed.get(self._manager)
        new = _merge(deepcopy(base), config, self._kind)
        owners = dict(managed)
        owners[self._manager] = Owned(owned, before.time if before else None)
        if before is not None:
            kept = set().union(*(other.paths for other in owners.values()))
            _prune(new, _Branch(before.paths - kept), self._kind)
        difference = compare(base, new, self._kind)
        taken = difference.modified | difference.added
        conflicts: Conflicts = []
        for other, theirs in managed.items():
            if other == self._manager:
                continue
            lost = theirs.paths & taken
            conflicts += [(other, path) for path in sorted(lost)]
            owners[other] = Owned(theirs.paths - lost - difference.removed, theirs.time)
        return new, owners, conflicts

    def _written_by_kubectl(self, base: Object) -> Paths:
        """The fields that kubectl's client-side apply wrote, unchanged since.

        Source: managedfields/internal/lastappliedmanager.go.
        """
        text = (base["metadata"].get("annotations") or {}).get(LAST_APPLIED, "")
        try:
            last = loads(text.encode())
        except JsonError:
            return set()
        known = isinstance(last, dict) and last.get("apiVersion") == self._version
        if not known or not last.get("kind") or type_errors(last, self._kind):
            return set()
        last = {key: item for key, item in last.items() if key not in ("kind", "apiVersion")}
        changes = compare(base, last, self._kind)
        different = changes.modified | changes.added | changes.removed
        return applied_paths(last, self._kind) - different


def update_last_applied(new: Object, config: Object) -> None:
    """Keep the annotation of kubectl's client-side apply up to date.

    Source: managedfields/internal/lastappliedupdater.go.
    """
    annotations = new["metadata"].get("annotations")
    if not annotations or not annotations.get(LAST_APPLIED):
        return
    config = deepcopy(config)
    given = (config.get("metadata") or {}).get("annotations", {})
    if isinstance(given, dict):
        given.pop(LAST_APPLIED, None)
    else:
        del config["metadata"]["annotations"]
    text = f"{dumps_sorted(config).decode()}\n"
    new["metadata"]["annotations"] = annotations | {LAST_APPLIED: text}
    size = sum(len(f"{key}{value}".encode()) for key, value in annotations.items())
    if size - len(annotations[LAST_APPLIED].encode()) + len(text.encode()) > ANNOTATIONS_LIMIT:
        del new["metadata"]["annotations"][LAST_APPLIED]


def _bare(live: Object) -> Object:
    meta = {name: value for name, value in live["metadata"].items() if name != "managedFields"}
    return live | {"metadata": meta}


def _merge(base: Any, config: Any, kind: schema.GoType) -> Any:
    if not is_granular(kind):
        return config
    if isinstance(kind, schema.SliceType):
        return _merge_list(base or [], config or [], kind)
    if not base and not config:
        return config
    result = dict(base or {})
    for element, item in elements(config or {}, kind).items():
        name = element[2:]
        inner = kind_of(kind, element)
        result[name] = _merge(result.get(name), item, inner) if is_granular(inner) else item
    return result


def _merge_list(base: list[Any], config: list[Any], kind: schema.SliceType) -> list[Any]:
    """Items of both: those of the configuration in its order, the others in their places."""
    wanted: dict[str, int] = {}
    for place, item in enumerate(config):
        wanted.setdefault(item_element(item, kind), place)
    result: list[Any] = []
    at = 0
    for item in base:
        place = wanted.get(item_element(item, kind), -1)
        if place < 0:
            result.append(item)
        elif place >= at:
            result += config[at : place + 1]
            at = place + 1
    return result + config[at:]


class _Branch:
    """A trie of paths: whether one ends here, and the branches."""

    def __init__(self, paths: Paths) -> None:
        self.ends = False
        self.branches: dict[str, _Branch] = {}
        for path in paths:
            at = self
            for element in path:
                at = at.branches.setdefault(element, _Branch(set()))
            at.ends = True


def _prune(value: Any, gone: _Branch, kind: schema.GoType) -> None:
    """Remove fields without an owner; remove containers only when they are empty."""
    found = elements(value, kind)
    doomed = set()
    for element, branch in gone.branches.items():
        if element not in found:
            continue
        inner = kind_of(kind, element)
        _prune(found[element], branch, inner)
        if branch.ends and not (is_granular(inner) and found[element]):
            doomed.add(element)
    if isinstance(value, dict):
        for element in doomed:
            del value[element[2:]]
    elif doomed and isinstance(kind, schema.SliceType):
        value[:] = [item for item in value if item_element(item, kind) not in doomed]


def apply_conflict(conflicts: Conflicts, version: str) -> ApiError:
    """409 naming the other managers."""
    causes = tuple(
        StatusCause(
            reason="FieldManagerConflict",
            message=f"conflict with {_named(manager, version)}",
            field=shown(path),
        )
        for manager, path in conflicts
    )
    if len(conflicts) == 1:
        message = f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}"
    else:
        lines = []
        for manager in sorted({manager for manager, _ in conflicts}):
            lines.append(f"conflicts with {_named(manager, version)}:")
            lines += [f"- {shown(path)}" for other, path in conflicts if other == manager]
        message = f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
    return failure(409, "Conflict", message, StatusDetails(causes=causes))


def _named(manager: Manager, version: str) -> str:
    using = f" using {manager.version or version}" if manager.operation == UPDATE else ""
    return f"{go_quote(manager.name)}{using}"
