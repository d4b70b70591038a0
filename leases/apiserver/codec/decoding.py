"""Make decoded JSON the canonical form of a Go type: known fields in Go's order.

Follows sigs.k8s.io/json. Names are case sensitive. The first type error counts and decoding goes
on; an unreadable time ends it. A repeated name merges into the earlier value. Unknown and repeated
names are collected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from leases.apiserver.codec import schema
from leases.apiserver.codec.go_json import Number, Pairs, exact_json, number_text, type_word
from leases.wire.microtime import normal_microtime, normal_time
from leases.worker_threads import WorkerThreads

# Processing a smaller body takes less time than waking a thread.
LARGE = 64 * 1024
P = ParamSpec("P")
T = TypeVar("T")

BODIES = WorkerThreads("lease-api-bodies", 4)


async def aside(size: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that processes `size` bytes; above LARGE in a thread."""
    if size <= LARGE:
        return function(*args, **kwargs)
    return await BODIES.run(function, *args, **kwargs)


SCHEME = "pkg/api/legacyscheme/scheme.go:30"
_META = {
    "CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions",
    "UpdateOptions", "WatchEvent",
}  # fmt: skip
_UNVERSIONED = {"APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"}
_KINDS = {
    "v1": (
        "Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node "
        "PersistentVolume "
        "PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service "
        "ServiceAccount"
    ),
    "admissionregistration.k8s.io/v1": (
        "MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding "
        "ValidatingWebhookConfiguration"
    ),
    "apps/v1": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "authentication.k8s.io/v1": "SelfSubjectReview TokenRequest TokenReview",
    "authorization.k8s.io/v1": (
        "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview "
        "SubjectAccessReview"
    ),
    "autoscaling/v1": "HorizontalPodAutoscaler",
    "autoscaling/v2": "HorizontalPodAutoscaler",
    "batch/v1": "CronJob Job",
    "certificates.k8s.io/v1": "CertificateSigningRequest",
    "coordination.k8s.io/v1": "Lease",
    "coordination.k8s.io/v1beta1": "Lease LeaseCandidate",
    "coordination.k8s.io/v1alpha2": "LeaseCandidate",
    "discovery.k8s.io/v1": "EndpointSlice",
    "events.k8s.io/v1": "Event",
    "flowcontrol.apiserver.k8s.io/v1": "FlowSchema PriorityLevelConfiguration",
    "networking.k8s.io/v1": "IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR",
    "node.k8s.io/v1": "RuntimeClass",
    "policy/v1": "PodDisruptionBudget",
    "rbac.authorization.k8s.io/v1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "scheduling.k8s.io/v1": "PriorityClass",
    "storage.k8s.io/v1": "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment",
}
_REGISTERED = {
    version: _META
    | {
        kind
        for name in names.split()
        for kind in (name, f"{name}List")
        if not kind.endswith(("ReviewList", "TokenRequestList"))
    }
    for version, names in _KINDS.items()
}


def is_registered(kind: str, version: str) -> bool:
    return kind in _REGISTERED.get(version, ()) or (version == "v1" and kind in _UNVERSIONED)


MAX_STRICT_ERRORS = 100
_ANY_MEMBER = schema.Field(schema.ANYTHING, pointer=True)


class DecodeError(ValueError):
    """The value does not fit the type; the message is Go's."""


class ValuePath:
    """The path of a value: the member or item `name` of `outer`, in the Go struct `struct`.

    Becomes a text on demand: a body has many values and hardly any error.
    """

    __slots__ = ("name", "outer", "struct")

    def __init__(self, struct: str, outer: ValuePath | None = None, name: str | int = "") -> None:
        self.struct = struct
        self.outer = outer
        self.name = name

    @property
    def field(self) -> str:
        """The names that lead here, without indexes: as encoding/json names a field."""
        outer = self.outer.field if self.outer else ""
        return outer if isinstance(self.name, int) else self._joined(outer, self.name)

    @property
    def path(self) -> str:
        """The names and indexes that lead here: as strict decoding names a field."""
        outer = self.outer.path if self.outer else ""
        if isinstance(self.name, int):
            return f"{outer}[{self.name}]"
        return self._joined(outer, self.name)

    @staticmethod
    def _joined(outer: str, name: str) -> str:
        return f"{outer}.{name}" if outer else name

    def wrong(self, word: str, kind: schema.GoType) -> str:
        return (
            f"json: cannot unmarshal {word} into Go struct field {self.struct}.{self.field} "
            f"of type {kind.name}"
        )


