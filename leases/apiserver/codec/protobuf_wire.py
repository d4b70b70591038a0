"""Encode and decode protobuf messages as Go's generated code does.

Fields that are no pointers are always written, in the order of their numbers; unknown fields are
skipped; a message that comes twice is merged. Source: apimachinery/pkg/apis/meta/v1/generated.pb.go
and the other packages' generated.pb.go, with the words of their errors.
"""

from collections.abc import Callable
from typing import Any

Object = dict[str, Any]
Encode = Callable[[Any], bytes]
# Decode an integer or bytes; the second argument is what an earlier occurrence gave, if any.
Decode = Callable[[Any, Any], Any]

VARINT, FIXED64, BYTES, GROUP, GROUP_END, FIXED32 = range(6)
_GO_NAMES = {"apiVersion": "APIVersion", "uid": "UID"}
_SHORT = [bytes([value]) for value in range(128)]
_EOF = "unexpected EOF"


def varint(value: int) -> bytes:
    """The bytes of an unsigned integer, or of a signed one as an int64."""
    if 0 <= value < 128:
        return _SHORT[value]
    value &= 2**64 - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def with_length(tag: bytes, data: bytes) -> bytes:
    size = len(data)
    return tag + (_SHORT[size] if size < 128 else varint(size)) + data


def tag_of(number: int, wire_type: int = BYTES) -> bytes:
    return varint(number << 3 | wire_type)


class WireMessage:
    """A message type."""

    def __init__(self, name: str) -> None:
        self.name = name
        # Per field in the order of Go: its name, its bytes when it is absent, how to encode it,
        # and the tag (with a length) to put before that.
        self._writes: list[tuple[str, bytes, bytes, Encode]] = []
        # Per tag: the name of the field, how to decode it, and whether it is a pointer.
        self._reads: dict[int, tuple[str, Decode, bool]] = {}
        self._names: dict[int, str] = {}

    def add_number(self, number: int, name: str, kind: str, *, pointer: bool) -> None:
        """Add an int32, int64 or bool."""
        tag, bits = tag_of(number, VARINT), 32 if kind == "int32" else 64

        def decode(value: Any, _: Any) -> int:
            return bool(value) if kind == "bool" else _signed(value, bits)

        self._names[number] = name
        absent = b"" if pointer else tag + b"\0"
        self._writes.append((name, absent, b"", lambda value: tag + varint(value)))
        self._reads[number << 3 | VARINT] = name, decode, pointer

    def add_bytes(
        self,
        number: int,
        name: str,
        encode: Encode,
        decode: Decode,
        *,
        pointer: bool = False,
        zero: bytes = b"",
    ) -> None:
        """Add a text, a time or a message. `zero`: what Go writes for its zero value."""
        tag = tag_of(number)
        self._names[number] = name
        self._writes.append((name, b"" if pointer else with_length(tag, zero), tag, encode))
        self._reads[number << 3 | BYTES] = name, decode, pointer

    def add_list(self, number: int, name: str, encode: Encode, decode: Decode) -> None:
        tag = tag_of(number)

        def write(values: Any) -> bytes:
            return b"".join([with_length(tag, encode(value)) for value in values])

        def read(value: bytes, earlier: list[Any] | None) -> list[Any]:
            items = [] if earlier is None else earlier
            items.append(decode(value, None))
            return items

        self._names[number] = name
        self._writes.append((name, b"", b"", write))
        self._reads[number << 3 | BYTES] = name, read, False

    def add_map(self, number: int, name: str, encode: Encode, decode: Decode) -> None:
        """Add a map from texts, which is written in the order of its names."""
        entry = WireMessage(f"{name}Entry")
        entry.add_bytes(1, "key", str.encode, lambda d, _: d.decode("utf-8", "replace"))
        entry.add_bytes(2, "value", encode, decode)
        tag = tag_of(number)

        def write(values: Any) -> bytes:
            found = [{"key": key, "value": value} for key, value in sorted(values.items())]
            return b"".join([with_length(tag, entry.encode(each)) for each in found])

        def read(value: bytes, earlier: Object | None) -> Object:
            items, pair = {} if earlier is None else earlier, entry.decode(value)
            items[pair.get("key", "")] = pair.get("value", decode(b"", None))
            return items

        self._names[number] = name
        self._writes.append((name, b"", b"", write))
        self._reads[number << 3 | BYTES] = name, read, False

    def encode(self, obj: Object) -> bytes:
        pieces = []
        for name, absent, tag, encode in self._writes:
            if name not in obj:
                pieces.append(absent)
            elif tag:
                data = encode(obj[name])
                size = len(data)
                pieces += tag, _SHORT[size] if size < 128 else varint(size), data
            else:
                pieces.append(encode(obj[name]))
        return b"".join(pieces)

    def decode(self, data: bytes, into: Object | None = None) -> Object:
        """The fields that are set, without zero values of those that are no pointers.

        Raises ValueError.
        """
        found: Object = {} if into is None else into
        reads, at, end = self._reads, 0, len(data)
        try:
            while at < end:
                tag = data[at]
                at += 1
                if tag > 0x7F:
                    tag, at = read_varint(data, at - 1)
                if tag not in reads:
                    self._check_unknown(tag)
                    at = _skip(data, at, tag & 7)
                    continue
                given: Any
                if tag & 7 == VARINT:
                    given, at = read_varint(data, at)
                else:
                    size = data[at]
                    at += 1
                    if size > 0x7F:
                        size, at = _read_size(data, at - 1)
                    start, at = at, at + size
                    if at > end:
                        raise ValueError(_EOF)
                    given = data[start:at]
                name, decode, pointer = reads[tag]
                value = decode(given, found.get(name))
                if value or pointer:
                    found[name] = value
                else:
                    found.pop(name, None)
        except IndexError:
            raise ValueError(_EOF) from None
        return found

    def _check_unknown(self, tag: int) -> None:
        """Raises ValueError for an illegal tag and for a known field of another wire type."""
        number, wire_type = _signed(tag >> 3, 32), tag & 7
        if wire_type == GROUP_END:
            raise ValueError(f"proto: {self.name}: wiretype end group for non-group")
        if number <= 0:
            raise ValueError(f"proto: {self.name}: illegal tag {number} (wire type {tag})")
        if number in self._names:
            name = self._names[number]
            go_name = _GO_NAMES.get(name, name[0].upper() + name[1:])
            raise ValueError(f"proto: wrong wireType = {wire_type} for field {go_name}")


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if shift > 63:
            raise ValueError("proto: integer overflow")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), at
        shift += 7


def _read_size(data: bytes, at: int) -> tuple[int, int]:
    size, at = read_varint(data, at)
    if size >= 2**63:
        raise ValueError("proto: negative length found during unmarshaling")
    return size, at


def _skip(data: bytes, at: int, wire_type: int) -> int:
    """The end of an unknown field."""
    if wire_type == VARINT:
        return read_varint(data, at)[1]
    if wire_type == GROUP:
        return _skip_group(data, at)
    if wire_type == BYTES:
        size, at = _read_size(data, at)
    elif wire_type in (FIXED64, FIXED32):
        size = 8 if wire_type == FIXED64 else 4
    else:
        raise ValueError(f"proto: illegal wireType {wire_type}")
    if at + size > len(data):
        raise ValueError(_EOF)
    return at + size


def _skip_group(data: bytes, at: int) -> int:
    depth = 1
    while depth:
        tag, at = read_varint(data, at)
        wire_type = tag & 7
        if wire_type in (GROUP, GROUP_END):
            depth += 1 if wire_type == GROUP else -1
        else:
            at = _skip(data, at, wire_type)
    return at
