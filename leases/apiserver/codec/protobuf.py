"""Objects in protobuf, which client-go, kubectl and kubelets prefer.

Source of the messages: the generated.proto files of apimachinery/pkg/apis/meta/v1 and of
api/coordination/{v1, v1beta1}, api/core/v1, api/authorization/v1, api/authentication/v1 and
api/apidiscovery/v2.

`?` marks a pointer, which is written only when it is set; `*` a repeated field; `map:` a map from
texts. A message stands above those that use it.

An object is `k8s\0` and a runtime.Unknown that names its type and holds its message; an event of a
watch is a frame: four bytes of length and a WatchEvent. Source:
apimachinery/pkg/runtime/serializer/protobuf/protobuf.go and pkg/util/framer/framer.go.
"""

from functools import lru_cache
from typing import Any

from leases.apiserver.codec.go_json import dumps, loads
from leases.apiserver.codec.protobuf_wire import (
    Decode,
    Encode,
    Object,
    WireMessage,
    read_varint,
    varint,
    with_length,
)
from leases.wire.microtime import ZERO_MICROTIME, text_of_unix, unix_of_text

FIELDS = {
    "TypeMeta": "1 apiVersion string, 2 kind string",
    "ListMeta": "1 selfLink string, 2 resourceVersion string, 3 continue string, "
    "4 remainingItemCount int64?",
    "OwnerReference": "1 kind string, 3 name string, 4 uid string, 5 apiVersion string, "
    "6 controller bool?, 7 blockOwnerDeletion bool?",
    "ManagedFieldsEntry": "1 manager string, 2 operation string, 3 apiVersion string, "
    "4 time Time?, 6 fieldsType string, 7 fieldsV1 FieldsV1?, 8 subresource string",
    "ObjectMeta": "1 name string, 2 generateName string, 3 namespace string, 4 selfLink string, "
    "5 uid string, 6 resourceVersion string, 7 generation int64, 8 creationTimestamp Time, "
    "9 deletionTimestamp Time?, 10 deletionGracePeriodSeconds int64?, 11 labels map:string, "
    "12 annotations map:string, 13 ownerReferences OwnerReference*, 14 finalizers string*, "
    "17 managedFields ManagedFieldsEntry*",
    "PartialObjectMetadata": "1 metadata ObjectMeta",
    "PartialObjectMetadataList": "1 metadata ListMeta, 2 items PartialObjectMetadata*",
    # Status and events
    "RawExtension": "1 raw bytes",
    "StatusCause": "1 reason string, 2 message string, 3 field string",
    "StatusDetails": "1 name string, 2 group string, 3 kind string, 4 causes StatusCause*, "
    "5 retryAfterSeconds int32, 6 uid string",
    "Status": "1 metadata ListMeta, 2 status string, 3 message string, 4 reason string, "
    "5 details StatusDetails?, 6 code int32",
    # objects
    "LeaseSpec": "1 holderIdentity string?, 2 leaseDurationSeconds int32?, "
    "3 acquireTime MicroTime?, 4 renewTime MicroTime?, 5 leaseTransitions int32?, "
    "6 strategy string?, 7 preferredHolder string?",
    "Lease": "1 metadata ObjectMeta, 2 spec LeaseSpec",
    "LeaseList": "1 metadata ListMeta, 2 items Lease*",
    "LeaseCandidateSpec": "1 leaseName string, 2 pingTime MicroTime?, 3 renewTime MicroTime?, "
    "4 binaryVersion string, 5 emulationVersion string, 6 strategy string",
    "LeaseCandidate": "1 metadata ObjectMeta, 2 spec LeaseCandidateSpec",
    "LeaseCandidateList": "1 metadata ListMeta, 2 items LeaseCandidate*",
    "NamespaceSpec": "1 finalizers string*",
    "NamespaceCondition": "1 type string, 2 status string, 4 lastTransitionTime Time, "
    "5 reason string, 6 message string",
    "NamespaceStatus": "1 phase string, 2 conditions NamespaceCondition*",
    "Namespace": "1 metadata ObjectMeta, 2 spec NamespaceSpec, 3 status NamespaceStatus",
    "NamespaceList": "1 metadata ListMeta, 2 items Namespace*",
    "ObjectReference": "1 kind string, 2 namespace string, 3 name string, 4 uid string, "
    "5 apiVersion string, 6 resourceVersion string, 7 fieldPath string",
    "EventSource": "1 component string, 2 host string",
    "EventSeries": "1 count int32, 2 lastObservedTime MicroTime",
    "Event": "1 metadata ObjectMeta, 2 involvedObject ObjectReference, 3 reason string, "
    "4 message string, 5 source EventSource, 6 firstTimestamp Time, 7 lastTimestamp Time, "
    "8 count int32, 9 type string, 10 eventTime MicroTime, 11 series EventSeries?, "
    "12 action string, 13 related ObjectReference?, 14 reportingComponent string, "
    "15 reportingInstance string",
    "EventList": "1 metadata ListMeta, 2 items Event*",
    "events.Event": "1 metadata ObjectMeta, 2 eventTime MicroTime, 3 series EventSeries?, "
    "4 reportingController string, 5 reportingInstance string, 6 action string, 7 reason string, "
    "8 regarding ObjectReference, 9 related ObjectReference?, 10 note string, 11 type string, "
    "12 deprecatedSource EventSource, 13 deprecatedFirstTimestamp Time, "
    "14 deprecatedLastTimestamp Time, 15 deprecatedCount int32",
    "events.EventList": "1 metadata ListMeta, 2 items events.Event*",
    # Nodes, which are only read
    "NodeCondition": "1 type string, 2 status string, 3 lastHeartbeatTime Time, "
    "4 lastTransitionTime Time, 5 reason string, 6 message string",
    "NodeAddress": "1 type string, 2 address string",
    "Taint": "1 key string, 2 value string, 3 effect string, 4 timeAdded Time?",
    "ConfigMapNodeConfigSource": "1 namespace string, 2 name string, 3 uid string, "
    "4 resourceVersion string, 5 kubeletConfigKey string",
    "NodeConfigSource": "2 configMap ConfigMapNodeConfigSource?",
    "NodeConfigStatus": "1 assigned NodeConfigSource?, 2 active NodeConfigSource?, "
    "3 lastKnownGood NodeConfigSource?, 4 error string",
    "DaemonEndpoint": "1 Port int32",
    "NodeDaemonEndpoints": "1 kubeletEndpoint DaemonEndpoint",
    "NodeSwapStatus": "1 capacity int64?",
    "NodeSystemInfo": "1 machineID string, 2 systemUUID string, 3 bootID string, "
    "4 kernelVersion string, 5 osImage string, 6 containerRuntimeVersion string, "
    "7 kubeletVersion string, 8 kubeProxyVersion string, 9 operatingSystem string, "
    "10 architecture string, 11 swap NodeSwapStatus?",
    "ContainerImage": "1 names string*, 2 sizeBytes int64",
    "AttachedVolume": "1 name string, 2 devicePath string",
    "NodeRuntimeHandlerFeatures": "1 recursiveReadOnlyMounts bool?, 2 userNamespaces bool?",
    "NodeRuntimeHandler": "1 name string, 2 features NodeRuntimeHandlerFeatures?",
    "NodeFeatures": "1 supplementalGroupsPolicy bool?, 2 containerUlimits bool?",
    "NodeSpec": "1 podCIDR string, 2 externalID string, 3 providerID string, "
    "4 unschedulable bool, 5 taints Taint*, 6 configSource NodeConfigSource?, 7 podCIDRs string*",
    "NodeStatus": "1 capacity map:Quantity, 2 allocatable map:Quantity, 3 phase string, "
    "4 conditions NodeCondition*, 5 addresses NodeAddress*, "
    "6 daemonEndpoints NodeDaemonEndpoints, 7 nodeInfo NodeSystemInfo, 8 images ContainerImage*, "
    "9 volumesInUse string*, 10 volumesAttached AttachedVolume*, 11 config NodeConfigStatus?, "
    "12 runtimeHandlers NodeRuntimeHandler*, 13 features NodeFeatures?, "
    "14 declaredFeatures string*",
    "Node": "1 metadata ObjectMeta, 2 spec NodeSpec, 3 status NodeStatus",
    # options
    "Preconditions": "1 uid string?, 2 resourceVersion string?",
    "DeleteOptions": "1 gracePeriodSeconds int64?, 2 preconditions Preconditions?, "
    "3 orphanDependents bool?, 4 propagationPolicy string?, 5 dryRun string*, "
    "6 ignoreStoreReadErrorWithClusterBreakingPotential bool?",
    # reviews
    "SelectorRequirement": "1 key string, 2 operator string, 3 values string*",
    "SelectorAttributes": "1 rawSelector string, 2 requirements SelectorRequirement*",
    "ResourceAttributes": "1 namespace string, 2 verb string, 3 group string, 4 version string, "
    "5 resource string, 6 subresource string, 7 name string, 8 fieldSelector SelectorAttributes?, "
    "9 labelSelector SelectorAttributes?",
    "NonResourceAttributes": "1 path string, 2 verb string",
    "SelfSubjectAccessReviewSpec": "1 resourceAttributes ResourceAttributes?, "
    "2 nonResourceAttributes NonResourceAttributes?",
    "SubjectAccessReviewSpec": "1 resourceAttributes ResourceAttributes?, "
    "2 nonResourceAttributes NonResourceAttributes?, 3 user string, 4 groups string*, "
    "5 extra map:ExtraValue, 6 uid string",
    "SubjectAccessReviewStatus": "1 allowed bool, 2 reason string, 3 evaluationError string, "
    "4 denied bool",
    "SelfSubjectAccessReview": "1 metadata ObjectMeta, 2 spec SelfSubjectAccessReviewSpec, "
    "3 status SubjectAccessReviewStatus",
    "SubjectAccessReview": "1 metadata ObjectMeta, 2 spec SubjectAccessReviewSpec, "
    "3 status SubjectAccessReviewStatus",
    "LocalSubjectAccessReview": "1 metadata ObjectMeta, 2 spec SubjectAccessReviewSpec, "
    "3 status SubjectAccessReviewStatus",
    "SelfSubjectRulesReviewSpec": "1 namespace string",
    "ResourceRule": "1 verbs string*, 2 apiGroups string*, 3 resources string*, "
    "4 resourceNames string*",
    "NonResourceRule": "1 verbs string*, 2 nonResourceURLs string*",
    "SubjectRulesReviewStatus": "1 resourceRules ResourceRule*, "
    "2 nonResourceRules NonResourceRule*, 3 incomplete bool, 4 evaluationError string",
    "SelfSubjectRulesReview": "1 metadata ObjectMeta, 2 spec SelfSubjectRulesReviewSpec, "
    "3 status SubjectRulesReviewStatus",
    "UserInfo": "1 username string, 2 uid string, 3 groups string*, 4 extra map:ExtraValue",
    "SelfSubjectReviewStatus": "1 userInfo UserInfo",
    "SelfSubjectReview": "1 metadata ObjectMeta, 2 status SelfSubjectReviewStatus",
    "TokenReviewSpec": "1 token string, 2 audiences string*",
    "TokenReviewStatus": "1 authenticated bool, 2 user UserInfo, 3 error string, "
    "4 audiences string*",
    "TokenReview": "1 metadata ObjectMeta, 2 spec TokenReviewSpec, 3 status TokenReviewStatus",
    # discovery
    "ServerAddressByClientCIDR": "1 clientCIDR string, 2 serverAddress string",
    "APIVersions": "1 versions string*, 2 serverAddressByClientCIDRs ServerAddressByClientCIDR*",
    "GroupVersionForDiscovery": "1 groupVersion string, 2 version string",
    "APIGroup": "1 name string, 2 versions GroupVersionForDiscovery*, "
    "3 preferredVersion GroupVersionForDiscovery, "
    "4 serverAddressByClientCIDRs ServerAddressByClientCIDR*",
    "APIGroupList": "1 groups APIGroup*",
    "APIResource": "1 name string, 2 namespaced bool, 3 kind string, 4 verbs ExtraValue?, "
    "5 shortNames string*, 6 singularName string, 7 categories string*, 8 group string, "
    "9 version string, 10 storageVersionHash string",
    "APIResourceList": "1 groupVersion string, 2 resources APIResource*",
    "GroupVersionKind": "1 group string, 2 version string, 3 kind string",
    "APISubresourceDiscovery": "1 subresource string, 2 responseKind GroupVersionKind?, "
    "3 acceptedTypes GroupVersionKind*, 4 verbs string*",
    "APIResourceDiscovery": "1 resource string, 2 responseKind GroupVersionKind?, 3 scope string, "
    "4 singularResource string, 5 verbs string*, 6 shortNames string*, 7 categories string*, "
    "8 subresources APISubresourceDiscovery*",
    "APIVersionDiscovery": "1 version string, 2 resources APIResourceDiscovery*, "
    "3 freshness string",
    "APIGroupDiscovery": "1 metadata ObjectMeta, 2 versions APIVersionDiscovery*",
    "APIGroupDiscoveryList": "1 metadata ListMeta, 2 items APIGroupDiscovery*",
}


MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
STREAM_TYPE = f"{MEDIA_TYPE};stream=watch"
MAX_TIMES = 8192
# The bytes of a Timestamp of two integers that are as long as they can be.
MAX_STAMP = 22
_MAGIC = b"k8s\x00"
# Of runtime.Unknown: the tag of raw, and contentEncoding and contentType when they are empty.
_RAW, _NO_ENCODING = b"\x12", b'\x1a\0"\0'

# The metadata of stored versions that were sent: a client repeats it in its next update.
MAX_SENT = 4096
_sent: dict[tuple[str, str], bytes] = {}


class BadMessage(ValueError):
    """The message in the envelope is broken. `value` is what the envelope says."""

    def __init__(self, why: str, value: Object) -> None:
        super().__init__(why)
        self.value = value


# Renewals repeat most of their times.
@lru_cache(maxsize=MAX_TIMES)
def _time_bytes(text: str | None) -> bytes:
    """A Timestamp; the zero time (null in JSON) has no bytes."""
    if text is None:
        return b""
    seconds, micros = unix_of_text(text)
    return b"\x08" + varint(seconds) + b"\x10" + varint(micros * 1000)  # _TIMESTAMP.encode


@lru_cache(maxsize=MAX_TIMES)
def _time_text(stamp: bytes, *, micro: bool) -> str | None:
    """None for the zero time. Without `micro` the fraction does not count."""
    if not stamp:
        return None
    found = _TIMESTAMP.decode(stamp)
    micros = int(found.get("nanos", 0) / 1000) if micro else 0
    return text_of_unix(found.get("seconds", 0), micros, micro=micro)


