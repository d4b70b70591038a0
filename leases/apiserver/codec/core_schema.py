"""The Go types of Nodes, Pods, Services and Events.

Node, Pod and Service name only the lists that patches merge by a key; what else a client sends in
`spec` and `status` is kept as it comes. Source: k8s.io/api/core/v1 and events/v1 types.go.
"""

from __future__ import annotations

from leases.apiserver.codec.schema import (
    INT32,
    MICRO_TIME,
    TEXT,
    TIME,
    Field,
    SliceType,
    Structure,
    Text,
    top_level,
    with_spec,
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
