"""Count the Leases of a page's list that got into trouble but are not on the page, and notice that
the list may differ. The page offers to show them: rows must not move under the pointer.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from datetime import UTC, datetime

from django.core.exceptions import SuspiciousOperation
from django.http import QueryDict

from dashboard import clock
from dashboard.live.move_log import Move
from dashboard.parts.kept.flapping_leases import flapping_of
from dashboard.parts.query.lease_filter import LeaseFilter, read_filter, wants
from dashboard.parts.query.url_parameters import BadFilter
from leases.domain.lease import ObjectName
from leases.domain.severity import is_in_trouble
from leases.history.read.hourly_activity import Activity
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked, Update

# The page shows "1,000 or more": in a mass failure every page would count every Lease.
MAX_COUNTED = 1000


class Elsewhere:
    """The Leases in trouble that one page does not show; `may_differ`: a Lease may have joined or
    left the list unseen.
    """

    def __init__(self, query: str | None, activity: Activity) -> None:
        self._activity = activity
        self._now = datetime.fromtimestamp(0, UTC)
        wanted = _read(query)
        self._wants = None if wanted is None else wants(wanted, self._flaps)
        self._chooses = wanted is not None and wanted.chooses
        self.may_differ = False
        self._found: set[ObjectName] = set()
        self._reported = 0

    def notice(self, update: Update, store: Store, shown: Container[ObjectName]) -> None:
        """Count what changed; on a page without rows, every Lease of its list."""
        if self._wants is None:
            return
        self._now = update.now
        self.may_differ |= update.listed
        for key in update.redraw:
            if key in shown or (len(self._found) >= MAX_COUNTED and key not in self._found):
                continue
            known = store.get(key)
            if known is not None and (not shown or self._bad(known)) and self._wants(known):
                self._found.add(key)
            else:
                self._found.discard(key)
        self._found.difference_update(update.removed)

    def catch_up(
        self, moves: Sequence[Move] | None, store: Store, shown: Container[ObjectName]
    ) -> None:
        """Judge what moved since the page was drawn; None: nobody knows what."""
        if self._wants is None:
            return
        self._now = clock.now()
        self.may_differ = moves is None or any(
            move.keys is None
            or any(self._joined_or_left(key, move, store, shown) for key in move.keys)
            for move in moves
        )

    def _joined_or_left(
        self, key: ObjectName, move: Move, store: Store, shown: Container[ObjectName]
    ) -> bool:
        """Whether the list may have a Lease more or less than its drawing."""
        known = store.get(key)
        wanted = known is not None and self._wants is not None and self._wants(known)
        if key in shown or known is None or not wanted:
            return key in shown and not wanted
        return not shown or self._chooses or key in move.created or self._bad(known)

    def _bad(self, known: Tracked) -> bool:
        in_trouble = is_in_trouble(known.phase, known.kind, excused=known.excused)
        return in_trouble or self._flaps(known)

    def _flaps(self, known: Tracked) -> bool:
        return flapping_of(self._activity, known, self._now) is not None

    def news(self) -> int | None:
        """Return the number of Leases if it differs from the last one returned."""
        if len(self._found) == self._reported:
            return None
        self._reported = len(self._found)
        return self._reported


def _read(query: str | None) -> LeaseFilter | None:
    if query is None:
        return None
    try:
        return read_filter(QueryDict(query.removeprefix("?")))
    except (BadFilter, SuspiciousOperation):  # or more parameters than Django reads
        return None
