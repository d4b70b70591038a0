"""Server-side apply: merge applied fields, remove released ones, refuse fields of other managers.

Source: apiserver/pkg/endpoints/handlers/patch.go (applyPatcher), apimachinery's
managedfields/internal, structured-merge-diff's typed/{validate,helpers}.go.

Source: structured-merge-diff's merge/update.go and typed/merge.go; managedfields/internal.
"""

from copy import deepcopy
from typing import Any

import msgspec

from leases.apiserver.codec import schema
from leases.apiserver.codec.go_json import JsonError, dumps_sorted, loads, type_word
from leases.apiserver.codec.go_values import go_text, go_type, json_go_syntax
from leases.apiserver.codec.yaml_input import YamlError, load_yaml
from leases.apiserver.errors import bad_request, failure, internal
from leases.apiserver.registry.managed_fields import (
    APPLY,
    UPDATE,
    Managed,
    Manager,
    Owned,
    Path,
    Paths,
    applied_paths,
    compare,
    current,
    elements,
    is_granular,
    item_element,
    kind_of,
    shown,
    updated,
    write_managed,
)
from leases.apiserver.registry.validation import ANNOTATIONS_LIMIT
from leases.apiserver.resources import Resource
from leases.wire.status import ApiError, StatusCause, StatusDetails, go_quote

Object = dict[str, Any]


class Configuration(msgspec.Struct):
    """What a client applies. `duplicates` has a message for every repeated key."""

    value: Object
    duplicates: list[str]

    @property
    def fields(self) -> Object:
        """The configuration without kind and apiVersion."""
        return {key: item for key, item in self.value.items() if key not in ("kind", "apiVersion")}

    def shown(self, resource: Resource) -> str:
        """How messages name it."""
        meta = self.value.get("metadata")
        named = meta if isinstance(meta, dict) else {}
        place = "/".join(_text(named.get(name)) for name in ("namespace", "name"))
        return f"({place}; {resource.api_version}, Kind={resource.kind})"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def read_applied(data: bytes, resource: Resource) -> Configuration:
    """The configuration, checked against the type. Raises 400 and 500."""
    try:
        loaded = load_yaml(data)
    except YamlError as error:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from None
    value = {} if loaded.value is None else loaded.value
    if not isinstance(value, dict):
        raise bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot "
            f"unmarshal {type_word(value)} into Go value of type map[string]interface {{}}"
        )
    found = Configuration(_integral(value), loaded.duplicates)
    _check_type(found.value, resource)
    if wrong := type_errors(found.value, resource.schema):
        listed = "\n".join(["errors:", *(f"  {text}" for text in wrong)])
        why = wrong[0] if len(wrong) == 1 else listed
        raise internal(f"failed to create typed patch object {found.shown(resource)}: {why}")
    return found


def _check_type(value: Object, resource: Resource) -> None:
    version, kind = _text(value.get("apiVersion")), _text(value.get("kind"))
    if (version, kind) != (resource.api_version, resource.kind):
        group, slash, short = version.partition("/")
        if "/" in short:
            group, short, kind = "", "", ""
        elif not slash:
            group, short = "", group
        raise bad_request(f"invalid object type: {group}/{short}, Kind={kind}")
    meta = value.get("metadata")
    entries = meta.get("managedFields") if isinstance(meta, dict) else None
    if entries is not None and not type_errors(entries, schema.MANAGED_FIELDS):
        raise bad_request("metadata.managedFields must be nil")


def type_errors(value: Any, kind: schema.GoType, path: str = "") -> list[str]:
    """What does not fit, each with its path."""
    if value is None or isinstance(kind, schema.Raw):
        return []
    if isinstance(kind, schema.Structure | schema.Mapping):
        if not isinstance(value, dict):
            return [f"{path}: expected map, got &{{{go_text(value)}}}"]
        return _map_errors(value, kind, path)
    if isinstance(kind, schema.SliceType):
        if not isinstance(value, list):
            return [f"{path}: expected list, got &{{{go_text(value)}}}"]
        return _list_errors(value, kind, path)
    wrong = _scalar_error(value, kind)
    return [f"{path}: expected {wrong}"] if wrong else []


def _scalar_error(value: Any, kind: schema.GoType) -> str:
    if isinstance(kind, schema.TimeType):
        return f"any scalar, got &{{{go_text(value)}}}" if isinstance(value, dict | list) else ""
    if isinstance(kind, schema.Boolean):
        return "" if isinstance(value, bool) else f"boolean, got &{{{go_text(value)}}}"
    if isinstance(kind, schema.Integer):
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        return "" if fits else f"numeric (int or float), got {go_type(value)}"
    if isinstance(value, str):
        return ""
    return f"string, got &value.valueUnstructured{{Value:{json_go_syntax(value)}}}"


def _map_errors(value: Object, kind: schema.Structure | schema.Mapping, path: str) -> list[str]:
    wrong: list[str] = []
    for name, item in value.items():
        if isinstance(kind, schema.Mapping):
            wrong += type_errors(item, kind.item, f"{path}.{name}")
        elif name in kind.fields:
            wrong += type_errors(item, kind.fields[name].kind, f"{path}.{name}")
        elif not kind.extensible:
            return [*wrong, f"{path}.{name}: field not declared in schema"]
    return wrong


def _list_errors(items: list[Any], kind: schema.SliceType, path: str) -> list[str]:
    """Stops at the first item that has no identity in its list."""
    wrong: list[str] = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        place = f"[{index}]"
        if kind.key is not None:
            if why := _no_identity(item, kind.key):
                return [*wrong, f"{path}: element {index}: {why}"]
            element = item_element(item, kind)
            place = shown((element,))
            if element in seen:
                wrong.append(f"{path}: duplicate entries for key {place}")
            seen.add(element)
        wrong += type_errors(item, kind.item, f"{path}{place}")
    return wrong


def _no_identity(item: Any, key: str) -> str:
    """Why an item can be told apart from no other; a key that is left out has the default ""."""
    if key:
        before = "associative list with keys may not have"
        if item is None:
            return f"{before} a null element"
        return "" if isinstance(item, dict) else f"{before} non-map elements"
    if isinstance(item, dict):
        return "associative list without keys has an element that's a map type"
    if isinstance(item, list):
        return "not supported: associative list with lists as elements"
    null = "associative list without keys has an element that's an explicit null"
    return null if item is None else ""


def _integral(value: Any) -> Any:
    """Numbers as Go reads them after YAML became JSON: whole ones of 64 bits are integers."""
    if isinstance(value, dict):
        return {key: _integral(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_integral(item) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    whole = isinstance(value, int) or float(value).is_integer()
    return int(value) if whole and -(2**63) <= value < 2**63 else float(value)


BEFORE_FIRST = "before-first-apply"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL = "kubectl"

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
