"""OpenAPI documents in protobuf, which kubectl reads to validate what it sends.

Source: gnostic's openapiv2/OpenAPIv2.proto and openapiv3/OpenAPIv3.proto. Only fields that our
documents have are listed.

A type is a scalar (string, bool), `any` (YAML), a message, `*` for a repeated one, `N:` for a
message that holds the rest in its field N, or `named:` for repeated pairs of a name and a value.
`x-` stands for all extensions. A `default` holds a text; an object leaves it empty.
"""

from __future__ import annotations

from typing import Any

from leases.apiserver.codec.protobuf_wire import VARINT, tag_of, with_length
from leases.apiserver.codec.yaml.yaml_output import to_yaml

Messages = dict[str, dict[str, tuple[int, str]]]


def _messages(fields: dict[str, str]) -> Messages:
    """Per message and name of a field in JSON: its number and type."""
    found: Messages = {}
    for message, text in fields.items():
        split = [field.split(" ") for field in text.split(", ")]
        found[message] = {name: (int(number), kind) for number, name, kind in split}
    return found


_V2 = _messages(
    {
        "Document": "1 swagger string, 2 info Info, 8 paths 2:named:PathItem, "
        "9 definitions 1:named:Schema",
        "Info": "1 title string, 2 version string",
        "PathItem": "2 get Operation, 3 put Operation, 4 post Operation, 5 delete Operation, "
        "8 patch Operation, 9 parameters 1:Parameter*",
        "Operation": "1 tags string*, 3 description string, 5 operationId string, "
        "6 produces string*, 7 consumes string*, 8 parameters 1:Parameter*, "
        "9 responses 1:named:1:Response, 10 schemes string*, 13 x- named:any",
        "Body": "1 description string, 2 name string, 3 in string, 4 required bool, "
        "5 schema Schema",
        "Query": "1 required bool, 2 in string, 3 description string, 4 name string, "
        "6 type string, 20 uniqueItems bool",
        "Path": "1 required bool, 2 in string, 3 description string, 4 name string, "
        "5 type string, 19 uniqueItems bool",
        "Response": "1 description string, 2 schema 1:Schema",
        "Schema": "1 $ref string, 2 format string, 4 description string, 5 default any, "
        "19 required string*, 21 additionalProperties 1:Schema, 22 type 1:string, "
        "23 items 1:Schema, 24 allOf Schema*, 25 properties 1:named:Schema, 31 x- named:any",
    }
)
_V3 = _messages(
    {
        "Document": "1 openapi string, 2 info Info, 4 paths 1:named:PathItem, "
        "5 components Components",
        "Info": "1 title string, 6 version string",
        "PathItem": "4 get Operation, 5 put Operation, 6 post Operation, 7 delete Operation, "
        "10 patch Operation, 13 parameters 1:Query*",
        "Operation": "1 tags string*, 3 description string, 5 operationId string, "
        "6 parameters 1:Query*, 7 requestBody 1:RequestBody, 8 responses 2:named:1:Response, "
        "13 x- named:any",
        "Query": "1 name string, 2 in string, 3 description string, 4 required bool, "
        "10 schema SchemaOrReference",
        "RequestBody": "1 description string, 2 content 1:named:MediaType, 3 required bool",
        "MediaType": "1 schema SchemaOrReference",
        "Response": "1 description string, 3 content 1:named:MediaType",
        "Components": "1 schemas 1:named:SchemaOrReference",
        "Reference": "1 $ref string",
        "Schema": "20 uniqueItems bool, 23 required string*, 25 type string, "
        "26 allOf SchemaOrReference*, 27 oneOf SchemaOrReference*, "
        "30 items 1:SchemaOrReference, 31 properties 1:named:SchemaOrReference, "
        "32 additionalProperties 1:SchemaOrReference, 33 default default, "
        "34 description string, 35 format string, 36 x- named:any",
    }
)


def encode_v2(document: dict[str, Any]) -> bytes:
    return _bytes(_V2, "Document", document)


def encode_v3(document: dict[str, Any]) -> bytes:
    return _bytes(_V3, "Document", document)


def _field(messages: Messages, number: int, kind: str, value: Any) -> bytes:
    if kind.endswith("*"):
        return b"".join([_field(messages, number, kind[:-1], each) for each in value])
    if kind.startswith("named:"):
        named = kind.removeprefix("named:")
        return b"".join(
            [
                with_length(
                    tag_of(number),
                    _field(messages, 1, "string", name) + _field(messages, 2, named, each),
                )
                for name, each in value.items()
            ]
        )
    if kind == "bool":
        return tag_of(number, VARINT) + b"\1" if value else b""
    data = _bytes(messages, kind, value)
    return with_length(tag_of(number), data) if data or kind != "string" else b""


def _bytes(messages: Messages, kind: str, value: Any) -> bytes:
    if kind == "string":
        return str(value).encode()
    if kind == "any":
        return with_length(tag_of(2), to_yaml(value))
    number, colon, inner = kind.partition(":")
    if colon:
        return _field(messages, int(number), inner, value)
    if kind == "default":
        return with_length(tag_of(3), value.encode()) if isinstance(value, str) else b""
    if kind not in messages:
        return _bytes(messages, _choice(kind, value), value)
    found = dict(value)
    extensions = {name: found.pop(name) for name in value if name.startswith("x-")}
    if extensions:
        found["x-"] = extensions
    fields = sorted((messages[kind][name], each) for name, each in found.items())
    return b"".join([_field(messages, *field, each) for field, each in fields])


def _choice(kind: str, value: Any) -> str:
    """The field that holds the value in a message of alternatives."""
    if kind == "Parameter":
        return {"body": "1:Body", "query": "2:3:Query", "path": "2:4:Path"}[value["in"]]
    assert kind == "SchemaOrReference", kind  # noqa: S101 - the tables have no other
    return "2:Reference" if "$ref" in value else "1:Schema"
