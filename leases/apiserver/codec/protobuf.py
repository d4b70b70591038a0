"""Objects in protobuf, which client-go, kubectl and kubelets prefer.

An object is `k8s\\0` and a runtime.Unknown that names its type and holds its message; an event of a
watch is a frame: four bytes of length and a WatchEvent. Source:
apimachinery/pkg/runtime/serializer/protobuf/protobuf.go and pkg/util/framer/framer.go.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from leases.apiserver.codec.go_json import dumps, loads
from leases.apiserver.codec.protobuf_messages import FIELDS
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
