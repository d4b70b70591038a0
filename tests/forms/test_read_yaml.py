"""YAML that a person typed: what it says, and on which line each field is."""

from __future__ import annotations

import pytest

from dashboard.forms.yaml_form import YamlProblem, read_yaml

TEXT = """\
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata:
  labels:
    a.b/c: "1"
  ownerReferences:
  - kind: Node
    name: worker-1
spec:
  leaseDurationSeconds: 15
  renewTime: 2026-11-20T12:04:22.204117Z
"""


def test_a_time_stays_text():
    assert read_yaml(TEXT).value["spec"] == {
        "leaseDurationSeconds": 15, "renewTime": "2026-11-20T12:04:22.204117Z",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("spec", 9),
        ("spec.leaseDurationSeconds", 10),
        ("spec.strategy", 9),
        ("spec.strategy.strategy", 9),
        ("metadata.labels", 4),
        ("metadata.ownerReferences[0].name", 8),
        ("metadata.ownerReferences[0].uid", 7),
        ("nothing", 1),
        ("", 1),
    ],
)
def test_a_path_leads_to_its_line_or_to_the_nearest_around_it(path, line):
    assert read_yaml(TEXT).line_of(path) == line


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("spec:\n\tleaseDurationSeconds: 15", 2, "a tab. YAML indents with spaces only"),
        ("a: 1\na: 2", 2, "a is there twice."),
        ("a: &x 1\nb: *x", 2, "alias"),
        ("a: !!python/object:os.system x", 1, "could not determine a constructor"),
        ("a: .nan", 1, "JSON has no such value."),
        ("a: !!binary aGk=", 1, "JSON has no such value."),
        ("a: {b: [}", 1, ""),
        ("- a", 1, "Write the fields of a Lease"),
        ("", 1, "Write the fields of a Lease"),
        ("a: 1\n---\nb: 2", 2, ""),
        ("? [a]\n: b", 1, "A key is plain text."),
        ("a: {x: 1}\n<<: {b: 1}", 2, "A key is plain text."),
        ("a: \x01", 1, ""),
        ("[" * 5000, 1, ""),
        ("a: " * 3 + "b", 1, ""),
        ('a: 1\nb: "\\ud800"', 2, "this escape is no character"),
        ('"\\udfff": 1', 1, "this escape is no character"),
        ("a: 1\nb: \ud800", 2, "Half of a surrogate pair is no character"),
        ("a: 0x" + "f" * 1_000_000, 1, "A number has 100 characters at most"),
        ("a: 1" + ":1" * 100_000, 1, "A number has 100 characters at most"),
        ("a: !!int " + "9" * 101, 1, "A number has 100 characters at most"),
        ("a:\n" + "- 1\n" * 250_000, 19_999, "A Lease has 20,000 keys and values at most."),
        ("{" + "a: {}, " * 100_000 + "}", 1, "a is there twice."),
        ("[" * 500_000, 1, ""),
        ("a: " + "- " * 500_000, 1, ""),
    ],
)
def test_what_cannot_be_sent_is_refused_at_its_line(text, line, said):
    with pytest.raises(YamlProblem) as refused:
        read_yaml(text)
    assert refused.value.line == line
    assert said in refused.value.text


def test_many_aliases_of_aliases_cost_nothing():
    bomb = "a: &a [x]\n" + "\n".join(
        f"{new}: &{new} [*{old}, *{old}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    with pytest.raises(YamlProblem, match="alias"):
        read_yaml(bomb)


def test_numbers_as_keys_are_text_as_in_json():
    assert read_yaml("1: x\ntrue: y").value == {"1": "x", "true": "y"}


def test_a_long_text_of_a_million_characters_is_read_as_it_is():
    text = "é \U0001f600 " * 200_000
    assert read_yaml(f'a: "{text}"').value == {"a": text}
    assert read_yaml(f"a: '{'9' * 1_000_000}'").value == {"a": "9" * 1_000_000}