def _micro_time(data: bytes, _: Any) -> str:
    return _time_text(_stamp(data), micro=True) or ZERO_MICROTIME


def _time(data: bytes, _: Any) -> str | None:
    return _time_text(_stamp(data), micro=False)


def _stamp(data: bytes) -> bytes:
    """A Timestamp without unknown fields, so that no long one is remembered."""
    return data if len(data) <= MAX_STAMP else _TIMESTAMP.encode(_TIMESTAMP.decode(data))


# How to encode and decode the texts, times and messages of a type.
_CODECS: dict[str, tuple[Encode, Decode]] = {
    "string": (str.encode, lambda data, _: data.decode("utf-8", "replace")),
    "bytes": (bytes, lambda data, _: data),
    "Time": (_time_bytes, _time),
    "MicroTime": (_time_bytes, _micro_time),
    "FieldsV1": (
        lambda value: with_length(b"\x0a", dumps(value)),
        lambda data, _: loads(_RAW_JSON.decode(data).get("raw", b"null")),
    ),
    "Quantity": (
        lambda value: with_length(b"\x0a", value.encode()),
        lambda data, _: _QUANTITY.decode(data).get("string", "0"),
    ),
    "ExtraValue": (
        lambda value: _ITEMS.encode({"items": value}),
        lambda data, _: _ITEMS.decode(data).get("items", []),
    ),
}
MESSAGES: dict[str, WireMessage] = {}


