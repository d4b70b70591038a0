"""The YAML form: a whole Lease as text; what differs from the shown text is sent."""

import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml
from django import forms

from dashboard.forms.admin_form import FieldProblem
from dashboard.forms.edit_form import LOST, TermForm
from dashboard.forms.fields import YamlEditor, one_line_break
from leases.domain.edit import YamlEdit, at_path, patch_between

MAX_DEPTH = 20
_PATH = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


class YamlProblem(Exception):
    """What is wrong, in one sentence without its place; lines and columns count from 1."""

    def __init__(self, text: str, *, line: int, column: int = 0, path: str = "") -> None:
        super().__init__(text)
        self.text, self.line, self.column, self.path = text, line, column, path

    @property
    def sentence(self) -> str:
        at = f", column {self.column}" if self.column else ""
        return f"Line {self.line}{at}: {self.text}"


class Document(msgspec.Struct, frozen=True):
    """`lines`: the line of each path, such as `spec.holderIdentity`."""

    value: dict[str, Any]
    lines: dict[str, int]

    def line_of(self, path: str) -> int:
        """Return the line of a field, else of the nearest field around it."""
        steps = [key or f"[{index}]" for key, index in _PATH.findall(path)]
        for length in range(len(steps), 0, -1):
            if found := self.lines.get(_joined(steps[:length])):
                return found
        return 1


class _Loader(yaml.SafeLoader):
    """Reads what JSON can say: no dates, no aliases, no keys twice."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            raise _at("Write the value instead of an alias (*).", self.peek_event().start_mark)  # type: ignore[no-untyped-call]
        return super().compose_node(parent, index)


# A time stays text, as in JSON.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_yaml(text: str) -> Document:
    """Raises YamlProblem."""
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            lines = dict(_lines(node)) if node is not None else {}
            value = _value(loader, node) if node is not None else None
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise _said(error) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise YamlProblem(f"This is no YAML: {str(error).splitlines()[0]}", line=1) from None
    if not isinstance(value, dict):
        raise YamlProblem("Write the fields of a Lease, such as spec:.", line=1)
    return Document(value, lines)


def _lines(node: yaml.Node, path: tuple[str, ...] = ()) -> Iterator[tuple[str, int]]:
    """Yield each path with its line. Raises YamlProblem for what JSON cannot say."""
    if len(path) > MAX_DEPTH:
        raise _at("This is too deep for a Lease.", node.start_mark)
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            name = key.value
            if not isinstance(name, str) or key.tag == "tag:yaml.org,2002:merge":
                raise _at("A key is plain text.", key.start_mark)
            if name in seen:
                raise _at(f"{name} is there twice.", key.start_mark)
            seen.add(name)
            yield _joined((*path, name)), key.start_mark.line + 1
            yield from _lines(value, (*path, name))
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield _joined((*path, f"[{index}]")), item.start_mark.line + 1
            yield from _lines(item, (*path, f"[{index}]"))


def _value(loader: _Loader, node: yaml.Node) -> Any:
    """Return a node as JSON would have it: each key is text."""
    if isinstance(node, yaml.MappingNode):
        return {key.value: _value(loader, value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_value(loader, item) for item in node.value]
    value = loader.construct_object(node)
    finite = not isinstance(value, float) or math.isfinite(value)
    if value is None or (isinstance(value, str | int | float) and finite):
        return value
    raise _at("JSON has no such value.", node.start_mark)


def _joined(steps: Any) -> str:
    return ".".join(steps).replace(".[", "[")


def _at(text: str, mark: Any) -> YamlProblem:
    return YamlProblem(text, line=mark.line + 1, column=mark.column + 1)


def _said(error: yaml.MarkedYAMLError) -> YamlProblem:
    mark = error.problem_mark or error.context_mark
    problem = error.problem or "this is no YAML"
    if "'\\t'" in problem:
        problem = "a tab. YAML indents with spaces only"
    if mark is None:
        return YamlProblem(f"{problem}.", line=1)
    return _at(f"{problem}.", mark)


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
