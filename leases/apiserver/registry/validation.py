"""Validate Leases and LeaseCandidates before they are stored.

Source: apimachinery/pkg/api/validation/objectmeta.go and pkg/apis/coordination/validation.

Errors come in the order, and as often, as in the registry's BeforeCreate and BeforeUpdate: common
checks of the metadata, then the update rules, then the resource's own.
"""

from typing import Any

from leases.apiserver.codec.go_json import dumps
from leases.apiserver.errors import not_allowed, not_supported, required
from leases.apiserver.resources import CANDIDATES, LEASES, NameErrors, Resource
from leases.domain.election import Version, parse_version, precedence
from leases.wire.name_rules import label_value_errors, qualified_name_errors
from leases.wire.status import StatusCause, bad_value, go_quote

OLDEST_EMULATION = "OldestEmulationVersion"
_ZERO: Version = (0, 0, 0, ())


def strategy_errors(strategy: str) -> list[StatusCause]:
    """A strategy is Kubernetes' own or a qualified name with a domain.

    kube-apiserver doubles the path, too.
    """
    path = "spec.strategy.strategy"
    if "/" not in strategy:
        if strategy == OLDEST_EMULATION:
            return []
        return [not_supported(path, go_quote(strategy), [OLDEST_EMULATION])]
    return [bad_value(path, go_quote(strategy), text) for text in qualified_name_errors(strategy)]


def candidate_errors(spec: dict[str, Any], old: dict[str, Any] | None) -> list[StatusCause]:
    wrong: list[StatusCause] = []
    lease = spec["leaseName"]
    if not lease:
        wrong.append(required("spec.leaseName"))
    binary_text, emulation_text = spec["binaryVersion"], spec.get("emulationVersion", "")
    strategy = spec.get("strategy", "")
    binary = parse_version(binary_text)
    emulation = parse_version(emulation_text)
    not_semver = "must be a valid semantic version"
    if emulation_text and emulation is None:
        wrong.append(bad_value("spec.emulationVersion", go_quote(emulation_text), not_semver))
    if not binary_text:
        wrong.append(required("spec.binaryVersion"))
    elif binary is None:
        wrong.append(bad_value("spec.binaryVersion", go_quote(binary_text), not_semver))
    wrong += _comparison(binary_text, binary, emulation)
    if not strategy:
        wrong.append(required("spec.strategy"))
    else:
        wrong += strategy_errors(strategy)
    if strategy == OLDEST_EMULATION and (emulation is None or emulation[:3] == (0, 0, 0)):
        detail = f"must be specified when `strategy` is '{OLDEST_EMULATION}'"
        wrong.append(required("spec.emulationVersion", detail))
    if old is not None and old["leaseName"] != lease:
        wrong.append(bad_value("spec.leaseName", go_quote(lease), "field is immutable"))
    return wrong


def _comparison(text: str, binary: Version | None, emulation: Version | None) -> list[StatusCause]:
    if not text or emulation is None:
        return []
    if precedence(binary or _ZERO) >= precedence(emulation):
        return []
    detail = "must be greater than or equal to `emulationVersion`"
    return [bad_value("spec.binaryVersion", go_quote(text), detail)]


Object = dict[str, Any]
_UNCHECKED = {"managedFields": None}
ANNOTATIONS_LIMIT = 256 * 1024
_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"
_IMMUTABLE = (
    "name", "namespace", "uid", "creationTimestamp", "deletionTimestamp",
    "deletionGracePeriodSeconds",
)  # fmt: skip


def create_errors(resource: Resource, obj: Object, *, coordinated: bool) -> list[StatusCause]:
    """All errors of a new object."""
    meta, names = obj["metadata"], resource.name_errors
    common = _common_errors(meta)
    wrong = _metadata_errors(meta, names, common, namespaced=resource.namespaced)
    return wrong + _spec_errors(resource, obj, None, coordinated=coordinated)


def update_errors(
    resource: Resource, obj: Object, old: Object, *, coordinated: bool
) -> list[StatusCause]:
    """All errors of an update. Metadata that did not change was valid when it was stored."""
    meta, before = obj["metadata"], old["metadata"]
    wrong: list[StatusCause] = []
    if meta | _UNCHECKED != before | _UNCHECKED:
        common = _common_errors(meta)
        wrong = _metadata_errors(meta, path_segment_errors, common, namespaced=resource.namespaced)
        changed = _metadata_update_errors(meta, before) + common
        wrong += changed + changed
    return wrong + _spec_errors(resource, obj, old, coordinated=coordinated)


def path_segment_errors(name: str, *, prefix: bool = False) -> list[str]:
    if not prefix and name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{char}'" for char in "/%" if char in name]


def _metadata_errors(
    meta: Object, name_errors: NameErrors, common: list[StatusCause], *, namespaced: bool
) -> list[StatusCause]:
    wrong: list[StatusCause] = []
    if base := meta.get("generateName", ""):
        wrong += _bad("metadata.generateName", base, name_errors(base, prefix=True))
    if name := meta.get("name", ""):
        wrong += _bad("metadata.name", name, name_errors(name))
    else:
        wrong.append(required("metadata.name", "name or generateName is required"))
    if not namespaced and meta.get("namespace"):
        wrong.append(not_allowed("metadata.namespace", "not allowed on this type"))
    if (generation := meta.get("generation", 0)) < 0:
        detail = "must be greater than or equal to 0"
        wrong.append(bad_value("metadata.generation", str(generation), detail))
    wrong += common
    return wrong + _finalizer_errors(meta.get("finalizers") or [])


