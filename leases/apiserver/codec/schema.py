"""The Go types that bodies are decoded into, as data: field order, pointers, omitempty, lists.

Source: k8s.io/api/coordination/v1 and v1beta1, core/v1 Namespace, apimachinery's meta/v1 types.go.

Node, Pod and Service name only the lists that patches merge by a key; what else a client sends in
`spec` and `status` is kept as it comes. Source: k8s.io/api/core/v1 and events/v1 types.go.

Source: k8s.io/api/authorization/v1/types.go and k8s.io/api/authentication/v1/types.go.
"""

from typing import Any


class GoType:
    """A type; `name` is what Go calls it in error messages."""

    def __init__(self, name: str) -> None:
        self.name = name


class Text(GoType):
    pass


class Boolean(GoType):
    pass


class Integer(GoType):
    def __init__(self, name: str, bits: int) -> None:
        super().__init__(name)
        self.low, self.high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


class TimeType(GoType):
    """metav1.MicroTime or metav1.Time: a text on the wire."""

    def __init__(self, *, micro: bool) -> None:
        super().__init__("string")
        self.micro = micro


class Raw(GoType):
    """JSON that is kept as it is: FieldsV1, and members that an extensible struct does not name."""


class Mapping(GoType):
    """A map from texts to `item`, by default map[string]string."""

    def __init__(self, name: str, item: GoType | None = None) -> None:
        super().__init__(name)
        self.item = item or TEXT


class SliceType(GoType):
    """A slice. `key` names the field that tells items apart when lists are merged; "" for a set."""

    def __init__(self, name: str, item: GoType, *, key: str | None = None) -> None:
        super().__init__(name)
        self.item = item
        self.key = key


class Field:
    """A member of a struct. `pointer`: a zero value is kept; `always`: written even when zero."""

    def __init__(self, kind: GoType, *, pointer: bool = False, always: bool = False) -> None:
        self.kind = kind
        self.pointer = pointer
        self.always = always

    @property
    def zero(self) -> Any:
        if isinstance(self.kind, Structure):
            return self.kind.zero
        return {Text: "", Boolean: False}.get(type(self.kind))


class Structure(GoType):
    """A struct: fields in the order in which Go writes them.

    `atomic` ones are merged as a whole. `extensible` ones keep members that `fields` does not name.
    `message` names it in protobuf.py.
    """

    def __init__(
        self,
        name: str,
        fields: dict[str, Field],
        *,
        version: str = "v1",
        atomic: bool = False,
        extensible: bool = False,
        message: str = "",
    ) -> None:
        super().__init__(f"{version}.{name}")
        self.short = name
        self.message = message or name
        self.fields = fields
        self.atomic = atomic
        self.extensible = extensible
        self.required = tuple(key for key, field in fields.items() if field.always)
        self.texts = frozenset(key for key, field in fields.items() if type(field.kind) is Text)

    @property
    def zero(self) -> dict[str, Any]:
        """The struct as Go writes it when nothing is set."""
        return {name: self.fields[name].zero for name in self.required}


TEXT = Text("string")
BOOL = Boolean("bool")
INT32 = Integer("int32", 32)
INT64 = Integer("int64", 64)
MICRO_TIME = TimeType(micro=True)
TIME = TimeType(micro=False)
LABELS = Mapping("map[string]string")
ANYTHING = Raw("interface {}")
_UID = Text("types.UID")
_STRATEGY = Text("v1.CoordinatedLeaseStrategy")

