"""Which objects a label selector and a field selector choose."""

from __future__ import annotations

import re

from leases.apiserver.resources import Selectable
from leases.apiserver.storage.records import Version
from leases.wire.selectors import FieldTerm, Matcher

_FLAGS = ("true", "false")  # an object need not hold them
_UNESCAPED = re.compile(r"[\w ./:-]+", re.ASCII)


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
        # An object that holds none of these texts is not selected, and need not be decoded.
        self._needles = [
            term.value.encode()
            for term in fields
            if self._selectable.get(term.field) is not None
            and not term.negated
            and term.value not in _FLAGS
            and _UNESCAPED.fullmatch(term.value)
        ]
        self.empty = not labels and not fields

    def selects(self, version: Version) -> bool:
        if self.empty:
            return True
        for needle in self._needles:
            if needle not in version.body:
                return False
        found = version.labels or {}
        return all(matches(found) for matches in self.labels) and all(
            self._matches(term, version) for term in self.fields
        )

    def _matches(self, term: FieldTerm, version: Version) -> bool:
        read = self._selectable.get(term.field)
        if read is not None:
            value = read(version.read())
        else:
            value = version.name if term.field == "metadata.name" else version.namespace
        return (value == term.value) != term.negated