class Decoder:
    """Decodes one body. `strict` collects the errors of field validation in their order.

    `known` is the metadata of the stored object, in canonical form: a client that renews a Lease
    sends back the metadata that it read, so that nothing in it needs decoding.
    """

    def __init__(self, known: dict[str, Any] | None = None) -> None:
        self.strict: list[str] = []
        self._known = known
        self._type_error: str | None = None

    def decode(self, value: Any, kind: schema.Structure) -> dict[str, Any]:
        """The object in canonical form. Raises DecodeError."""
        found = self._struct(value, kind, None, ValuePath(kind.short))
        if self._type_error is not None:
            raise DecodeError(self._type_error)
        return found

    def _note(self, what: str) -> None:
        if len(self.strict) < MAX_STRICT_ERRORS and what not in self.strict:
            self.strict.append(what)

    def _wrong(self, place: ValuePath, word: str, kind: schema.GoType) -> None:
        if self._type_error is None:
            self._type_error = place.wrong(word, kind)

    def _struct(
        self,
        value: Any,
        kind: schema.Structure,
        into: dict[str, Any] | None,
        place: ValuePath,
    ) -> dict[str, Any]:
        raw: dict[str, Any] = {} if into is None else into
        known = self._known
        if known is not None and kind is schema.OBJECT_META and not raw and _same(known, value):
            return dict(known)
        if isinstance(value, dict):
            seen: set[str] = set()
            pairs = value.pairs if isinstance(value, Pairs) else value.items()
            texts = kind.texts
            for name, item in pairs:
                if name in texts and item and name not in seen and type(item) is str:
                    seen.add(name)
                    raw[name] = item
                else:
                    self._member(name, item, kind, raw, seen, place)
        elif value is not None:
            self._wrong(place, type_word(value), kind)
        for name in kind.required:
            if name not in raw:
                raw[name] = kind.fields[name].zero
        found = {name: raw[name] for name in kind.fields if name in raw}
        return found | raw if kind.extensible else found

    def _member(
        self,
        name: str,
        item: Any,
        kind: schema.Structure,
        raw: dict[str, Any],
        seen: set[str],
        outer: ValuePath,
    ) -> None:
        place = ValuePath(kind.short, outer, name)
        field = (
            _ANY_MEMBER if kind.extensible and name not in kind.fields else kind.fields.get(name)
        )
        if field is None:
            self._note(f'unknown field "{place.path}"')
            return
        if name in seen:
            self._note(f'duplicate field "{place.path}"')
        seen.add(name)
        if item is None:
            self._null(name, field, raw, place)
            return
        found = self._value(item, field.kind, raw.get(name), place)
        if found or field.pointer or (field.always and found is not None):
            raw[name] = found
        else:
            raw.pop(name, None)

    def _null(self, name: str, field: schema.Field, raw: dict[str, Any], place: ValuePath) -> None:
        if isinstance(field.kind, schema.Structure) and not field.pointer:
            raw.setdefault(name, self._struct(None, field.kind, None, place))
        elif field.pointer or isinstance(
            field.kind, schema.Mapping | schema.SliceType | schema.TimeType
        ):
            raw.pop(name, None)

    def _value(self, item: Any, kind: schema.GoType, before: Any, place: ValuePath) -> Any:
        """The canonical value; None stands for a zero time."""
        if isinstance(kind, schema.Text):
            return item if isinstance(item, str) else self._wrong(place, type_word(item), kind)
        if isinstance(kind, schema.TimeType):
            return self._moment(item, kind, place)
        if isinstance(kind, schema.Integer):
            return self._integer(item, kind, place)
        if isinstance(kind, schema.Structure):
            return self._struct(item, kind, before, place)
        if isinstance(kind, schema.Mapping):
            return self._mapping(item, kind, before, place)
        if isinstance(kind, schema.SliceType):
            return self._listing(item, kind, place)
        if isinstance(kind, schema.Boolean):
            return item if isinstance(item, bool) else self._wrong(place, type_word(item), kind)
        return _plain(item) if kind is schema.ANYTHING else item

    def _integer(self, item: Any, kind: schema.Integer, place: ValuePath) -> int | None:
        if isinstance(item, bool) or not isinstance(item, int | float):
            self._wrong(place, type_word(item), kind)
        elif isinstance(item, Number) or not kind.low <= item <= kind.high:
            self._wrong(place, f"number {number_text(item)}", kind)
        else:
            return int(item)
        return None

    def _moment(self, item: Any, kind: schema.TimeType, place: ValuePath) -> str | None:
        if not isinstance(item, str):
            raise DecodeError(place.wrong(type_word(item), kind))
        try:
            return normal_microtime(item) if kind.micro else normal_time(item)
        except ValueError as error:
            raise DecodeError(str(error)) from None

    def _mapping(
        self, item: Any, kind: schema.Mapping, before: Any, place: ValuePath
    ) -> dict[str, Any] | None:
        if not isinstance(item, dict):
            self._wrong(place, type_word(item), kind)
            return None
        found: dict[str, Any] = dict(before or {})
        seen = set()
        for name, value in item.pairs if isinstance(item, Pairs) else item.items():
            if name in seen:
                self._note(f'duplicate field "{place.path}.{name}"')
            seen.add(name)
            if value is None:
                found[name] = "" if kind.item is schema.TEXT else None
            elif (decoded := self._value(value, kind.item, None, place)) is not None:
                found[name] = decoded
        return dict(sorted(found.items()))

    def _listing(self, item: Any, kind: schema.SliceType, place: ValuePath) -> list[Any] | None:
        if not isinstance(item, list):
            self._wrong(place, type_word(item), kind)
            return None
        found: list[Any] = []
        for index, element in enumerate(item):
            inner = ValuePath(place.struct, place, index)
            if isinstance(kind.item, schema.Structure):
                found.append(self._struct(element, kind.item, None, inner))
            elif element is None:
                found.append("")
            else:
                found.append(self._value(element, kind.item, None, inner) or "")
        return found


