"""JSON bodies and patches that are malformed, too deep or too large."""

from __future__ import annotations

import pytest

from leases.apiserver.codec.go_json import MAX_DEPTH
from tests.apiserver.clients import LEASES, Process
from tests.apiserver.codec.wire import exchange, message
from tests.apiserver.hostile.conftest import APPLY, MIB, STRATEGIC, YAML, patch, post

JSON_PATCH, MERGE = "application/json-patch+json", "application/merge-patch+json"
TYPED = '"apiVersion":"coordination.k8s.io/v1","kind":"Lease"'


def nested(depth: int, inside: bytes = b"1") -> bytes:
    return b'{"a":' * depth + inside + b"}" * depth


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 5_000, 400_000])
@pytest.mark.parametrize("kind", ["application/json", YAML])
def test_a_body_that_is_too_deep(api: Process, kind: str, depth: int) -> None:
    for body in (nested(depth), b"[" * depth, b"[" * depth + b"]" * depth):
        expected = post(api, body, kind)
        assert expected.code == 400
        assert "exceeded max depth" in expected.status["message"]


@pytest.mark.parametrize("kind", [JSON_PATCH, MERGE, STRATEGIC, APPLY])
@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 100_000])
def test_a_patch_that_is_too_deep(api: Process, kind: str, depth: int) -> None:
    deep = nested(depth)
    body = b'[{"op":"add","path":"/x","value":%s}]' % deep if kind == JSON_PATCH else deep
    expected = patch(api, body, kind)
    assert expected.code == 400
    assert "exceeded max depth" in expected.status["message"]


def test_nesting_within_the_limit_is_an_unknown_field(api: Process) -> None:
    body = b'{"metadata":{"name":"deep"},"zzz":%s}' % nested(MAX_DEPTH - 1)
    expected = exchange(api.url, message("POST", f"{LEASES}?dryRun=All", body))
    assert expected.code == 201
    assert 'unknown field "zzz"' in expected.head.replace("\\", "")


def test_a_json_patch_cannot_dig_deep_by_moving(api: Process) -> None:
    step = (
        '{"op":"add","path":"/y","value":{}},{"op":"move","from":"/z","path":"/y/a"},'
        '{"op":"move","from":"/y","path":"/z"}'
    )
    steps = ",".join(['{"op":"add","path":"/z","value":1}', *([step] * 3000)])
    assert patch(api, f"[{steps}]".encode(), JSON_PATCH).status["code"] == 422


def test_a_json_patch_cannot_grow_by_copying(api: Process) -> None:
    double = '{"op":"copy","from":"/z","path":"/z/-"}'
    steps = ",".join(['{"op":"add","path":"/z","value":["xxxxxxxxxx"]}', *([double] * 60)])
    assert patch(api, f"[{steps}]".encode(), JSON_PATCH).status["code"] == 422


def test_a_json_patch_of_too_many_operations(api: Process) -> None:
    test = '{"op":"test","path":"/kind","value":"Lease"}'
    expected = patch(api, f"[{','.join([test] * 10_001)}]".encode(), JSON_PATCH)
    assert expected.code == 413
    assert "The allowed maximum operations in a JSON patch is 10000" in expected.status["message"]


def test_a_body_of_just_three_mebibytes_is_read_and_one_byte_more_is_not(api: Process) -> None:
    for size, code in ((3 * MIB, 201), (3 * MIB + 1, 413), (4 * MIB, 413), (20 * MIB, 413)):
        body = b'{"metadata":{"name":"big"},"zzz":"'
        body += b"x" * (size - len(body) - 2) + b'"}'
        expected = exchange(api.url, message("POST", f"{LEASES}?dryRun=All", body))
        assert expected.code == code
        if code == 413:
            assert expected.status["message"] == "Request entity too large: limit is 3145728"
            assert expected.status["reason"] == "RequestEntityTooLarge"


@pytest.mark.parametrize("kind", [JSON_PATCH, MERGE, STRATEGIC, APPLY])
def test_a_patch_of_four_mebibytes(api: Process, kind: str) -> None:
    assert patch(api, b" " * 4 * MIB, kind).status["code"] == 413