OWNER_REFERENCE = Structure(
    "OwnerReference",
    {
        "apiVersion": Field(TEXT, always=True),
        "kind": Field(TEXT, always=True),
        "name": Field(TEXT, always=True),
        "uid": Field(_UID, always=True),
        "controller": Field(BOOL, pointer=True),
        "blockOwnerDeletion": Field(BOOL, pointer=True),
    },
    atomic=True,
)
MANAGED_FIELDS_ENTRY = Structure(
    "ManagedFieldsEntry",
    {
        "manager": Field(TEXT),
        "operation": Field(Text("v1.ManagedFieldsOperationType")),
        "apiVersion": Field(TEXT),
        "time": Field(TIME, pointer=True),
        "fieldsType": Field(TEXT),
        "fieldsV1": Field(Raw("v1.FieldsV1"), pointer=True),
        "subresource": Field(TEXT),
    },
)
MANAGED_FIELDS = SliceType("[]v1.ManagedFieldsEntry", MANAGED_FIELDS_ENTRY)
OBJECT_META = Structure(
    "ObjectMeta",
    {
        "name": Field(TEXT),
        "generateName": Field(TEXT),
        "namespace": Field(TEXT),
        "selfLink": Field(TEXT),
        "uid": Field(_UID),
        "resourceVersion": Field(TEXT),
        "generation": Field(INT64),
        "creationTimestamp": Field(TIME),
        "deletionTimestamp": Field(TIME, pointer=True),
        "deletionGracePeriodSeconds": Field(INT64, pointer=True),
        "labels": Field(LABELS),
        "annotations": Field(LABELS),
        "ownerReferences": Field(SliceType("[]v1.OwnerReference", OWNER_REFERENCE, key="uid")),
        "finalizers": Field(SliceType("[]string", TEXT, key="")),
        # An empty list is no missing one: it resets managedFields.
        "managedFields": Field(MANAGED_FIELDS, pointer=True),
    },
)
LEASE_SPEC = Structure(
    "LeaseSpec",
    {
        "holderIdentity": Field(TEXT, pointer=True),
        "leaseDurationSeconds": Field(INT32, pointer=True),
        "acquireTime": Field(MICRO_TIME, pointer=True),
        "renewTime": Field(MICRO_TIME, pointer=True),
        "leaseTransitions": Field(INT32, pointer=True),
        "strategy": Field(_STRATEGY, pointer=True),
        "preferredHolder": Field(TEXT, pointer=True),
    },
)
CANDIDATE_SPEC = Structure(
    "LeaseCandidateSpec",
    {
        "leaseName": Field(TEXT, always=True),
        "pingTime": Field(MICRO_TIME, pointer=True),
        "renewTime": Field(MICRO_TIME, pointer=True),
        "binaryVersion": Field(TEXT, always=True),
        "emulationVersion": Field(TEXT),
        "strategy": Field(_STRATEGY),
    },
    version="v1beta1",
)
NAMESPACE_SPEC = Structure(
    "NamespaceSpec", {"finalizers": Field(SliceType("[]v1.FinalizerName", TEXT))}
)
NAMESPACE_STATUS = Structure("NamespaceStatus", {"phase": Field(Text("v1.NamespacePhase"))})


# An object in a scheme's internal version: its metadata has no name in Go's JSON.
INTERNAL_OBJECT = Structure(
    "ObjectMeta", {"kind": Field(TEXT), "apiVersion": Field(TEXT)} | OBJECT_META.fields
)


def top_level(name: str, fields: dict[str, Field], message: str = "") -> Structure:
    """The type of an object: these fields after its kind and metadata."""
    meta = {
        "kind": Field(TEXT),
        "apiVersion": Field(TEXT),
        "metadata": Field(OBJECT_META, always=True),
    }
    return Structure(name, meta | fields, message=message)


def with_spec(name: str, **parts: Structure) -> Structure:
    """The type of an object with `spec` and, if given, `status`."""
    return top_level(name, {key: Field(part, always=True) for key, part in parts.items()})


LEASE = with_spec("Lease", spec=LEASE_SPEC)
LEASE_CANDIDATE = with_spec("LeaseCandidate", spec=CANDIDATE_SPEC)
NAMESPACE = with_spec("Namespace", spec=NAMESPACE_SPEC, status=NAMESPACE_STATUS)
DELETE_OPTIONS = Structure(
    "DeleteOptions",
    {
        "kind": Field(TEXT),
        "apiVersion": Field(TEXT),
        "gracePeriodSeconds": Field(INT64, pointer=True),
        "preconditions": Field(
            Structure(
                "Preconditions",
                {
                    "uid": Field(_UID, pointer=True),
                    "resourceVersion": Field(TEXT, pointer=True),
                },
            ),
            pointer=True,
        ),
        "orphanDependents": Field(BOOL, pointer=True),
        "propagationPolicy": Field(Text("v1.DeletionPropagation"), pointer=True),
        "dryRun": Field(SliceType("[]string", TEXT)),
        "ignoreStoreReadErrorWithClusterBreakingPotential": Field(BOOL, pointer=True),
    },
)