def _common_errors(meta: Object) -> list[StatusCause]:
    """Errors in labels, annotations and owners: once at creation, three times at an update."""
    return (
        _label_errors(meta.get("labels") or {})
        + _annotation_errors(meta.get("annotations") or {})
        + _owner_errors(meta.get("ownerReferences") or [])
    )


def _label_errors(labels: dict[str, str]) -> list[StatusCause]:
    wrong: list[StatusCause] = []
    for key, value in labels.items():
        wrong += _bad("metadata.labels", key, qualified_name_errors(key))
        wrong += _bad("metadata.labels", value, label_value_errors(value))
    return wrong


def _bad(field: str, value: str, texts: list[str]) -> list[StatusCause]:
    return [bad_value(field, go_quote(value), text) for text in texts]


def _annotation_errors(annotations: dict[str, str]) -> list[StatusCause]:
    wrong: list[StatusCause] = []
    for key in annotations:
        wrong += _bad("metadata.annotations", key, qualified_name_errors(key.lower()))
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > ANNOTATIONS_LIMIT:
        message = f"Too long: may not be more than {ANNOTATIONS_LIMIT} bytes"
        wrong.append(
            StatusCause(reason="FieldValueTooLong", message=message, field="metadata.annotations")
        )
    return wrong


def _owner_errors(owners: list[Object]) -> list[StatusCause]:
    path = "metadata.ownerReferences"
    wrong: list[StatusCause] = []
    controller: Object | None = None
    for owner in owners:
        group, version = _group_version(owner["apiVersion"])
        if not version:
            text = go_quote(owner["apiVersion"])
            wrong.append(bad_value(f"{path}.apiVersion", text, "version must not be empty"))
        missing = [name for name in ("kind", "name", "uid") if not owner[name]]
        wrong += [bad_value(f"{path}.{name}", '""', "must not be empty") for name in missing]
        if (group, version, owner["kind"]) == ("", "v1", "Event"):
            shown = dumps(owner).decode()
            detail = "/v1, Kind=Event is disallowed from being an owner"
            wrong.append(bad_value(path, shown, detail))
        if owner.get("controller"):
            if controller is not None:
                both = (
                    f"{controller['kind']}/{controller['name']} and {owner['kind']}/{owner['name']}"
                )
                detail = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {both}'
                )
                wrong.append(bad_value(path, dumps(owners).decode(), detail))
            else:
                controller = owner
    return wrong


def _group_version(text: str) -> tuple[str, str]:
    """Group and version of an apiVersion; both empty when it cannot be read."""
    parts = text.split("/")
    if len(parts) > 2:
        return "", ""
    return (parts[0], parts[1]) if len(parts) == 2 else ("", parts[0])


def _finalizer_errors(finalizers: list[str]) -> list[StatusCause]:
    wrong: list[StatusCause] = []
    for name in finalizers:
        wrong += _bad("metadata.finalizers", name, qualified_name_errors(name))
    if _ORPHAN in finalizers and _FOREGROUND in finalizers:
        detail = f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set"
        wrong.append(bad_value("metadata.finalizers", dumps(finalizers).decode(), detail))
    return wrong


def _metadata_update_errors(meta: Object, old: Object) -> list[StatusCause]:
    wrong: list[StatusCause] = []
    if "deletionTimestamp" in old:
        before = old.get("finalizers") or []
        added = sorted(set(meta.get("finalizers") or []) - set(before))
        if added:
            listed = ", ".join(go_quote(name) for name in added)
            detail = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{listed}}}"
            )
            wrong.append(not_allowed("metadata.finalizers", detail))
    return wrong + [
        bad_value(f"metadata.{name}", _shown(meta.get(name)), "field is immutable")
        for name in _IMMUTABLE
        if meta.get(name) != old.get(name)
    ]


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    return go_quote(value) if isinstance(value, str) else str(value)


def _spec_errors(
    resource: Resource, obj: Object, old: Object | None, *, coordinated: bool
) -> list[StatusCause]:
    if resource.errors is not None:
        return resource.errors(obj, old)
    if resource is LEASES:
        return _lease_spec_errors(obj["spec"], coordinated=coordinated)
    if resource is CANDIDATES:
        return candidate_errors(obj["spec"], None if old is None else old["spec"])
    return []


def _lease_spec_errors(spec: Object, *, coordinated: bool) -> list[StatusCause]:
    wrong: list[StatusCause] = []
    if (seconds := spec.get("leaseDurationSeconds", 1)) <= 0:
        path = "spec.leaseDurationSeconds"
        wrong.append(bad_value(path, str(seconds), "must be greater than 0"))
    if (transitions := spec.get("leaseTransitions", 0)) < 0:
        path = "spec.leaseTransitions"
        wrong.append(bad_value(path, str(transitions), "must be greater than or equal to 0"))
    if coordinated:
        if (strategy := spec.get("strategy")) is not None:
            wrong += strategy_errors(strategy)
        if spec.get("preferredHolder") and not strategy:
            detail = "may only be specified if `strategy` is defined"
            wrong.append(not_allowed("spec.preferredHolder", detail))
    return wrong
