"""Go's reading of JSON, YAML, times and selectors, and its words for what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from leases.apiserver.codec.decoding import DecodeError, Decoder
from leases.apiserver.codec.go_json import JsonError, Number, dumps, loads
from leases.apiserver.codec.go_values import human_duration
from leases.apiserver.codec.schema import LEASE
from leases.apiserver.codec.yaml_input import YamlError, load_yaml
from leases.apiserver.http.request import warning_headers
from leases.wire.microtime import normal_microtime, normal_time
from leases.wire.selectors import SelectorError, parse_fields, parse_labels


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (b"", "unexpected end of JSON input"),
        (b'{"a"', "unexpected end of JSON input"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b'"\n"', r"invalid character '\n' in string literal"),
        (b'"\\q"', "invalid character 'q' in string escape code"),
        (b'"\\u00g0"', r"invalid character 'g' in \u hexadecimal character escape"),
        (b"-", "invalid character ' ' in numeric literal"),
        (b"1.x", "invalid character 'x' after decimal point in numeric literal"),
        (b"1e+", "invalid character ' ' in exponent of numeric literal"),
        (b"NaN", "invalid character 'N' looking for beginning of value"),
        (b"truth", "invalid character 't' in literal true (expecting 'e')"),
        (b"\xff", "invalid character 'ÿ' looking for beginning of value"),
        (b"[" * 20_000, "exceeded max depth"),
    ],
)
def test_a_body_that_is_no_json(text: bytes, answer: str) -> None:
    with pytest.raises(JsonError) as error:
        loads(text)
    assert str(error.value) == answer


def test_json_keeps_what_go_keeps() -> None:
    value = loads(b'{"a":1,"a":15.0,"b":"\\ud800\xe2\x82","c":123456789012345678901}')
    assert value.pairs[0] == ("a", 1)
    assert isinstance(value["a"], Number)
    assert value["a"].text == "15.0"
    assert value["b"] == "\ufffd\ufffd\ufffd"
    assert value["c"].text == "123456789012345678901"
    assert dumps("<\u2028>&é") == '"\\u003c\\u2028\\u003e\\u0026é"'.encode()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            b"a: yes\nb: 'yes'\nc: ~\nd: 012\ne: 0x1F\n",
            {"a": True, "b": "yes", "c": None, "d": 10, "e": 31},
        ),
        (b"t: 2024-05-01T10:00:00.000000Z\n1: x\n", {"t": "2024-05-01T10:00:00.000000Z", "1": "x"}),
        (b"a: 1\n---\na: 2\n", {"a": 1}),
        (b"", None),
    ],
)
def test_yaml_is_read_as_yaml_1_1(text: bytes, value: Any) -> None:
    assert load_yaml(text).value == value


def test_yaml_reports_repeated_keys_by_line_and_errors_in_libyamls_words() -> None:
    assert load_yaml(b"a: 1\nb: 2\na: 3\n").duplicates == ['line 3: key "a" already set in map']
    with pytest.raises(YamlError, match="^yaml: line 2: mapping values are not allowed in this"):
        load_yaml(b"x:\n  a: b: c\n")


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("2024-02-29T00:00:00,5Z", "2024-02-29T00:00:00Z"),
        ("2024-03-01T00:00:00+00:01", "2024-02-29T23:59:00Z"),
        ("0001-01-01T00:00:00Z", None),
        ("2024-05-01T9:00:00Z", "2024-05-01T09:00:00Z"),
    ],
)
def test_times_come_back_in_utc(text: str, normal: str | None) -> None:
    assert normal_time(text) == normal


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("2023-02-29T00:00:00.000000Z", "day out of range"),
        ("2024-05-01T10:60:00.000000Z", "minute out of range"),
        ("2024-05-01T10:00:00.000000+25:00", "time zone offset hour out of range"),
        ("2024-05-01T10:00:00.000000+02:61", "time zone offset minute out of range"),
        ("2024-05-01T1", 'cannot parse "" as ":"'),
    ],
)
def test_times_that_cannot_be(text: str, answer: str) -> None:
    with pytest.raises(ValueError, match=answer):
        normal_microtime(text)


@pytest.mark.parametrize(
    ("selector", "labels", "matches"),
    [
        ("a in (x,),b", {"a": "", "b": "1"}, True),
        ("a notin (x)", {}, True),
        ("a>5,a<7", {"a": "6"}, True),
        ("a>5", {"a": "six"}, False),
        ("!a, b != c", {"b": "d"}, True),
        ("in in (notin)", {"in": "notin"}, True),
    ],
)
def test_labels_are_selected(selector: str, labels: dict[str, str], matches: bool) -> None:
    assert all(matcher(labels) for matcher in parse_labels(selector)) is matches


@pytest.mark.parametrize(
    ("selector", "answer"),
    [
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or '\\)'"),
        ("a,", "found '', expected: identifier after ','"),
        ("_", 'parse requirement: <nil>: Invalid value: "_": name part must consist'),
    ],
)
def test_selectors_that_cannot_be_read(selector: str, answer: str) -> None:
    with pytest.raises(SelectorError, match=answer):
        parse_labels(selector)


def test_warnings_are_cut_when_there_are_too_many() -> None:
    assert warning_headers(['a "b"', "line\nbreak"]) == [
        b'299 - "a \\\\"b\\\\""'.replace(b"\\\\", b"\\")
    ]
    long = warning_headers([f"{number:03}" + "x" * 500 for number in range(20)])
    assert len(long) == 16
    assert {len(value) for value in long} == {256 + len('299 - ""')}


def test_fields_may_be_escaped() -> None:
    (term,) = parse_fields(r"metadata.name!=a\,b\=c")
    assert (term.field, term.value, term.negated) == ("metadata.name", "a,b=c", True)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "<invalid>"), (0, "0s"), (119, "119s"), (120, "2m"), (125, "2m5s"), (10800, "3h"),
     (30_000, "8h"),
     (200_000, "2d7h"), (700_000, "8d"), (70_000_000, "2y80d"), (300_000_000, "9y")],
)  # fmt: skip
def test_ages_are_short(seconds: int, text: str) -> None:
    assert human_duration(seconds) == text


def test_metadata_that_a_client_sends_back_must_have_the_stored_types() -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}
    known: dict[str, Any] = {"name": "a", "ownerReferences": [owner]}
    sent: dict[str, Any] = {"metadata": {"ownerReferences": [dict(owner)], "name": "a"}, "spec": {}}
    assert Decoder(known).decode(sent, LEASE)["metadata"] == known
    sent["metadata"]["ownerReferences"] = [owner | {"controller": 1}]
    with pytest.raises(DecodeError, match="cannot unmarshal number into Go struct field"):
        Decoder(known).decode(sent, LEASE)
