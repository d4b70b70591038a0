"""The YAML form: a whole Lease as text; what differs from the shown text is sent."""

from __future__ import annotations

from typing import Any

from django import forms

from dashboard.forms.admin_form import FieldProblem
from dashboard.forms.read_yaml import Document, YamlProblem, read_yaml
from dashboard.forms.release_form import LOST, TermForm
from dashboard.forms.seen import one_line_break
from dashboard.forms.widgets import YamlEditor
from leases.domain.edit.lease_write import YamlEdit
from leases.domain.edit.merge_patch import at_path, patch_between

MAX_TEXT = 1_500_000  # characters; etcd keeps objects up to 1.5 MiB
MAX_ANNOTATED = 500  # lines
FIXED = (
    ("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"),
    ("metadata", "uid"), ("metadata", "resourceVersion"), ("metadata", "creationTimestamp"),
    ("metadata", "managedFields"), ("metadata", "generation"), ("metadata", "selfLink"),
)  # fmt: skip


class YamlForm(TermForm):
    """`shown` is the text that the form began with."""

    wide = frozenset({"reason", "text"})

    text = forms.CharField(
        label="YAML",
        strip=False,
        widget=YamlEditor,
        error_messages={"required": "Write the fields of the Lease, or open the form again."},
    )
    shown = forms.CharField(required=False, strip=False, widget=forms.HiddenInput)

    document: Document | None = None
    line_problems: list[YamlProblem]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.line_problems = []

    def clean_text(self) -> str:
        text = one_line_break(self.cleaned_data["text"])
        if len(text) > MAX_TEXT:
            raise forms.ValidationError("This is longer than a cluster stores.")
        try:
            self.document = read_yaml(text)
        except YamlProblem as problem:
            self._mark(problem)
            raise forms.ValidationError(problem.sentence) from None
        return text

    def clean(self) -> dict[str, Any]:
        super().clean()
        if self.document is None:
            return self.cleaned_data
        shown = self.shown_value()
        for path in FIXED:
            if at_path(shown, path) != at_path(self.document.value, path):
                self.refuse(".".join(path), f"{'.'.join(path)} cannot be changed here.")
        self.cleaned_data["changes"] = patch_between(shown, self.document.value)
        return self.cleaned_data

    def shown_value(self) -> dict[str, Any]:
        """The Lease that the form began with. Raises ValidationError."""
        try:
            return read_yaml(one_line_break(self.cleaned_data.get("shown", ""))).value
        except YamlProblem:
            raise forms.ValidationError(LOST) from None

    def refuse(self, path: str, text: str) -> None:
        """Add an error at the line of a field."""
        line = self.document.line_of(path) if self.document else 1
        problem = YamlProblem(text, line=line, path=path)
        self._mark(problem)
        self.add_error("text", problem.sentence)

    def problems(self) -> list[FieldProblem]:
        """The errors of the text lead to their lines."""
        others = [one for one in super().problems() if one.label != self.fields["text"].label]
        lines = [
            FieldProblem(f"line-{one.line}", f"Line {one.line}", one.text)
            for one in self.line_problems
        ]
        return [*lines, *others] if lines else super().problems()

    def annotated(self) -> list[tuple[int, str, list[str]]]:
        """Each line with its number and the problems at it; nothing if there are none."""
        if not self.line_problems:
            return []
        lines = one_line_break(str(self.data.get("text", ""))).split("\n")[:MAX_ANNOTATED]
        return [
            (number, line, [one.text for one in self.line_problems if one.line == number])
            for number, line in enumerate(lines, 1)
        ]

    def _mark(self, problem: YamlProblem) -> None:
        self.line_problems.append(problem)
        widget = self.fields["text"].widget
        if isinstance(widget, YamlEditor):
            widget.bad_lines.add(problem.line)

    def wanted(self) -> YamlEdit:
        return YamlEdit(self.cleaned_data["changes"])
