"""Parse and match label and field selectors as Kubernetes does, with its error messages.

Source: apimachinery/pkg/labels/selector.go and pkg/fields/selector.go.
"""

import re
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from leases.wire.name_rules import label_value_errors, qualified_name_errors
from leases.wire.status import bad_value, go_quote

_UNSIGNED = re.compile(r"[0-9]+", re.ASCII)
_SIGNED = re.compile(r"[-+]?[0-9]+", re.ASCII)
# More digits than any number of 64 bits has. Python itself refuses to read thousands of them.
_MOST_DIGITS = 21


def parse_int(text: str) -> int:
    """An int64. Raises ValueError."""
    return _parse(text, "ParseInt", _SIGNED, -(2**63), 2**63)


def parse_uint(text: str) -> int:
    """A uint64. Raises ValueError."""
    return _parse(text, "ParseUint", _UNSIGNED, 0, 2**64)


def _parse(text: str, function: str, shape: re.Pattern[str], low: int, end: int) -> int:
    why = "invalid syntax"
    if shape.fullmatch(text):
        size = int(text.lstrip("-+0")[:_MOST_DIGITS] or 0)
        value = -size if text[0] == "-" else size
        if low <= value < end:
            return value
        why = "value out of range"
    raise ValueError(f"strconv.{function}: parsing {go_quote(text)}: {why}")


_SPECIAL = "=!(),><"
_SYMBOLS = {")", ",", "!", "==", "=", ">", "<", "!=", "("}
_OPERATORS = {"in", "notin", "=", "==", "!=", ">", "<"}
_END = ""
Labels = Mapping[str, str]
Matcher = Callable[[Labels], bool]


class SelectorError(ValueError):
    """The selector is invalid; the message is Kubernetes'."""


def parse_labels(text: str) -> list[Matcher]:
    """Return one matcher per requirement; all must match. Raises SelectorError."""
    return _LabelParser(text).parse()


def _words(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text):
        if text[at] in " \t\r\n":
            at += 1
            continue
        end = at + 1
        if text[at] in _SPECIAL:
            while end < len(text) and text[at : end + 1] in _SYMBOLS:
                end += 1
        else:
            while end < len(text) and text[end] not in _SPECIAL + " \t\r\n":
                end += 1
        found.append(text[at:end])
        at = end
    return found


def _names(word: str) -> bool:
    return word != _END and word not in _SYMBOLS