def _message(name: str, fields: str) -> WireMessage:
    message = WireMessage(name)
    for field in fields.split(", "):
        number, field_name, kind = field.split(" ")
        _add_field(message, int(number), field_name, kind)
    return message


def _add_field(message: WireMessage, number: int, name: str, kind: str) -> None:
    bare = kind.rstrip("?*").removeprefix("map:")
    if bare in ("int32", "int64", "bool"):
        message.add_number(number, name, bare, pointer=kind.endswith("?"))
    elif kind.startswith("map:"):
        message.add_map(number, name, *_CODECS[bare])
    elif kind.endswith("*"):
        message.add_list(number, name, *_CODECS[bare])
    else:
        zero = MESSAGES[bare].encode({}) if bare in MESSAGES else b""
        message.add_bytes(number, name, *_CODECS[bare], pointer=kind.endswith("?"), zero=zero)


_TIMESTAMP: WireMessage = _message("Timestamp", "1 seconds int64, 2 nanos int32")
_RAW_JSON: WireMessage = _message("FieldsV1", "1 raw bytes")
_QUANTITY: WireMessage = _message("Quantity", "1 string string")
_ITEMS: WireMessage = _message("ExtraValue", "1 items string*")
for _name, _fields in FIELDS.items():
    MESSAGES[_name] = _made = _message(_name, _fields)
    _CODECS[_name] = _made.encode, _made.decode
