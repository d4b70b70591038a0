"""Count the Leases of a page's list that got into trouble but are not on the page. The page offers
to show them, because rows must not move under the pointer.
"""

from __future__ import annotations

from collections.abc import Container

from django.core.exceptions import SuspiciousOperation
from django.http import QueryDict

from dashboard.parts.query.lease_filter import Matcher, read_filter, wants
from dashboard.parts.query.url_parameters import BadFilter
from leases.domain.lease import ObjectName
from leases.domain.severity import is_in_trouble
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update

# The page shows "1,000 or more": in a mass failure every page would count every Lease.
MAX_COUNTED = 1000


class Elsewhere:
    """The Leases in trouble that one page does not show."""

    def __init__(self, query: str | None) -> None:
        self._wants = _matcher(query)
        self._found: set[ObjectName] = set()
        self._reported = 0

    def notice(self, update: Update, store: Store, shown: Container[ObjectName]) -> None:
        """Count what changed; on a page without rows, every Lease of its list."""
        if self._wants is None:
            return
        for key in update.redraw:
            if key in shown or (len(self._found) >= MAX_COUNTED and key not in self._found):
                continue
            known = store.get(key)
            if (
                known is not None
                and (is_in_trouble(known.phase, known.kind) or not shown)
                and self._wants(known)
            ):
                self._found.add(key)
            else:
                self._found.discard(key)
        self._found.difference_update(update.removed)

    def news(self) -> int | None:
        """Return the number of Leases if it differs from the last one returned."""
        if len(self._found) == self._reported:
            return None
        self._reported = len(self._found)
        return self._reported


def _matcher(query: str | None) -> Matcher | None:
    if query is None:
        return None
    try:
        return wants(read_filter(QueryDict(query.removeprefix("?"))))
    except (BadFilter, SuspiciousOperation):  # or more parameters than Django reads
        return None
