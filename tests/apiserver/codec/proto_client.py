"""A client that speaks nothing but protobuf, with an encoder and a decoder of its own.

The tables repeat the published .proto files (apimachinery/pkg/{runtime,apis/meta/v1} and
api/coordination/v1 generated.proto) and share nothing with the server's.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.apiserver.clients import Client

KIND = "application/vnd.kubernetes.protobuf"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Number: name, type. A star marks a list, a question mark what JSON writes even when it is zero.
MESSAGES: dict[str, dict[int, tuple[str, str]]] = {
    "Unknown": {
        1: ("typeMeta", "TypeMeta"), 2: ("raw", "bytes"), 3: ("contentEncoding", "string"),
        4: ("contentType", "string"),
    },
    "TypeMeta": {1: ("apiVersion", "string"), 2: ("kind", "string")},
    "Lease": {1: ("metadata", "ObjectMeta"), 2: ("spec", "LeaseSpec")},
    "LeaseList": {1: ("metadata", "ListMeta"), 2: ("items", "Lease*")},
    "LeaseSpec": {
        1: ("holderIdentity", "string?"), 2: ("leaseDurationSeconds", "int32?"),
        3: ("acquireTime", "MicroTime?"), 4: ("renewTime", "MicroTime?"),
        5: ("leaseTransitions", "int32?"), 6: ("strategy", "string?"),
        7: ("preferredHolder", "string?"),
    },
    "LeaseCandidate": {1: ("metadata", "ObjectMeta"), 2: ("spec", "LeaseCandidateSpec")},
    "LeaseCandidateList": {1: ("metadata", "ListMeta"), 2: ("items", "LeaseCandidate*")},
    "LeaseCandidateSpec": {
        1: ("leaseName", "string"), 2: ("pingTime", "MicroTime?"), 3: ("renewTime", "MicroTime?"),
        4: ("binaryVersion", "string"), 5: ("emulationVersion", "string"),
        6: ("strategy", "string"),
    },
    "Namespace": {
        1: ("metadata", "ObjectMeta"), 2: ("spec", "NamespaceSpec"),
        3: ("status", "NamespaceStatus"),
    },
    "NamespaceList": {1: ("metadata", "ListMeta"), 2: ("items", "Namespace*")},
    "NamespaceSpec": {1: ("finalizers", "string*")},
    "NamespaceStatus": {1: ("phase", "string")},
    "PartialObjectMetadata": {1: ("metadata", "ObjectMeta")},
    "PartialObjectMetadataList": {
        1: ("metadata", "ListMeta"), 2: ("items", "PartialObjectMetadata*"),
    },
    "ObjectMeta": {
        1: ("name", "string"), 2: ("generateName", "string"), 3: ("namespace", "string"),
        4: ("selfLink", "string"), 5: ("uid", "string"), 6: ("resourceVersion", "string"),
        7: ("generation", "int64"), 8: ("creationTimestamp", "Time"),
        9: ("deletionTimestamp", "Time?"), 10: ("deletionGracePeriodSeconds", "int64?"),
        11: ("labels", "map"), 12: ("annotations", "map"),
        13: ("ownerReferences", "OwnerReference*"), 14: ("finalizers", "string*"),
        17: ("managedFields", "ManagedFieldsEntry*"),
    },
    "OwnerReference": {
        1: ("kind", "string"), 3: ("name", "string"), 4: ("uid", "string"),
        5: ("apiVersion", "string"), 6: ("controller", "bool?"),
        7: ("blockOwnerDeletion", "bool?"),
    },
    "ManagedFieldsEntry": {
        1: ("manager", "string"), 2: ("operation", "string"), 3: ("apiVersion", "string"),
        4: ("time", "Time?"), 6: ("fieldsType", "string"), 7: ("fieldsV1", "FieldsV1"),
        8: ("subresource", "string"),
    },
    "ListMeta": {
        1: ("selfLink", "string"), 2: ("resourceVersion", "string"), 3: ("continue", "string"),
        4: ("remainingItemCount", "int64?"),
    },
    "Status": {
        1: ("metadata", "ListMeta"), 2: ("status", "string"), 3: ("message", "string"),
        4: ("reason", "string"), 5: ("details", "StatusDetails"), 6: ("code", "int32"),
    },
    "StatusDetails": {
        1: ("name", "string"), 2: ("group", "string"), 3: ("kind", "string"),
        4: ("causes", "StatusCause*"), 5: ("retryAfterSeconds", "int32"), 6: ("uid", "string"),
    },
    "StatusCause": {1: ("reason", "string"), 2: ("message", "string"), 3: ("field", "string")},
    "DeleteOptions": {
        1: ("gracePeriodSeconds", "int64?"), 2: ("preconditions", "Preconditions?"),
        3: ("orphanDependents", "bool?"), 4: ("propagationPolicy", "string?"),
        5: ("dryRun", "string*"),
    },
    "Preconditions": {1: ("uid", "string?"), 2: ("resourceVersion", "string?")},
    "Timestamp": {1: ("seconds", "int64?"), 2: ("nanos", "int32?")},
    "FieldsV1": {1: ("raw", "bytes")},
    "WatchEvent": {1: ("type", "string"), 2: ("object", "RawExtension")},
    "RawExtension": {1: ("raw", "bytes")},
    "APIResourceList": {1: ("groupVersion", "string"), 2: ("resources", "APIResource*")},
    "APIResource": {
        1: ("name", "string"), 2: ("namespaced", "bool?"), 3: ("kind", "string"),
        4: ("verbs", "Verbs"), 5: ("shortNames", "string*"), 6: ("singularName", "string?"),
        7: ("categories", "string*"), 8: ("group", "string"), 9: ("version", "string"),
        10: ("storageVersionHash", "string"),
    },
    "SelfSubjectAccessReview": {
        1: ("metadata", "ObjectMeta"), 2: ("spec", "SelfSubjectAccessReviewSpec"),
        3: ("status", "SubjectAccessReviewStatus"),
    },
    "SelfSubjectAccessReviewSpec": {1: ("resourceAttributes", "ResourceAttributes?")},
    "ResourceAttributes": {
        1: ("namespace", "string"), 2: ("verb", "string"), 3: ("group", "string"),
        4: ("version", "string"), 5: ("resource", "string"), 6: ("subresource", "string"),
        7: ("name", "string"),
    },
    "SubjectAccessReviewStatus": {
        1: ("allowed", "bool"), 2: ("reason", "string"), 3: ("evaluationError", "string"),
        4: ("denied", "bool"),
    },
    "Verbs": {1: ("items", "string*")},
    "Entry": {1: ("key", "string"), 2: ("value", "string")},
}  # fmt: skip


def varint(value: int) -> bytes:
    out = b""
    value %= 2**64
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def encode(name: str, obj: dict[str, Any]) -> bytes:
    """The fields that `obj` has; a pointer to the zero time is null."""
    out = b""
    for number, (key, kind) in MESSAGES[name].items():
        if key not in obj:
            continue
        if kind == "map":
            entries = [{"key": each, "value": value} for each, value in obj[key].items()]
            out += b"".join(field(number, encode("Entry", each)) for each in entries)
        elif kind.endswith("*"):
            out += b"".join(field(number, _value(kind[:-1], each)) for each in obj[key])
        else:
            out += field(number, _value(kind.rstrip("?"), obj[key]))
    return out


def _value(kind: str, value: Any) -> int | bytes:
    if kind in ("int32", "int64", "bool"):
        return int(value)
    if kind == "string":
        text: str = value
        return text.encode()
    if kind == "bytes":
        return bytes(value)
    if kind in ("Time", "MicroTime"):
        if value is None:
            return b""
        since = datetime.fromisoformat(value) - EPOCH
        seconds = since.days * 86400 + since.seconds
        return encode("Timestamp", {"seconds": seconds, "nanos": since.microseconds * 1000})
    if kind == "FieldsV1":
        return encode(kind, {"raw": json.dumps(value).encode()})
    return encode(kind, value)


def decode(name: str, data: bytes) -> dict[str, Any]:
    """As JSON: zeros are left out of fields that are no pointers."""
    found: dict[str, Any] = {}
    for number, value in fields(data):
        key, kind = MESSAGES[name][number]  # a number that is not published fails
        if kind == "map":
            entry = decode("Entry", value)
            found.setdefault(key, {})[entry.get("key", "")] = entry.get("value", "")
        elif kind.endswith("*"):
            found.setdefault(key, []).append(_decoded(kind[:-1], value))
        else:
            read = _decoded(kind.rstrip("?"), value)
            if kind.endswith("?") or read not in ("", 0, None):
                found[key] = read
    return found


def _decoded(kind: str, value: Any) -> Any:
    if kind in ("int32", "int64"):
        return value - 2**64 if value >= 2**63 else value
    if kind == "bool":
        return bool(value)
    if kind == "string":
        return value.decode()
    if kind == "bytes":
        return value
    if kind in ("Time", "MicroTime"):
        return _moment(value, micro=kind == "MicroTime")
    if kind == "FieldsV1":
        return json.loads(decode(kind, value)["raw"])
    if kind == "Verbs":
        return decode(kind, value)["items"]
    return decode(kind, value)


def _moment(data: bytes, *, micro: bool) -> str | None:
    if not data:
        return None
    stamp = decode("Timestamp", data)
    at = EPOCH + timedelta(seconds=stamp["seconds"], microseconds=stamp["nanos"] // 1000)
    return at.replace(tzinfo=None).isoformat(timespec="microseconds" if micro else "seconds") + "Z"


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        value, at = _varint(data, at)
        if tag & 7 == 2:
            value, at = data[at : at + value], at + value  # type: ignore[assignment]
        else:
            assert tag & 7 == 0, f"wire type {tag & 7}"
        yield tag >> 3, value
    assert at == len(data)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at


def pack(kind: str, obj: dict[str, Any], version: str = "coordination.k8s.io/v1") -> bytes:
    head = {"apiVersion": version, "kind": kind}
    return b"k8s\0" + encode("Unknown", {"typeMeta": head, "raw": encode(kind, obj)})


def unpack(data: bytes) -> dict[str, Any]:
    assert data[:4] == b"k8s\0", data[:40]
    unknown = decode("Unknown", data[4:])
    found: dict[str, Any] = unknown["typeMeta"]
    return found | decode(found["kind"], unknown["raw"])


def frames(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    """The events of a watch: type and object."""
    found = []
    while data:
        (size,) = struct.unpack(">I", data[:4])
        event = decode("WatchEvent", data[4 : 4 + size])
        assert len(data) >= 4 + size
        found.append((event["type"], unpack(event["object"]["raw"])))
        data = data[4 + size :]
    return found


class ProtoClient:
    """Sends and accepts protobuf alone."""

    def __init__(self, url: str) -> None:
        self.client = Client(url)

    def call(
        self, method: str, path: str, body: bytes | None = None, *, accept: str = KIND, **query: str
    ) -> tuple[int, dict[str, Any]]:
        """The status code and the object."""
        response = self.client.send(method, path, body, content_type=KIND, accept=accept, **query)
        assert response.headers["Content-Type"] == KIND
        return response.status, unpack(response.read())

    def watch(self, path: str, *, accept: str, **query: str) -> list[tuple[str, dict[str, Any]]]:
        """The events until the watch ends."""
        response = self.client.send("GET", path, accept=accept, **query)
        assert (response.status, response.headers["Content-Type"]) == (200, f"{KIND};stream=watch")
        return frames(response.read())

    def close(self) -> None:
        self.client.close()