_UNKNOWN = _message(
    "Unknown", "1 typeMeta TypeMeta, 2 raw bytes, 3 contentEncoding string, 4 contentType string"
)
_WATCH_EVENT = _message("WatchEvent", "1 type string, 2 object RawExtension")


def read_binary(data: bytes, kind: str, message: str, known: Object | None = None) -> Object:
    """The object as decoded JSON, `kind` being the one that is expected and `message` its type.

    `known` is the metadata of the stored object. Encoding it, to see that the body repeats it,
    takes less time than decoding the body's. Raises BadMessage and, for an envelope that is
    broken, ValueError.
    """
    if not data:
        raise ValueError("empty data")
    if not data.startswith(_MAGIC):
        raise ValueError(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    if data == _MAGIC:
        raise ValueError("empty body")
    found, raw = _envelope(data)
    if found.get("kind", kind) != kind:
        return found
    try:
        return _content(MESSAGES[message], raw, known) | found
    except ValueError as error:
        raise BadMessage(str(error), found) from None


def _envelope(data: bytes) -> tuple[Object, bytes]:
    """The kind and apiVersion, and the content. Raises ValueError."""
    # What client-go sends, without decoding each field.
    end = 6 + data[5] if len(data) > 5 and data[4:5] == b"\x0a" and data[5] < 128 else 0
    if end and data[end : end + 1] == _RAW and data.endswith(_NO_ENCODING):
        size, start = read_varint(data, end + 1)
        if start + size == len(data) - len(_NO_ENCODING):
            return _type_meta(data[6:end]).copy(), data[start : start + size]
    unknown = _UNKNOWN.decode(data[len(_MAGIC) :])
    return unknown.get("typeMeta", {}), unknown.get("raw", b"")


@lru_cache(maxsize=64)
def _type_meta(data: bytes) -> Object:
    return MESSAGES["TypeMeta"].decode(data)


def _content(message: WireMessage, raw: bytes, known: Object | None) -> Object:
    if known is not None:
        start = _sent.pop(_version(known), None)
        if start is None:
            start = with_length(b"\x0a", MESSAGES["ObjectMeta"].encode(known))
        if raw.startswith(start):
            rest = message.decode(raw[len(start) :])
            if "metadata" not in rest:
                return {"metadata": known} | rest
    return message.decode(raw)


def _version(metadata: Object) -> tuple[str, str]:
    return metadata.get("uid", ""), metadata.get("resourceVersion", "")


def encode_object(obj: Object, *, stored: bool = False) -> bytes:
    """An object with kind and apiVersion. `stored`: its metadata is that of its version."""
    group = "events." if obj.get("apiVersion") == "events.k8s.io/v1" else ""
    raw = MESSAGES[group + obj["kind"]].encode(obj)
    if stored:
        size, start = read_varint(raw, 1)
        if len(_sent) >= MAX_SENT:
            del _sent[next(iter(_sent))]
        _sent[_version(obj["metadata"])] = raw[: start + size]
    return _head(obj.get("apiVersion", ""), obj["kind"]) + with_length(_RAW, raw) + _NO_ENCODING


@lru_cache(maxsize=64)
def _head(api_version: str, kind: str) -> bytes:
    """What is before the content."""
    type_meta = MESSAGES["TypeMeta"].encode({"apiVersion": api_version, "kind": kind})
    return _MAGIC + with_length(b"\x0a", type_meta)


def encode_event(event_type: str, obj: Object) -> bytes:
    """The frame of a watch event."""
    event = _WATCH_EVENT.encode({"type": event_type, "object": {"raw": encode_object(obj)}})
    return len(event).to_bytes(4, "big") + event
