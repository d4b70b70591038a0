"""Read request bodies in protobuf, which kubectl and client-go prefer for some requests.

An object is `k8s\\0` and a runtime.Unknown whose second field holds it. Answers are never protobuf:
clients that prefer it accept JSON too. Source of the numbers: the generated.proto files of
apimachinery/pkg/{runtime,apis/meta/v1} and api/{core,coordination,authorization}.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from leases.apiserver.codec import schema
from leases.apiserver.codec.go_json import loads

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZERO = "0001-01-01T00:00:00.000000Z"
_NUMBERS: dict[str, dict[str, int]] = {
    "ObjectMeta": {
        "name": 1, "generateName": 2, "namespace": 3, "selfLink": 4, "uid": 5,
        "resourceVersion": 6, "generation": 7, "creationTimestamp": 8, "deletionTimestamp": 9,
        "deletionGracePeriodSeconds": 10, "labels": 11, "annotations": 12, "ownerReferences": 13,
        "finalizers": 14, "managedFields": 17,
    },
    "OwnerReference": {
        "kind": 1, "name": 3, "uid": 4, "apiVersion": 5, "controller": 6, "blockOwnerDeletion": 7,
    },
    "ManagedFieldsEntry": {
        "manager": 1, "operation": 2, "apiVersion": 3, "time": 4, "fieldsType": 6, "fieldsV1": 7,
        "subresource": 8,
    },
    "Lease": {"metadata": 1, "spec": 2},
    "LeaseSpec": {
        "holderIdentity": 1, "leaseDurationSeconds": 2, "acquireTime": 3, "renewTime": 4,
        "leaseTransitions": 5, "strategy": 6, "preferredHolder": 7,
    },
    "LeaseCandidate": {"metadata": 1, "spec": 2},
    "LeaseCandidateSpec": {
        "leaseName": 1, "pingTime": 2, "renewTime": 3, "binaryVersion": 4, "emulationVersion": 5,
        "strategy": 6,
    },
    "Namespace": {"metadata": 1, "spec": 2, "status": 3},
    "NamespaceSpec": {"finalizers": 1},
    "NamespaceStatus": {"phase": 1},
    "DeleteOptions": {
        "gracePeriodSeconds": 1, "preconditions": 2, "orphanDependents": 3,
        "propagationPolicy": 4, "dryRun": 5,
        "ignoreStoreReadErrorWithClusterBreakingPotential": 6,
    },
    "Preconditions": {"uid": 1, "resourceVersion": 2},
    "SelfSubjectAccessReview": {"metadata": 1, "spec": 2},
    "SelfSubjectAccessReviewSpec": {"resourceAttributes": 1, "nonResourceAttributes": 2},
    "SubjectAccessReview": {"metadata": 1, "spec": 2},
    "LocalSubjectAccessReview": {"metadata": 1, "spec": 2},
    "SubjectAccessReviewSpec": {
        "resourceAttributes": 1, "nonResourceAttributes": 2, "user": 3, "groups": 4, "uid": 6,
    },
    "SelfSubjectRulesReview": {"metadata": 1, "spec": 2},
    "SelfSubjectRulesReviewSpec": {"namespace": 1},
    "SelfSubjectReview": {"metadata": 1},
    "TokenReview": {"metadata": 1, "spec": 2},
    "TokenReviewSpec": {"token": 1, "audiences": 2},
    "ResourceAttributes": {
        "namespace": 1, "verb": 2, "group": 3, "version": 4, "resource": 5, "subresource": 6,
        "name": 7,
    },
    "NonResourceAttributes": {"path": 1, "verb": 2},
}  # fmt: skip


# Field number to its values, integers or bytes, in their order.
_Message = dict[int, list[Any]]


def read_binary(data: bytes, kind: schema.Structure) -> dict[str, Any]:
    """The object as decoded JSON. Raises ValueError."""
    if not data.startswith(_MAGIC):
        raise ValueError(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    unknown = _message(data[len(_MAGIC) :])
    (head,) = unknown.get(1, [b""])[-1:]
    (raw,) = unknown.get(2, [b""])[-1:]
    named = _message(head)
    found = _struct(_message(raw), kind)
    for name, number in (("apiVersion", 1), ("kind", 2)):
        if number in named:
            found[name] = _text(named[number][-1])
    return found


def _struct(message: _Message, kind: schema.Structure) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, number in _NUMBERS[kind.short].items():
        if number in message:
            value = _value(message[number], kind.fields[name].kind)
            # A time that is no pointer is written even when there is none.
            if value != _ZERO or kind.fields[name].pointer:
                found[name] = value
    return found


def _value(given: list[Any], kind: schema.GoType) -> Any:
    """The value of a field from all its occurrences."""
    if isinstance(kind, schema.SliceType):
        return [_value([each], kind.item) for each in given]
    if isinstance(kind, schema.Mapping):
        entries = [_message(_bytes(each)) for each in given]
        return {_text(entry.get(1, [b""])[-1]): _text(entry.get(2, [b""])[-1]) for entry in entries}
    last = given[-1]
    if isinstance(kind, schema.Boolean | schema.Integer):
        return _number(last, kind)
    if isinstance(kind, schema.Text):
        return _text(last)
    inner = _message(_bytes(last))
    if isinstance(kind, schema.Structure):
        return _struct(inner, kind)
    if isinstance(kind, schema.TimeType):
        return _moment(inner, micro=kind.micro)
    return loads(_bytes(inner.get(1, [b"null"])[-1]))


def _number(given: Any, kind: schema.Boolean | schema.Integer) -> int | bool:
    if not isinstance(given, int):
        raise ValueError("proto: wrong wireType for a number")
    if isinstance(kind, schema.Boolean):
        return bool(given)
    return given - 2**64 if given >= 2**63 else given


def _moment(message: _Message, *, micro: bool) -> str:
    seconds = int(_number(message.get(1, [0])[-1], schema.INT64))
    nanos = int(_number(message.get(2, [0])[-1], schema.INT64))
    if not message:
        return _ZERO
    try:
        at = _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError:
        raise ValueError("proto: a time is out of range") from None
    fraction = f".{at.microsecond:06}" if micro else ""
    return f"{at.year:04}-{at:%m-%dT%H:%M:%S}{fraction}Z"


def _bytes(given: Any) -> bytes:
    if not isinstance(given, bytes):
        raise ValueError("proto: wrong wireType for a message")
    return given


def _text(given: Any) -> str:
    return _bytes(given).decode("utf-8", "replace")


def _message(data: bytes) -> _Message:
    """All values by the number of their field."""
    found: _Message = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        value: int | bytes
        if kind == _BYTES:
            size, at = _varint(data, at)
            value = data[at : at + size]
            at += size
        elif kind == _VARINT:
            value, at = _varint(data, at)
        elif kind in (_FIXED64, _FIXED32):
            value = b""
            at += 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"proto: illegal wireType {kind}")
        if at > len(data):
            raise ValueError("unexpected EOF")
        found.setdefault(tag >> 3, []).append(value)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("unexpected EOF")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value & (2**64 - 1), at
