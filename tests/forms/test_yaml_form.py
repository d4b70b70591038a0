"""The YAML form marks the lines that are wrong in its own text."""

from __future__ import annotations

import pytest

from dashboard.forms.yaml_form import YamlForm


def marked(form: YamlForm) -> str:
    return str(form["text"]).partition("<textarea")[0]


def test_a_line_that_is_wrong_in_one_form_is_marked_in_no_other():
    wrong = YamlForm({"text": "kind: Lease\n\tspec:\n"})
    assert not wrong.is_valid()
    assert marked(wrong).count('class="bad"') == 1
    assert 'class="bad"' not in marked(YamlForm())
    good = YamlForm({"text": "kind: Lease\nspec:\n"})
    good.is_valid()
    assert 'class="bad"' not in marked(good)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "leaseDurationSeconds: abc",
            "leaseDurationSeconds is a whole number, such as 15; 'abc' is",
        ),
        ("leaseTransitions: 1.5", "leaseTransitions is a whole number, such as 15; '1.5' is none."),
        ("holderIdentity: 7", "holderIdentity is text: put 7 in quotes."),
        ("renewTime: noon", "renewTime is a time such as 2026-"),
    ],
)
def test_a_value_of_the_wrong_type_is_one_sentence_at_its_line(line, said):
    shown = "kind: Lease\nspec:\n  strategy: a\n"
    form = YamlForm({"text": f"{shown}  {line}\n", "shown": shown, "seen_term": "x"})
    assert not form.is_valid()
    assert [(one.anchor, one.text.startswith(said)) for one in form.problems()] == [
        ("line-4", True)
    ]
