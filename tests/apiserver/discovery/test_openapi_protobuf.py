"""The OpenAPI documents in protobuf say what they say in JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.apiserver.clients import Client, Process
from tests.apiserver.codec.proto_client import fields

SPEC_V2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
SPEC_V3 = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
LEASES_V3 = "/openapi/v3/apis/coordination.k8s.io/v1"
POST = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with Process(tmp_path_factory.mktemp("openapi") / "data") as process:
        client = Client(process.url)
        yield client
        client.close()


def read(client: Client, path: str, accept: str) -> tuple[bytes, str | None]:
    response = client.send("GET", path, accept=accept)
    data = response.read()
    assert response.status == 200
    assert response.headers["Vary"] == "Accept"
    return data, response.headers["Content-Type"]


def all_of(data: bytes, *numbers: int) -> list[bytes]:
    """The values at a path of field numbers."""
    found = [data]
    for wanted in numbers:
        found = [value for each in found for number, value in fields(each) if number == wanted]
    return found


def named(data: bytes, *numbers: int) -> dict[str, bytes]:
    """The pairs of name and value at a path of field numbers."""
    pairs = all_of(data, *numbers)
    return {all_of(each, 1)[0].decode(): b"".join(all_of(each, 2)) for each in pairs}


def extensions(data: bytes, number: int) -> dict[str, Any]:
    found = named(data, number)
    return {name: yaml.safe_load(all_of(value, 2)[0]) for name, value in found.items()}


def texts(data: bytes, *numbers: int) -> list[str]:
    return [value.decode() for value in all_of(data, *numbers)]


def one(schema: dict[str, Any], key: str) -> list[str]:
    return [schema[key]] if key in schema else []


def test_version_2_in_protobuf(client: Client) -> None:
    document = client.call("GET", "/openapi/v2").json
    data, content_type = read(client, "/openapi/v2", SPEC_V2)
    assert content_type == SPEC_V2.replace("@", ".")
    assert texts(data, 1) == ["2.0"]
    assert texts(data, 2, 1) == ["Kubernetes"]
    definitions = named(data, 9, 1)
    assert definitions.keys() == document["definitions"].keys()
    for name, schema in document["definitions"].items():
        _compare_v2(definitions[name], schema)
    paths = named(data, 8, 2)
    assert paths.keys() == document["paths"].keys()
    post = document["paths"][POST]["post"]
    (found,) = all_of(paths[POST], 4)
    assert texts(found, 5) == [post["operationId"]]
    assert (texts(found, 6), texts(found, 7)) == (post["produces"], post["consumes"])
    assert extensions(found, 13) == {key: post[key] for key in post if key.startswith("x-")}
    body = texts(found, 8, 1, 1, 2)
    query = texts(found, 8, 1, 2, 3, 4)
    assert body + query == [each["name"] for each in post["parameters"]]
    assert texts(paths[POST], 9, 1, 2, 4, 4) == ["namespace"]
    assert named(found, 9, 1).keys() == post["responses"].keys()


def _compare_v2(data: bytes, schema: dict[str, Any]) -> None:
    assert texts(data, 1) == one(schema, "$ref")
    assert texts(data, 22, 1) == one(schema, "type")
    assert texts(data, 2) == one(schema, "format")
    assert texts(data, 4) == one(schema, "description")
    assert texts(data, 19) == schema.get("required", [])
    assert extensions(data, 31) == {key: schema[key] for key in schema if key.startswith("x-")}
    properties = named(data, 25, 1)
    assert properties.keys() == schema.get("properties", {}).keys()
    for name, each in schema.get("properties", {}).items():
        _compare_v2(properties[name], each)
    for number, key in ((23, "items"), (21, "additionalProperties")):
        inner = all_of(data, number, 1)
        assert len(inner) == (key in schema)
        for each in inner:
            _compare_v2(each, schema[key])


def test_version_3_in_protobuf(client: Client) -> None:
    document = client.call("GET", LEASES_V3).json
    data, content_type = read(client, LEASES_V3, SPEC_V3)
    assert content_type == SPEC_V3.replace("@", ".")
    assert texts(data, 1) == ["3.0.0"]
    schemas = named(data, 5, 1, 1)
    assert schemas.keys() == document["components"]["schemas"].keys()
    for name, schema in document["components"]["schemas"].items():
        _compare_v3(schemas[name], schema)
    paths = named(data, 4, 1)
    assert paths.keys() == document["paths"].keys()
    post = document["paths"][POST]["post"]
    (found,) = all_of(paths[POST], 6)
    assert texts(found, 5) == [post["operationId"]]
    assert texts(found, 6, 1, 1) == [each["name"] for each in post["parameters"]]
    assert named(found, 7, 1, 2, 1).keys() == post["requestBody"]["content"].keys()
    responses = named(found, 8, 2)
    assert responses.keys() == post["responses"].keys()
    assert named(responses["201"], 1, 3, 1).keys() == post["responses"]["201"]["content"].keys()


def _compare_v3(data: bytes, schema: dict[str, Any]) -> None:
    """A SchemaOrReference."""
    assert texts(data, 2, 1) == one(schema, "$ref")
    assert texts(data, 1, 25) == one(schema, "type")
    assert texts(data, 1, 35) == one(schema, "format")
    assert texts(data, 1, 34) == one(schema, "description")
    assert len(all_of(data, 1, 33)) == ("default" in schema)
    for inner, each in zip(all_of(data, 1, 26), schema.get("allOf", []), strict=True):
        _compare_v3(inner, each)
    properties = named(data, 1, 31, 1)
    assert properties.keys() == schema.get("properties", {}).keys()
    for name, each in schema.get("properties", {}).items():
        _compare_v3(properties[name], each)


@pytest.mark.parametrize(
    ("path", "accept", "content_type"),
    [
        ("/openapi/v2", "*/*", "application/json"),
        ("/openapi/v2", f"application/json, {SPEC_V2}", "application/json"),
        ("/openapi/v2", f"{SPEC_V2}, application/json", SPEC_V2.replace("@", ".")),
        ("/openapi/v2", f"{SPEC_V2};q=0.1, application/json", "application/json"),
        (LEASES_V3, SPEC_V3.replace("@", "."), SPEC_V3.replace("@", ".")),
        (LEASES_V3, "application/*", "application/json"),
    ],
)
def test_the_accept_header_decides(
    client: Client, path: str, accept: str, content_type: str
) -> None:
    assert read(client, path, accept)[1] == content_type


@pytest.mark.parametrize(
    ("path", "accept"), [("/openapi/v2", SPEC_V3), (LEASES_V3, SPEC_V2), (LEASES_V3, "text/html")]
)
def test_other_types_are_refused_without_a_word(client: Client, path: str, accept: str) -> None:
    response = client.send("GET", path, accept=accept)
    assert (response.status, response.read()) == (406, b"")


def test_the_tag_is_that_of_the_json(client: Client) -> None:
    plain = client.send("GET", "/openapi/v2")
    plain.read()
    binary = client.send("GET", "/openapi/v2", accept=SPEC_V2)
    binary.read()
    assert binary.headers["ETag"] == plain.headers["ETag"]
