"""YAML in and out, held against what go-yaml 2.4 and sigs.k8s.io/yaml wrote for the same text."""

from __future__ import annotations

import pytest

from leases.apiserver.codec.go_json import exact_json
from leases.apiserver.codec.yaml_input import YamlError, load_yaml
from leases.apiserver.codec.yaml_output import to_yaml
from tests.apiserver.clients import LEASES, Client, lease

UINT64_KEY = "unsupported map key of type: uint64, key: 0xffffffffffffffff, value: "


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain", "plain"),
        ("2026-1-2", '"2026-1-2"'),
        ("2026-13-02", "2026-13-02"),
        ("2026-01-02T03:04:05.5+05:30", '"2026-01-02T03:04:05.5+05:30"'),
        ("2026-02-30", "2026-02-30"),
        ("190:20:30.15", '"190:20:30.15"'),
        ("1:99", "1:99"),
        (".5_0", '".5_0"'),
        ("1__", '"1__"'),
        ("0o8", "0o8"),
        ("1e999", "1e999"),
        ("Y", '"Y"'),
        ("yEs", "yEs"),
        ("<<", "<<"),
        ("---x", "'---x'"),
        ("a: b", "'a: b'"),
        ("a:b", "a:b"),
        ("it's #1", "'it''s #1'"),
        ("\u2028 x", '"\\L x"'),
        ("x\u2028y", "'x\u2028    y'"),
        ("\ufeffa b", '"\\uFEFF\\x61\\x20\\x62"'),
        ("\U0001f600", '"\\U0001F600"'),
        ("a\n b\n\n", "|+\n    a\n     b\n\n"),
        ("a \nb", '"a \\nb"'),
        ("\ta\nb", '"\\ta\\nb"'),
        ("x" * 80 + " y z", "x" * 80 + "\n    y z"),
        ("x" * 80 + "  y", "x" * 80 + "  y"),
        ("-" * 80 + " '", "'" + "-" * 80 + "\n    '''"),
        ("\x01" + "x" * 80 + "  y", '"\\x01' + "x" * 80 + '\n    \\ y"'),
        ("a\x85 b", "a b"),
    ],
)
def test_a_text_is_quoted_and_folded_as_by_go(text: str, written: str) -> None:
    tail = "" if written.endswith("\n") else "\n"
    assert to_yaml({"spec": {"a": text}}).decode() == f"spec:\n  a: {written}{tail}"


def test_names_sort_by_their_numbers_and_letters_last() -> None:
    names = ("a10", "a9", "a-b", "ab", "a.b", "A", "a01", "a1", "", "k: 1", "x\r", "y" * 129)
    lines = to_yaml({name: [] for name in names}).decode().splitlines()
    assert [line.removesuffix(": []") for line in lines] == [
        '""', "A", "a-b", "a.b", "a1", "a01", "a9", "a10", "ab", "'k: 1'",
        '? "x\\r"', "", "? " + "y" * 129, "",
    ]  # fmt: skip


def test_nested_lists_stand_at_the_place_of_their_name() -> None:
    value = {"a": [[1, [True]], {}, {"b": [None], "c": "x\ny"}], "z": {}}
    assert to_yaml(value).decode() == (
        "a:\n- - 1\n  - - true\n- {}\n- b:\n  - null\n  c: |-\n    x\n    y\nz: {}\n"
    )


@pytest.mark.parametrize(
    ("text", "json"),
    [
        ("1.0", "1"),
        ("1e2", "100"),
        ("-0.5", '"-0.5"'),
        ("99999999999999999999", '"100000000000000000000"'),
        ("1e21", '"1e+21"'),
        ("1.5e-7", '"1.5e-7"'),
        ("!!float 3", "3"),
        (".5_0", '"0.5"'),
        ("{1.5: a, 1e6: b, 16777217.0: c, yes: d, 0x10: e}",
         '{"1.5":"a","1.6777216e+07":"c","16":"e","1e+06":"b","true":"d"}'),
        ("{b: 1, a: 2}", '{"a":2,"b":1}'),
        ("!!timestamp 2026-01-02", '"2026-01-02"'),
    ],
)  # fmt: skip
def test_a_value_is_what_go_reads_of_its_own_json(text: str, json: str) -> None:
    # exact_json shows numbers that are no plain integers as texts.
    assert exact_json(load_yaml(text.encode()).value).decode() == json


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: .inf", "json: unsupported value: +Inf"),
        ("{~: 1.0}", "unsupported map key of type: %!s(<nil>), key: <nil>, value: 1"),
        (
            "{18446744073709551615: [a, null]}",
            UINT64_KEY + '[]interface {}{"a", interface {}(nil)}',
        ),
        ("{[a, 1]: x}", 'yaml: invalid map key: []interface {}{"a", 1}'),
        ("{{b: 1, true: 1.5}: x}",
         'yaml: invalid map key: map[interface {}]interface {}{true:1.5, "b":1}'),
        ("!!timestamp 2026-02-30", "yaml: cannot decode !!str `2026-02-30` as a !!timestamp"),
        ("a: .nan\nb: !!int x", "yaml: cannot decode !!str `x` as a !!int"),
        ("a: !!int x\nb: [", "yaml: line 2: did not find expected node content"),
        ("<<: 1", "yaml: map merge requires map or sequence of maps as the value"),
        ("&a [*a]", "yaml: anchor 'a' value contains itself"),
        ("%YAML 1.2\n---\na", "yaml: found incompatible YAML document"),
        ("#\n#\n%YAML 1.2\n---\na", "yaml: line 2: found incompatible YAML document"),
    ],
)  # fmt: skip
def test_an_earlier_stage_of_go_fails_first(text: str, message: str) -> None:
    with pytest.raises(YamlError) as error:
        load_yaml(text.encode())
    assert str(error.value) == message


def test_a_repeated_key_is_named_with_the_line_of_its_value() -> None:
    text = b'a: 1\n1: x\n1.0: y\n"1": z\na:\n  - 2\n1: 3\n<<: [{a: 4},\n{a: 5}]\n'
    assert load_yaml(text).duplicates == [
        'line 6: key "a" already set in map',
        "line 7: key 1 already set in map",
        'line 9: key "a" already set in map',
        'line 8: key "a" already set in map',
    ]


def test_a_text_that_yaml_cannot_hold_is_an_internal_error(client: Client) -> None:
    client.call("POST", LEASES, lease("unreadable", holderIdentity="a\x7f"))
    answer = client.call("GET", f"{LEASES}/unreadable", accept="application/yaml")
    assert answer.status == 500
    assert answer.text == (
        "apiVersion: v1\ncode: 500\nkind: Status\n"
        "message: 'yaml: control characters are not allowed'\nmetadata: {}\nstatus: Failure\n"
    )


def test_answers_are_written_so(client: Client) -> None:
    client.call("POST", LEASES, lease("dated", holderIdentity="no"))
    text = client.call("GET", f"{LEASES}/dated", accept="application/yaml").text
    assert '  holderIdentity: "no"\n' in text
    assert '  creationTimestamp: "20' in text
