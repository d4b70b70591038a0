"""What admins say of the Leases of one cluster: the kind, and whether it may be vacant; and the
kinds that history settles.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import TypeVar

from leases.domain.kind import ALONE, Verdict, after_deletion, classify, is_open
from leases.domain.lease import ObjectName
from leases.domain.phase import phase_of
from leases.tracking.tracked_lease import Tracked

T = TypeVar("T")
Kinds = Mapping[ObjectName, Verdict]
Marks = Mapping[ObjectName, str]  # the Leases that may be vacant, with the admin who said so
NO_MARKS: Marks = MappingProxyType({})
MAX_DELETED = 10_000  # Leases


class Overrides:
    def __init__(self) -> None:
        self._verdicts: dict[ObjectName, Verdict] = {}
        self.marks: dict[ObjectName, str] = {}
        self.get = self._verdicts.get

    def remember(self, tracked: Tracked) -> None:
        """Take over the overrides of a restored Lease."""
        if tracked.lasting.overridden:
            self._verdicts[tracked.key] = (tracked.kind, tracked.kind_reason)
        if tracked.lasting.may_be_vacant:
            self.marks[tracked.key] = tracked.lasting.may_be_vacant

    def change_to(self, kinds: Kinds, marks: Marks) -> set[ObjectName]:
        """Replace all overrides. Returns the Leases whose override changed."""
        return _replace(self._verdicts, kinds) | _replace(self.marks, marks)

    def marked(self, known: Tracked) -> Tracked:
        """Note on a Lease whether it may be vacant."""
        by = self.marks.get(known.key, "")
        return known if known.lasting.may_be_vacant == by else known.replace(may_be_vacant=by)

    def judge(self, known: Tracked, now: datetime) -> Tracked:
        """Judge a Lease by its override, or by the rules again; the same object: no difference.

        Nothing happened to the Lease, so this makes no change. A heartbeat that names no holder
        counts as held by its own name only while it is a heartbeat.
        """
        known = self.marked(known)
        verdict = self.get(known.key)
        if verdict == ((known.kind, known.kind_reason) if known.lasting.overridden else None):
            return known
        kind, reason = verdict or classify(known.lease, None)
        judged = known.replace(kind=kind, kind_reason=reason, overridden=verdict is not None)
        if (judged.holder is None) != (known.holder is None):
            since = known.observed_at
            held_since = None if judged.holder is None else since
            judged = judged.replace(
                held_since=held_since, gap_since=None, phase_since=since, lapses=()
            )
        return judged.replace(phase=phase_of(judged, now))


def _replace(old: dict[ObjectName, T], new: Mapping[ObjectName, T]) -> set[ObjectName]:
    changed = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    for key in changed:
        if key in new:
            old[key] = new[key]
        else:
            del old[key]
    return changed


class DeletedKinds:
    """What deleted Leases settled about the kind of the next Lease of their name."""

    def __init__(self) -> None:
        self._verdicts: dict[ObjectName, Verdict] = {}

    def note(self, deleted: Tracked) -> None:
        held = deleted.lease.holder is not None and deleted.gap_since is None
        verdict = after_deletion((deleted.kind, deleted.kind_reason), held=held)
        if verdict is not None:
            self._verdicts[deleted.key] = verdict
            if len(self._verdicts) > MAX_DELETED:
                del self._verdicts[next(iter(self._verdicts))]

    def take(self, key: ObjectName) -> Verdict | None:
        return self._verdicts.pop(key, None)


def renewed_alone(
    elections: Iterable[Tracked], now: datetime, *, watched_since: datetime
) -> list[ObjectName]:
    """Return the guessed elections that one holder has renewed for so long that they are none.

    Only what was watched counts.
    """
    return [
        known.key
        for known in elections
        if known.held_since is not None
        and is_open((known.kind, known.kind_reason))
        and now - max(known.held_since, watched_since) >= ALONE
    ]
