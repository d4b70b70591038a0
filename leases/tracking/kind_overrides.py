"""The kinds that admins set for Leases of one cluster, and judging a Lease again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from leases.domain.kind import Verdict, classify
from leases.domain.lease import ObjectName
from leases.domain.phase import phase_of
from leases.tracking.tracked_lease import Tracked


class Overrides:
    def __init__(self) -> None:
        self._verdicts: dict[ObjectName, Verdict] = {}
        self.get = self._verdicts.get

    def remember(self, tracked: Tracked) -> None:
        """Take over the override of a restored Lease."""
        if tracked.lasting.overridden:
            self._verdicts[tracked.key] = (tracked.kind, tracked.kind_reason)

    def change_to(self, wanted: Mapping[ObjectName, Verdict]) -> list[ObjectName]:
        """Replace all overrides. Returns the Leases whose override changed."""
        old = self._verdicts
        changed = [key for key in old.keys() | wanted.keys() if old.get(key) != wanted.get(key)]
        for key in changed:
            if key in wanted:
                old[key] = wanted[key]
            else:
                del old[key]
        return changed


def judged_anew(known: Tracked, verdict: Verdict | None, now: datetime) -> Tracked:
    """Judge a Lease by this override, or by the rules again.

    Nothing happened to the Lease, so this makes no change. A heartbeat that names no holder counts
    as held by its own name only while it is a heartbeat.
    """
    kind, reason = verdict or classify(known.lease, None)
    judged = known.replace(kind=kind, kind_reason=reason, overridden=verdict is not None)
    if (judged.holder is None) != (known.holder is None):
        since = known.observed_at
        held_since = None if judged.holder is None else since
        judged = judged.replace(held_since=held_since, gap_since=None, phase_since=since)
    return judged.replace(phase=phase_of(judged, now))