class _LabelParser:
    def __init__(self, text: str) -> None:
        self.words = _words(text)
        self.at = 0

    def _peek(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else _END

    def _take(self) -> str:
        word = self._peek()
        self.at += 1
        return word

    def parse(self) -> list[Matcher]:
        found: list[Matcher] = []
        while True:
            word = self._peek()
            if word == _END:
                return found
            if not _names(word) and word != "!":
                raise SelectorError(f"found '{word}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            after = self._take()
            if after == _END:
                return found
            if after != ",":
                raise SelectorError(f"found '{after}', expected: ',' or 'end of string'")
            following = self._peek()
            if not _names(following) and following != "!":
                raise SelectorError(f"found '{following}', expected: identifier after ','")

    def _requirement(self) -> Matcher:
        word = self._take()
        absent = word == "!"
        if absent:
            word = self._take()
        if not _names(word):
            raise SelectorError(f"found '{word}', expected: identifier")
        if wrong := qualified_name_errors(word):
            raise SelectorError(_invalid("<nil>", word, "; ".join(wrong)))
        if absent:
            return lambda labels: word not in labels
        if self._peek() in (_END, ","):
            return lambda labels: word in labels
        operator = self._take()
        if operator not in _OPERATORS:
            raise SelectorError(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._values() if operator in ("in", "notin") else self._value()
        return _matcher(word, operator, values)

    def _value(self) -> set[str]:
        if self._peek() in (_END, ","):
            return {""}
        word = self._take()
        if not _names(word):
            raise SelectorError(f"found '{word}', expected: identifier")
        return {word}

    def _values(self) -> set[str]:
        word = self._take()
        if word != "(":
            raise SelectorError(f"found '{word}' expected: '('")
        word = self._peek()
        if word == ")":
            self._take()
            return {""}
        if not _names(word) and word != ",":
            raise SelectorError(f"found '{word}', expected: ',', ')' or identifier")
        found = self._listed()
        self._take()
        return found

    def _listed(self) -> set[str]:
        found: set[str] = set()
        while True:
            word = self._take()
            if _names(word):
                found.add(word)
                following = self._peek()
                if following == ")":
                    return found
                if following != ",":
                    raise SelectorError(f"found '{following}', expected: ',' or ')'")
            elif word == ",":
                following = self._peek()
                if not found or following in (")", ","):
                    found.add("")
                if following == ")":
                    return found
                if following == ",":
                    self._take()
            else:
                raise SelectorError(f"found '{word}', expected: ',', or identifier")


def _invalid(path: str, value: str, detail: str) -> str:
    return f"{path}: {bad_value(path, go_quote(value), detail).message}"


def _matcher(key: str, operator: str, values: set[str]) -> Matcher:
    compares = operator in (">", "<")
    wrong = []
    limit = _int64(min(values)) if compares else None
    if compares and limit is None:
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        wrong.append(_invalid("values[0]", min(values), detail))
    wrong += [
        _invalid(f"values[{index}][{key}]", value, "; ".join(errors))
        for index, value in enumerate(sorted(values))
        if (errors := label_value_errors(value))
    ]
    if wrong:
        raise SelectorError(wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]")
    if limit is not None:
        return _comparison(key, operator, limit)
    if operator in ("notin", "!="):
        return lambda labels: labels.get(key) not in values
    return lambda labels: labels.get(key) in values


def _int64(text: str) -> int | None:
    try:
        return parse_int(text)
    except ValueError:
        return None


def _comparison(key: str, operator: str, limit: int) -> Matcher:
    def matches(labels: Labels) -> bool:
        number = _int64(labels.get(key, ""))
        if number is None:
            return False
        return number > limit if operator == ">" else number < limit

    return matches


class FieldTerm(NamedTuple):
    """One term of a field selector: `field` is (or, negated, is not) `value`."""

    field: str
    value: str
    negated: bool


FIELDS = ("metadata.name", "metadata.namespace")


def parse_fields(text: str) -> list[FieldTerm]:
    """Return the terms; all must match. Raises SelectorError for bad syntax, not for fields.

    A term without field and value selects everything: Transform in pkg/fields/selector.go.
    """
    terms = []
    for part in re.findall(r"(?:\\.|[^,\\]|\\$)+", text, re.DOTALL):
        shape = re.match(r"(.*?)(!=|==|=)(.*)", part, re.DOTALL)
        if shape is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
        term = FieldTerm(shape[1], _unescaped(shape[3]), shape[2] == "!=")
        if term.field or term.value:
            terms.append(term)
    return terms


def check_fields(terms: list[FieldTerm], selectable: Collection[str]) -> None:
    """Raise SelectorError for a field that a resource cannot select by."""
    for term in terms:
        if term.field not in selectable:
            if tuple(selectable) != FIELDS:  # a resource with a conversion function of its own
                raise SelectorError(f"field label not supported: {term.field}")
            known = ", ".join(go_quote(name) for name in FIELDS)
            raise SelectorError(
                f"{go_quote(term.field)} is not a known field selector: only {known}"
            )


def exact_name(terms: list[FieldTerm]) -> str | None:
    """Return the one name that the terms require, if any."""
    named = (term.value for term in terms if term.field == "metadata.name" and not term.negated)
    return next(named, None)


def _unescaped(value: str) -> str:
    def unescape(sign: re.Match[str]) -> str:
        if sign[0] in (",", "="):
            raise SelectorError(f"invalid field selector: unescaped character in value: {sign[0]}")
        if sign[1] not in ("\\", ",", "="):
            raise SelectorError(f"invalid field selector: invalid escape sequence: {sign[0]}")
        return sign[1]

    return re.sub(r"\\(.?)|[,=]", unescape, value, flags=re.DOTALL)
