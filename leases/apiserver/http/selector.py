"""Which objects a label selector and a field selector choose."""

from __future__ import annotations

from leases.apiserver.resources import Selectable
from leases.apiserver.storage.records import Version
from leases.wire.selectors import FieldTerm, Matcher

_FLAGS = ("true", "false")  # an object need not hold them


class Selector:
    """A label and field selector; an empty one selects everything.

    `selectable` reads the values of fields that a Version does not hold.
    """

    def __init__(
        self, labels: list[Matcher], fields: list[FieldTerm], selectable: Selectable | None = None
    ) -> None:
        self.labels = labels
        self.fields = fields
        self._selectable = selectable or {}
        self.empty = not labels and not fields

    def selects(self, version: Version) -> bool:
        if self.empty:
            return True
        found = version.labels or {}
        return all(matches(found) for matches in self.labels) and all(
            self._matches(term, version) for term in self.fields
        )

    def _matches(self, term: FieldTerm, version: Version) -> bool:
        read = self._selectable.get(term.field)
        if read is not None:
            # Most objects do not hold the text: then they need not be decoded.
            if not term.negated and term.value not in _FLAGS and _absent(term.value, version.body):
                return False
            value = read(version.read())
        else:
            value = version.name if term.field == "metadata.name" else version.namespace
        return (value == term.value) != term.negated


def _absent(value: str, body: bytes) -> bool:
    """Whether a text that JSON does not escape is in no place of a body."""
    return value.isalnum() and value.isascii() and value.encode() not in body