def _open(name: str, **keys: str) -> Structure:
    """A struct with lists (field=key) whose items are structs of their own."""
    return Structure(
        name, {field: _merged(field, key) for field, key in keys.items()}, extensible=True
    )


def _merged(field: str, key: str) -> Field:
    item = _CONTAINER if field.lower().endswith("containers") else _open(field)
    return Field(SliceType(f"[]v1.{field}", item, key=key), pointer=True)


_CONTAINER = _open(
    "Container", env="name", ports="containerPort", volumeMounts="mountPath",
    volumeDevices="devicePath",
)  # fmt: skip
NODE = with_spec(
    "Node",
    spec=_open("NodeSpec"),
    status=_open("NodeStatus", conditions="type", addresses="type"),
)
POD = with_spec(
    "Pod",
    spec=_open(
        "PodSpec", volumes="name", initContainers="name", containers="name",
        ephemeralContainers="name", imagePullSecrets="name", hostAliases="ip",
        topologySpreadConstraints="topologyKey", schedulingGates="name", resourceClaims="name",
    ),
    status=_open("PodStatus", conditions="type", hostIPs="ip", podIPs="ip"),
)  # fmt: skip
SERVICE = with_spec(
    "Service", spec=_open("ServiceSpec", ports="port"), status=_open("ServiceStatus")
)

_OBJECT_REFERENCE = Structure(
    "ObjectReference",
    {
        "kind": Field(TEXT),
        "namespace": Field(TEXT),
        "name": Field(TEXT),
        "uid": Field(Text("types.UID")),
        "apiVersion": Field(TEXT),
        "resourceVersion": Field(TEXT),
        "fieldPath": Field(TEXT),
    },
    atomic=True,
)
_EVENT_SOURCE = Structure("EventSource", {"component": Field(TEXT), "host": Field(TEXT)})
_CORE_SERIES = Structure(
    "EventSeries", {"count": Field(INT32), "lastObservedTime": Field(MICRO_TIME, always=True)}
)
_SERIES = Structure(
    "EventSeries",
    {"count": Field(INT32, always=True), "lastObservedTime": Field(MICRO_TIME, always=True)},
)
CORE_EVENT = top_level(
    "Event",
    {
        "involvedObject": Field(_OBJECT_REFERENCE, always=True),
        "reason": Field(TEXT),
        "message": Field(TEXT),
        "source": Field(_EVENT_SOURCE, always=True),
        "firstTimestamp": Field(TIME, always=True),
        "lastTimestamp": Field(TIME, always=True),
        "count": Field(INT32),
        "type": Field(TEXT),
        "eventTime": Field(MICRO_TIME, always=True),
        "series": Field(_CORE_SERIES, pointer=True),
        "action": Field(TEXT),
        "related": Field(_OBJECT_REFERENCE, pointer=True),
        "reportingComponent": Field(TEXT, always=True),
        "reportingInstance": Field(TEXT, always=True),
    },
)
EVENT = top_level(
    "Event",
    {
        "eventTime": Field(MICRO_TIME, always=True),
        "series": Field(_SERIES, pointer=True),
        "reportingController": Field(TEXT),
        "reportingInstance": Field(TEXT),
        "action": Field(TEXT),
        "reason": Field(TEXT),
        "regarding": Field(_OBJECT_REFERENCE, always=True),
        "related": Field(_OBJECT_REFERENCE, pointer=True),
        "note": Field(TEXT),
        "type": Field(TEXT),
        "deprecatedSource": Field(_EVENT_SOURCE, always=True),
        "deprecatedFirstTimestamp": Field(TIME, always=True),
        "deprecatedLastTimestamp": Field(TIME, always=True),
        "deprecatedCount": Field(INT32),
    },
    message="events.Event",
)


