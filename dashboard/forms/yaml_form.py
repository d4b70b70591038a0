"""The YAML form: a whole Lease as text; what differs from the shown text is sent."""

import difflib
import hashlib
import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml
from django import forms
from django.http import QueryDict

from dashboard.forms.admin_form import FieldProblem, why_not
from dashboard.forms.edit_form import API_NAMES, LOST, OF_A_NEW_ONE, PAIRS, TermForm, pairs_as_text
from dashboard.forms.fields import EXAMPLE, Collision, YamlEditor, one_line_break
from dashboard.parts.lease_head import to_yaml, without_managed_fields
from leases.actions.write_lease import DryRun
from leases.domain import edit
from leases.domain.lease import Lease
from leases.wire.microtime import normal_microtime
from leases.wire.status import ApiError

MAX_DEPTH = 20
MAX_NODES = 20_000  # keys and values
MAX_NUMBER = 100  # characters: a longer number takes long to read, and no Lease takes it
_MERGE = "tag:yaml.org,2002:merge"
_NUMBERS = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})
_SURROGATE = re.compile("[\ud800-\udfff]")
# libyaml's parser, which is a hundred times as fast.
_Loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
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


def _mark(event: yaml.Event) -> Any:
    return event.start_mark


class _Scalars(yaml.constructor.SafeConstructor, yaml.resolver.Resolver):
    """Reads scalars as JSON can say them: a time stays text."""

    yaml_implicit_resolvers = {
        first: [(tag, form) for tag, form in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self) -> None:
        yaml.constructor.SafeConstructor.__init__(self)
        yaml.resolver.Resolver.__init__(self)

    def value_of(self, event: yaml.ScalarEvent) -> Any:
        """Raises YamlProblem, and ValueError for what looks like a number and is none."""
        tag = event.tag
        if not tag or tag == "!":
            tag = self.resolve(yaml.ScalarNode, event.value, event.implicit)  # type: ignore[no-untyped-call]
        if tag in _NUMBERS and len(event.value) > MAX_NUMBER:
            raise _at(
                f"A number has {MAX_NUMBER} characters at most: put a longer text in quotes.",
                _mark(event),
            )
        value = self.construct_object(yaml.ScalarNode(tag, event.value, _mark(event)))
        self.constructed_objects.clear()
        finite = not isinstance(value, float) or math.isfinite(value)
        if value is None or (isinstance(value, str | int | float) and finite):
            return value
        raise _at("JSON has no such value.", _mark(event))


class _Reading:
    """Builds the value from parser events: no aliases, no keys twice, and within bounds."""

    def __init__(self) -> None:
        self.value: Any = None
        self.lines: dict[str, int] = {}
        self._scalars = _Scalars()
        self._nodes = 0
        # What is open: the value, its path, and the key that waits for its value.
        self._open: list[tuple[Any, str, list[str]]] = []

    def take(self, event: yaml.Event) -> None:
        """Raises YamlProblem."""
        if isinstance(event, yaml.AliasEvent):
            raise _at("Write the value instead of an alias (*).", _mark(event))
        if isinstance(event, yaml.ScalarEvent):
            self._count(event)
            if self._wants_key():
                self._take_key(event)
            else:
                self._put(self._scalars.value_of(event), event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._count(event)
            if self._wants_key():
                raise _at("A key is plain text.", _mark(event))
            value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
            path = self._put(value, event)
            if len(self._open) >= MAX_DEPTH:
                raise _at("This is too deep for a Lease.", _mark(event))
            self._open.append((value, path, []))
        elif isinstance(event, yaml.CollectionEndEvent):
            self._open.pop()

    def _count(self, event: yaml.Event) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise _at(f"A Lease has {MAX_NODES:,} keys and values at most.", _mark(event))

    def _wants_key(self) -> bool:
        if not self._open:
            return False
        value, _, key = self._open[-1]
        return isinstance(value, dict) and not key

    def _take_key(self, event: yaml.ScalarEvent) -> None:
        value, path, key = self._open[-1]
        name = event.value
        if event.tag == _MERGE or (event.implicit[0] and name == "<<"):
            raise _at("A key is plain text.", _mark(event))
        if name in value:
            raise _at(f"{name} is there twice.", _mark(event))
        key.append(name)
        self.lines[_joined([path, name] if path else [name])] = _mark(event).line + 1

    def _put(self, item: Any, event: yaml.Event) -> str:
        """Put a value in its place and return its path."""
        if not self._open:
            self.value = item
            return ""
        into, path, key = self._open[-1]
        if isinstance(into, list):
            place = f"{path}[{len(into)}]"
            self.lines[place] = _mark(event).line + 1
            into.append(item)
            return place
        name = key.pop()
        into[name] = item
        return _joined([path, name] if path else [name])


def read_yaml(text: str) -> Document:
    """Read within bounds: this takes less than a second, whatever the text. Raises YamlProblem."""
    reading, documents = _Reading(), 0
    unencodable = _SURROGATE.search(text)
    if unencodable is not None:
        line = text.count("\n", 0, unencodable.start()) + 1
        raise YamlProblem("Half of a surrogate pair is no character: leave it out.", line=line)
    try:
        for event in yaml.parse(text, Loader=_Loader):
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _at("Write one document: another one begins here.", _mark(event))
            reading.take(event)
    except yaml.MarkedYAMLError as error:
        raise _said(error, text) from None
    except (yaml.YAMLError, ValueError) as error:
        raise YamlProblem(f"This is no YAML: {str(error).splitlines()[0]}", line=1) from None
    if not isinstance(reading.value, dict):
        raise YamlProblem("Write the fields of a Lease, such as spec:.", line=1)
    return Document(reading.value, reading.lines)


def _joined(steps: Any) -> str:
    return ".".join(steps).replace(".[", "[")


def _at(text: str, mark: Any) -> YamlProblem:
    return YamlProblem(text, line=mark.line + 1, column=mark.column + 1)


def _said(error: yaml.MarkedYAMLError, text: str) -> YamlProblem:
    mark = error.problem_mark or error.context_mark
    problem = error.problem or "this is no YAML"
    if mark is not None and "character" in problem:
        line = "".join(text.split("\n")[mark.line : mark.line + 1])
        if line[mark.column : mark.column + 1] == "\t":
            problem = "a tab. YAML indents with spaces only"
    if "Unicode character escape" in problem:
        problem = "this escape is no character: half of a surrogate pair, or beyond Unicode"
    if mark is None:
        return YamlProblem(f"{problem}.", line=1)
    return _at(f"{problem}.", mark)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from _texts(item)


MAX_TEXT = 1_500_000  # characters; etcd keeps objects up to 1.5 MiB
MAX_ANNOTATED = 500  # lines
MAX_SHOWN = 200
WHOLE_NUMBERS = ("leaseDurationSeconds", "leaseTransitions")
RENEWED = (("spec", "renewTime"),)  # a holder writes it all the time
ORDER = ("apiVersion", "kind", "metadata", "spec")
FIXED = (
    ("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"),
    ("metadata", "uid"), ("metadata", "resourceVersion"), ("metadata", "creationTimestamp"),
    ("metadata", "managedFields"), ("metadata", "generation"), ("metadata", "selfLink"),
)  # fmt: skip
GATED = (("spec", "strategy"), ("spec", "preferredHolder"))
KNOWN = (
    ("metadata",), ("spec",), ("metadata", "labels"), ("metadata", "annotations"),
    ("metadata", "finalizers"), ("metadata", "ownerReferences"),
    *(("spec", name) for name in API_NAMES.values()),
)  # fmt: skip


class YamlForm(TermForm):
    """`shown` is the text that the form began with; `dropped` are fields that a dry run left out.

    Unknown fields are dropped without an error, so that a mistyped one does nothing.
    """

    wide = frozenset({"reason", "text"})

    text = forms.CharField(
        label="YAML",
        strip=False,
        widget=YamlEditor,
        error_messages={"required": "Write the fields of the Lease, or open the form again."},
    )
    shown = forms.CharField(required=False, strip=False, widget=forms.HiddenInput)

    document: Document | None = None
    _shown: dict[str, Any] | None = None
    line_problems: list[YamlProblem]
    dropped: list[YamlProblem]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.line_problems, self.dropped = [], []

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
            if edit.at_path(shown, path) != edit.at_path(self.document.value, path):
                self.refuse(".".join(path), f"{'.'.join(path)} cannot be changed here.")
        changes = edit.patch_between(shown, self.document.value)
        for field, value in edit.leaves(changes):
            if any("\0" in text for text in _texts([*field, value])):
                self.refuse(".".join(field), "Leave out the NUL character.")
            if wrong := _wrong_shape(field, value):
                self.refuse(".".join(field), wrong)
        self.cleaned_data["changes"] = changes
        return self.cleaned_data

    def shown_value(self) -> dict[str, Any]:
        """The Lease that the form began with. Raises ValidationError."""
        if self._shown is None:
            try:
                self._shown = read_yaml(one_line_break(self.cleaned_data.get("shown", ""))).value
            except YamlProblem:
                raise forms.ValidationError(LOST) from None
        return self._shown

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
        """Each line with its number and the problems at it; of a long text those around the first
        problem. Nothing if there are none.
        """
        problems = self.line_problems or self.dropped
        if not problems:
            return []
        lines = one_line_break(str(self.data.get("text", ""))).split("\n")
        worst = min(one.line for one in problems)
        first = max(0, min(worst - MAX_ANNOTATED // 2, len(lines) - MAX_ANNOTATED))
        return [
            (number, line, [one.text for one in problems if one.line == number])
            for number, line in enumerate(lines[first : first + MAX_ANNOTATED], first + 1)
        ]

    @property
    def without(self) -> str:
        """A digest of the fields that are dropped: who agrees to it agrees to no others."""
        return hashlib.sha256("\0".join(one.path for one in self.dropped).encode()).hexdigest()[:16]

    @property
    def agreed(self) -> bool:
        """Whether the person would save without the fields that are dropped."""
        return not self.dropped or self.data.get("without") == self.without

    def notice_dropped(self, verdict: DryRun) -> None:
        """Mark the lines of the fields that the server would leave out."""
        if self.document is None:
            return
        left_out = {
            _first_absent(path, verdict.after): None
            for path, sent in edit.leaves(self.cleaned_data["changes"])
            if sent not in (None, "", [], {}) and path not in GATED
        }
        for path in filter(None, left_out):
            name, guess = ".".join(path), _guess(path)
            text = f"The cluster would leave out {name}: it knows no such field.{guess}"
            problem = YamlProblem(text, line=self.document.line_of(name), path=name)
            self.dropped.append(problem)
            self._mark_line(problem)

    def _mark(self, problem: YamlProblem) -> None:
        self.line_problems.append(problem)
        self._mark_line(problem)

    def _mark_line(self, problem: YamlProblem) -> None:
        widget = self.fields["text"].widget
        if isinstance(widget, YamlEditor):
            widget.bad_lines.add(problem.line)

    def wanted(self) -> edit.YamlEdit:
        return edit.YamlEdit(self.cleaned_data["changes"])

    def collisions(self, whole: dict[str, Any], current: Lease) -> tuple[Collision, ...]:
        shown = self.shown_value()
        found = []
        for path, yours in edit.leaves(self.cleaned_data["changes"]):
            theirs = edit.at_path(whole, path)
            if path in RENEWED or theirs in (edit.at_path(shown, path), yours):
                continue
            field = ".".join(path)
            found.append(Collision(field, field, _short(yours), _short(theirs), path=path))
        return tuple(found)

    def rebased(self, whole: dict[str, Any], current: Lease) -> QueryDict:
        """The text as it is now, with the changes of the person in it."""
        whole = without_managed_fields(whole)
        data = super().rebased(whole, current)
        data["shown"] = as_text(whole)
        data["text"] = as_text(edit.merged(whole, self.cleaned_data["changes"]))
        return data

    def place(self, error: ApiError) -> str:
        """Put each cause at the line of its field."""
        for cause in error.causes:
            self.refuse(cause.field, f"{cause.field}: {cause.message}")
        return "" if error.causes else why_not(error)

    def as_new(self) -> dict[str, str] | None:
        try:
            typed, shown = (
                read_yaml(one_line_break(str(self.data.get(name, "")))).value
                for name in ("text", "shown")
            )
        except YamlProblem:
            return super().as_new()
        spec, metadata = _mapping(typed.get("spec")), _mapping(typed.get("metadata"))
        new = {name: str(spec.get(API_NAMES[name]) or "") for name in OF_A_NEW_ONE}
        counter = spec.get(API_NAMES["transitions"])
        if counter not in (None, _mapping(shown.get("spec")).get(API_NAMES["transitions"])):
            new["transitions"] = str(counter)
        pairs = {
            part: {k: str(v) for k, v in _mapping(metadata.get(part)).items()} for part in PAIRS
        }
        return {**(super().as_new() or {}), **new, **pairs_as_text(pairs)}

    def meant(self) -> edit.FieldEdit:
        """The part of the changes that the other forms know, for what they bring about."""
        changes = self.cleaned_data["changes"]
        spec, metadata = (_mapping(changes.get(part)) for part in ("spec", "metadata"))
        labels, annotations = (_mapping(metadata.get(part)) for part in ("labels", "annotations"))
        return edit.FieldEdit(spec=spec, labels=labels, annotations=annotations)


def _first_absent(path: tuple[str, ...], after: dict[str, Any]) -> tuple[str, ...]:
    """The field of this path, or the first around it, that the server's answer lacks; () if none
    does."""
    for length in range(1, len(path) + 1):
        if edit.at_path(after, path[:length]) is edit.MISSING:
            return path[:length]
    return ()


def _guess(path: tuple[str, ...]) -> str:
    """What a mistyped field may have meant, as a question."""
    names = {known[-1]: ".".join(known) for known in KNOWN if known != path}
    close = difflib.get_close_matches(path[-1][:MAX_SHOWN], names, n=1, cutoff=0.75)
    return f" Did you mean {names[close[0]]}?" if close else ""


def as_text(whole: dict[str, Any]) -> str:
    item = without_managed_fields(whole)
    known = {name: item[name] for name in ORDER if name in item}
    return to_yaml(known | item)


def _wrong_shape(path: tuple[str, ...], value: Any) -> str:
    """What is wrong with the type of a value that every cluster refuses, in one sentence."""
    name = path[-1]
    if value is None:
        return ""
    if path[:-1] == ("spec",) and name in WHOLE_NUMBERS:
        if not isinstance(value, int) or isinstance(value, bool):
            return f"{name} is a whole number, such as 15; {_short(value)!r} is none."
    elif path[:-1] == ("spec",) and name in API_NAMES.values():
        if not isinstance(value, str):
            return f"{name} is text: put {_short(value)} in quotes."
        if name in edit.TIMES and not _is_moment(value):
            return f"{name} is a time such as {EXAMPLE}; {_short(value)!r} is none."
    elif path[:-1] in [("metadata", part) for part in PAIRS] and not isinstance(value, str):
        return f"{name} is text: put {_short(value)} in quotes."
    return ""


def _is_moment(text: str) -> bool:
    try:
        normal_microtime(text)
    except ValueError:
        return False
    return True


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _short(value: Any) -> str:
    return (
        str(value)[:MAX_SHOWN] if isinstance(value, str | int | float | list | dict) else "not set"
    )
