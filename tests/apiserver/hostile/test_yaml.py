"""YAML that is malformed, expands without end or names Python objects."""

from __future__ import annotations

import select

import pytest

from tests.apiserver.clients import LEASES, Client, Process
from tests.apiserver.codec.wire import connect, exchange, hear, message
from tests.apiserver.hostile.conftest import APPLY, YAML, patch, post

LISTS = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (at, at, b",".join([b"*%c" % (at - 1)] * 9)) for at in b"bcdefghijk"
)


MAPS = b"a: &a {x: 1}\n" + b"".join(
    b"%c: &%c {p: *%c, q: *%c, r: *%c}\n" % (at, at, at - 1, at - 1, at - 1)
    for at in b"bcdefghijklmnopqrstuvwxyz"
)


@pytest.mark.parametrize("bomb", [LISTS, MAPS], ids=["lists", "maps"])
def test_aliases_of_aliases_are_refused(api: Process, bomb: bytes) -> None:
    for answer in (post(api, bomb, YAML), patch(api, bomb, APPLY)):
        assert answer.code == 400
        assert "yaml: document contains excessive aliasing" in answer.status["message"]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (b"&a [*a]", "anchor 'a' value contains itself"),
        (b"a: *b", "unknown anchor 'b' referenced"),
        (b'a: !!binary "%%%"', "!!binary value contains invalid base64 data"),
        (b"a: !!int x", "cannot decode !!str `x` as a !!int"),
        (b"a: .inf", "json: unsupported value: +Inf"),
        (b"<<: [1]", "map merge requires map or sequence of maps as the value"),
        (b"? [a]\n: 1", "invalid map key"),
        (b"a: b: c", "mapping values are not allowed in this context"),
        (b"a: \x00", "control characters are not allowed"),
        (b"a: \xff", "invalid leading UTF-8 octet"),
        (b"%YAML 9.9\n--- a", "found incompatible YAML document"),
        (b"a: [", "did not find expected node content"),
    ],
)
def test_yaml_that_cannot_be_read(api: Process, text: bytes, answer: str) -> None:
    for heard in (post(api, text, YAML), patch(api, text, APPLY)):
        assert heard.code == 400
        assert answer in heard.status["message"]


@pytest.mark.parametrize(
    ("text", "holder"),
    [
        (b"!!python/object/apply:os.system [id]", None),
        (b"spec: {holderIdentity: !!python/name:os.system id}", "id"),
        (b"spec: {holderIdentity: !mine x}", "x"),
        (b"spec: {holderIdentity: !!str 12}", "12"),
        (b"spec: {holderIdentity: !!binary aGk=}", "hi"),
        (b"spec: {holderIdentity: 2024-05-01}", "2024-05-01"),
        (b"spec: &s {holderIdentity: a}\nother: *s", "a"),
        (b"x: &x {holderIdentity: a}\nspec: {<<: *x}", "a"),
        (b'\xef\xbb\xbfspec: {holderIdentity: "\\0"}', "\0"),
    ],
)
def test_yaml_tags_make_no_objects(api: Process, text: bytes, holder: str | None) -> None:
    query = "?dryRun=All&fieldValidation=Ignore"
    named = text if text[:2] == b"!!" else b"%s\nmetadata: {name: t}" % text
    heard = exchange(api.url, message("POST", LEASES + query, named, YAML))
    assert heard.code == (400 if holder is None else 201)
    if holder is not None:
        client = Client(api.url)
        made = client.call("POST", LEASES + query, named, content_type=YAML)
        client.close()
        assert made.json["spec"]["holderIdentity"] == holder


def test_others_are_served_while_a_huge_document_is_read(api: Process) -> None:
    with connect(api.url) as slow, connect(api.url) as quick:
        slow.sendall(message("POST", LEASES, b"- 1\n" * 99_000, YAML))
        served = 0
        while not select.select([slow], [], [], 0)[0]:
            quick.sendall(message("GET", "/livez"))
            assert hear(quick).code == 200
            served += 1
        assert hear(slow).status["code"] == 400
    assert served > 5


@pytest.mark.parametrize(
    "bomb", [b"- 1\n" * 200_000, b"{" + b"a: {}," * 200_000 + b"}"], ids=["list", "map"]
)
def test_more_keys_and_values_than_an_object_has_are_refused(api: Process, bomb: bytes) -> None:
    said = "document has more than 100000 keys and values"
    assert said in post(api, bomb, YAML).status["message"]
    assert said in patch(api, bomb, APPLY).status["message"]


@pytest.mark.parametrize(
    "number", [b"0x" + b"f" * 2_000_000, b"1" + b":1" * 1_000_000, b"9" * 2_000_000]
)
def test_a_long_number_is_refused_for_its_type(api: Process, number: bytes) -> None:
    text = b"metadata: {name: n}\nspec: {leaseDurationSeconds: %s}" % number
    assert post(api, text, YAML).code == 400