@pytest.mark.parametrize(
    ("body", "code", "expected"),
    [
        (b"", 400, "unexpected end of JSON input"),
        (b"nul", 400, "invalid character ' ' in literal null (expecting 'l')"),
        (b"[]", 400, "cannot unmarshal array"),
        (b'{"a":\x00}', 400, "invalid character '\\x00' looking for beginning of value"),
        (b'{"a":"\x00"}', 400, "invalid character '\\x00' in string literal"),
        (b'{"a":NaN}', 400, "invalid character 'N' looking for beginning of value"),
        (b'{"a":1}{', 400, "invalid character '{' after top-level value"),
        (b'{"spec":{"leaseDurationSeconds":1e400}}', 400, "cannot unmarshal number 1e400"),
        (b'{"spec":{"leaseDurationSeconds":%s}}' % (b"9" * 5000), 400, "cannot unmarshal number"),
        (b'{"spec":{"holderIdentity":"a","holderIdentity":1}}', 400, "cannot unmarshal number"),
        (b'{"metadata":{"name":"a\\u0000"}}', 422, "a lowercase RFC 1123 subdomain"),
        (b'{"kind":"\xff"}', 400, "no kind"),
    ],
)
def test_json_that_is_none_of_ours(api: Process, body: bytes, code: int, expected: str) -> None:
    heard = post(api, body)
    assert heard.code == code
    assert expected in heard.status["message"]


@pytest.mark.parametrize("kind", ["application/json", YAML])
def test_a_review_that_asks_nonsense(api: Process, kind: str) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    asked = b'{"spec":{"resourceAttributes":{"verb":1e5}}}'
    assert exchange(api.url, message("POST", path, asked, kind)).status["code"] == 400
    for asked in (b'{"spec":{"more":1e5}}', b'{"spec":null}', b'{"more":[1.5,{}]}'):
        assert exchange(api.url, message("POST", path, asked, kind)).status["code"] == 422


def test_bytes_that_are_no_utf_8_become_replacement_characters(api: Process) -> None:
    body = b'{"metadata":{"name":"bytes"},"spec":{"holderIdentity":"a\xff\xed\xa0\x80b\\ud800"}}'
    heard = exchange(api.url, message("POST", f"{LEASES}?dryRun=All", body))
    assert heard.code == 201
    assert '"holderIdentity":"a\ufffd\ufffd\ufffd\ufffdb\ufffd"' in heard.body.decode()


def test_the_last_of_two_equal_keys_counts_with_a_warning(api: Process) -> None:
    body = b'{"metadata":{"name":"twice"},"spec":{"holderIdentity":"a","holderIdentity":"b"}}'
    heard = exchange(api.url, message("POST", f"{LEASES}?dryRun=All", body))
    assert (heard.code, b'"holderIdentity":"b"' in heard.body) == (201, True)
    assert 'duplicate field "spec.holderidentity"' in heard.head.replace("\\", "")
    strict = message("POST", f"{LEASES}?dryRun=All&fieldValidation=Strict", body)
    assert exchange(api.url, strict).status["code"] == 400


def with_finalizers(kind: str) -> bytes:
    names = ",".join(f'"{kind}/{at}"' for at in range(25_000))
    return f'{{{TYPED},"metadata":{{"name":"long","finalizers":[{names}]}}}}'.encode()


@pytest.mark.parametrize("kind", [MERGE, STRATEGIC, APPLY])
def test_long_lists_cost_their_length_and_not_its_square(api: Process, kind: str) -> None:
    exchange(api.url, message("POST", LEASES, with_finalizers("x")))
    query = "?dryRun=All" + ("&fieldManager=x&force=true" if kind == APPLY else "")
    target = f"{LEASES}/long{query}"
    assert exchange(api.url, message("PATCH", target, with_finalizers("y"), kind)).code == 200


@pytest.mark.parametrize("version", ["a/b/c", "///", "x" * 300 + "//"])
@pytest.mark.parametrize("content", [b"", b"\xff\xff\xff"])
def test_an_odd_group_version_in_protobuf_is_refused_in_words(
    api: Process, version: str, content: bytes
) -> None:
    """Also where the message behind it cannot be read."""
    meta = b"\x0a%s%s\x12\x05Lease" % (varint(len(version)), version.encode())
    unknown = b"\x0a%s%s\x12%s%s" % (varint(len(meta)), meta, varint(len(content)), content)
    heard = post(api, b"k8s\0" + unknown, "application/vnd.kubernetes.protobuf")
    assert heard.code == 400
    assert "unexpected GroupVersion string" in heard.status["message"]


def varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128, number >> 7])
