"""Decode as runtime.FromUnstructured does, for objects that a strategic merge patch has made."""

from __future__ import annotations

from typing import Any

from leases.apiserver.codec import schema
from leases.apiserver.codec.decoding import DecodeError, Decoder, ValuePath
from leases.apiserver.codec.go_json import type_word


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
