"""The YAML form marks the lines that are wrong in its own text."""

from __future__ import annotations

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
