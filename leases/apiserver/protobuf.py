"""The binary encoding, as far as kubectl insists on it: it sends its access reviews in nothing
else.

An object is `k8s\\0` and a runtime.Unknown whose second field holds it. Source: the generated.proto
files of apimachinery/pkg/runtime and api/authorization/v1.
"""

from __future__ import annotations

from typing import Any

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_RESOURCE = {
    1: "namespace",
    2: "verb",
    3: "group",
    4: "version",
    5: "resource",
    6: "subresource",
    7: "name",
}
_PATH = {1: "path", 2: "verb"}


def read_review(data: bytes) -> dict[str, Any]:
    """A SelfSubjectAccessReview as it would stand in JSON. Raises ValueError."""
    if not data.startswith(_MAGIC):
        raise ValueError(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    raw = _messages(data[len(_MAGIC) :]).get(2, b"")
    asked = _messages(_messages(raw).get(2, b""))
    spec: dict[str, Any] = {}
    if 1 in asked:
        spec["resourceAttributes"] = _texts(asked[1], _RESOURCE)
    if 2 in asked:
        spec["nonResourceAttributes"] = _texts(asked[2], _PATH)
    return {"spec": spec}


def _texts(data: bytes, names: dict[int, str]) -> dict[str, str]:
    found = _messages(data)
    return {
        name: found[number].decode("utf-8", "replace")
        for number, name in names.items()
        if found.get(number)
    }


def _messages(data: bytes) -> dict[int, bytes]:
    """The length-delimited fields of a message by number; of one that repeats, the last."""
    found: dict[int, bytes] = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == _BYTES:
            size, at = _varint(data, at)
            found[tag >> 3] = data[at : at + size]
            at += size
        elif kind == _VARINT:
            _, at = _varint(data, at)
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"illegal wireType {kind}")
    if at > len(data):
        raise ValueError("unexpected EOF")
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
            return value, at