def _plain(item: Any) -> Any:
    """JSON without repeated names, nulls, and numbers that only Go's decoder tells apart."""
    if isinstance(item, dict):
        return {name: _plain(member) for name, member in item.items() if member is not None}
    if isinstance(item, list):
        return [_plain(element) for element in item]
    return float(item) if isinstance(item, float) else item


def _same(one: Any, other: Any) -> bool:
    # In Python, 1 == 1.0 == True.
    return one is other or (bool(one == other) and exact_json(one) == exact_json(other))


def repeated_fields(value: Any, path: str, *, known: tuple[str, ...] = ()) -> list[str]:
    """The errors of a strict reading into a map: repeated names.

    With `known`, also names of the outermost object that are none of these.
    """
    found: list[str] = []
    if isinstance(value, dict):
        seen: set[str] = set()
        for name, item in value.pairs if isinstance(value, Pairs) else value.items():
            inner = f"{path}.{name}" if path else name
            if known and name not in known:
                found.append(f'unknown field "{inner}"')
            elif name in seen:
                found.append(f'duplicate field "{inner}"')
            seen.add(name)
            found += repeated_fields(item, inner)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += repeated_fields(item, f"{path}[{index}]")
    return list(dict.fromkeys(found))[:MAX_STRICT_ERRORS]


class UnstructuredDecoder(Decoder):
    """Other messages than Decoder's, the first error ends it, and whole floats are integers.

    It takes the members in the order of the type, and sorts the unknown ones.
    """

    def decode(self, value: Any, kind: schema.Structure) -> dict[str, Any]:
        found = super().decode(value, kind)
        self.strict.sort()
        return found

    def _struct(
        self,
        value: Any,
        kind: schema.Structure,
        into: dict[str, Any] | None,
        place: ValuePath,
    ) -> dict[str, Any]:
        if value is not None and not isinstance(value, dict):
            raise DecodeError(f"cannot restore struct from: {_reflect_kind(value)}")
        if value is not None:
            known = {name: value[name] for name in kind.fields if name in value}
            value = known | value
        return super()._struct(value, kind, into, place)

    def _wrong(self, place: ValuePath, word: str, kind: schema.GoType) -> None:
        del place
        if isinstance(kind, schema.Mapping | schema.SliceType):
            shape = "map" if isinstance(kind, schema.Mapping) else "slice"
            reflected = {"number": "int64", "array": "slice", "object": "map"}.get(word, word)
            raise DecodeError(f"cannot restore {shape} from {reflected}")
        reflected = {schema.Boolean: "bool", schema.Text: "string"}.get(type(kind), kind.name)
        raise DecodeError(f"unrecognized type: {reflected}")

    def _value(self, item: Any, kind: schema.GoType, before: Any, place: ValuePath) -> Any:
        if isinstance(kind, schema.Text) and isinstance(item, int) and not isinstance(item, bool):
            raise DecodeError(f"cannot convert int64 to {kind.name}")
        return super()._value(item, kind, before, place)

    def _integer(self, item: Any, kind: schema.Integer, place: ValuePath) -> int | None:
        if isinstance(item, bool) or not isinstance(item, int | float):
            self._wrong(place, type_word(item), kind)
            return None
        if isinstance(item, float) and not item.is_integer():
            raise DecodeError(f"cannot convert float64 to {kind.name}")
        span = kind.high - kind.low + 1
        wrapped: int = (int(item) - kind.low) % span + kind.low
        return wrapped

    def _moment(self, item: Any, kind: schema.TimeType, place: ValuePath) -> str | None:
        if not isinstance(item, str):
            raise DecodeError(
                f"json: cannot unmarshal {type_word(item)} into Go value of type {kind.name}"
            )
        return super()._moment(item, kind, place)


def _reflect_kind(value: Any) -> str:
    if isinstance(value, float):
        return "float64"
    return {"number": "int64", "array": "slice"}.get(type_word(value), type_word(value))