_TEXTS = SliceType("[]string", TEXT)
_EXTRA = Mapping("map[string]v1.ExtraValue", SliceType("v1.ExtraValue", TEXT))


def _fields(**kinds: GoType) -> dict[str, Field]:
    return {name: Field(kind) for name, kind in kinds.items()}


def _selector(kind: str) -> Field:
    """A FieldSelectorAttributes or LabelSelectorAttributes."""
    requirement = Structure(
        f"{kind}SelectorRequirement",
        {
            "key": Field(TEXT, always=True),
            "operator": Field(Text(f"v1.{kind}SelectorOperator"), always=True),
            "values": Field(_TEXTS),
        },
    )
    requirements = SliceType(f"[]v1.{kind}SelectorRequirement", requirement)
    name = f"{kind}SelectorAttributes"
    return Field(
        Structure(name, _fields(rawSelector=TEXT, requirements=requirements)), pointer=True
    )


_ATTRIBUTES = {
    "resourceAttributes": Field(
        Structure(
            "ResourceAttributes",
            _fields(
                namespace=TEXT, verb=TEXT, group=TEXT, version=TEXT, resource=TEXT,
                subresource=TEXT, name=TEXT,
            )
            | {"fieldSelector": _selector("Field"), "labelSelector": _selector("Label")},
        ),
        pointer=True,
    ),
    "nonResourceAttributes": Field(
        Structure("NonResourceAttributes", _fields(path=TEXT, verb=TEXT)), pointer=True
    ),
}  # fmt: skip
_SUBJECT_SPEC = Structure(
    "SubjectAccessReviewSpec",
    _ATTRIBUTES | _fields(user=TEXT, groups=_TEXTS, extra=_EXTRA, uid=TEXT),
)
_ACCESS_STATUS = Structure(
    "SubjectAccessReviewStatus",
    {"allowed": Field(BOOL, always=True)} | _fields(denied=BOOL, reason=TEXT, evaluationError=TEXT),
)
_USER = Structure("UserInfo", _fields(username=TEXT, uid=TEXT, groups=_TEXTS, extra=_EXTRA))
_RULES = {
    "resourceRules": _fields(
        verbs=_TEXTS, apiGroups=_TEXTS, resources=_TEXTS, resourceNames=_TEXTS
    ),
    "nonResourceRules": _fields(verbs=_TEXTS, nonResourceURLs=_TEXTS),
}

SELF_ACCESS = with_spec(
    "SelfSubjectAccessReview",
    spec=Structure("SelfSubjectAccessReviewSpec", _ATTRIBUTES),
    status=_ACCESS_STATUS,
)
SUBJECT_ACCESS = with_spec("SubjectAccessReview", spec=_SUBJECT_SPEC, status=_ACCESS_STATUS)
LOCAL_ACCESS = with_spec("LocalSubjectAccessReview", spec=_SUBJECT_SPEC, status=_ACCESS_STATUS)
SELF_RULES = with_spec(
    "SelfSubjectRulesReview",
    spec=Structure("SelfSubjectRulesReviewSpec", _fields(namespace=TEXT)),
    status=Structure(
        "SubjectRulesReviewStatus",
        {
            name: Field(SliceType(f"[]v1.{kind}", Structure(kind, _RULES[name])))
            for name, kind in (
                ("resourceRules", "ResourceRule"),
                ("nonResourceRules", "NonResourceRule"),
            )
        }
        | _fields(incomplete=BOOL, evaluationError=TEXT),
    ),
)
WHO_AM_I = with_spec(
    "SelfSubjectReview", status=Structure("SelfSubjectReviewStatus", _fields(userInfo=_USER))
)
TOKEN = with_spec(
    "TokenReview",
    spec=Structure("TokenReviewSpec", _fields(token=TEXT, audiences=_TEXTS)),
    status=Structure(
        "TokenReviewStatus",
        _fields(authenticated=BOOL)
        | {"user": Field(_USER, always=True)}
        | _fields(error=TEXT, audiences=_TEXTS),
    ),
)
