"""What one step of the store has changed so far."""

from collections.abc import Callable, Iterable
from datetime import datetime

import msgspec

from leases.domain.cause.clue import Clue, LateAround, LateRenewal, Silence, is_renewed_by_hand
from leases.domain.change import Change, Managers, Observation, last_write, writer_of
from leases.domain.lease import Lease, ObjectName
from leases.domain.phase import Phase
from leases.tracking.renewals import LateRenewals, Silences
from leases.tracking.tracked_lease import Skipped, Tracked, Update
from leases.wire.watch_decoding import managers_of_event

_replace = msgspec.structs.replace
# Silences, late renewals, and how many elections there are.
Around = tuple[tuple[Silence, ...], LateAround, int]
_OVERDUE = (Phase.LATE, Phase.EXPIRED)


class Step:
    """Collects what becomes one Update. Keys keep the order in which they came."""

    def __init__(
        self, silences: Silences, late: LateRenewals, elections: Callable[[], int]
    ) -> None:
        self.clues: list[Clue] = []  # one for each change
        self.redraw: dict[ObjectName, None] = {}
        self.renewed: list[ObjectName] = []
        self.late: list[LateRenewal] = []
        self.removed: dict[ObjectName, None] = {}
        self.skipped: list[Skipped] = []
        self.line = b""  # the undecoded event that is being applied
        self._silences, self._overdue, self._elections = silences, late, elections
        self._around: Around | None = None

    @property
    def is_news(self) -> bool:
        """Whether more than freshness changed."""
        return bool(self.clues or self.redraw or self.removed or self.skipped)

    def note(
        self,
        changes: Iterable[Change],
        before: Tracked | None,
        after: Lease | None = None,
    ) -> None:
        """Add changes with what was known of their Lease."""
        last = None if before is None else before.lease
        for change in changes:
            silences, late, elections = self._lately(change.observed_at)
            named: Change = change
            managers: Managers = ()
            if after is not None and self.line:
                managers = managers_of_event(self.line)
                named = _replace(change, writer=writer_of(change, managers, last, after))
            clue = Clue(
                change=named,
                before=last,
                after=after,
                managers=managers,
                silences=silences,
                late_around=late,
                elections=elections,
            )
            if before is not None:
                clue = _replace(
                    clue,
                    observed_at=before.observed_at,
                    held_since=before.held_since,
                    renewals_seen=before.renewals_seen,
                    intervals=before.intervals,
                    lags=before.lags,
                    overdue=self._overdue.of(before.key),
                )
            self.clues.append(clue)

    def as_managers_say(self, seen: Observation, known: Tracked, lease: Lease) -> Observation:
        """Add when the event that is being applied was written, and whether by hand."""
        renews = known.holder is not None and known.renew_time != lease.spec.renew_time
        if seen.live and not renews:
            return seen
        managers = managers_of_event(self.line)
        written = None if seen.live else last_write(managers, seen)
        return _replace(seen, written=written, by_hand=renews and is_renewed_by_hand(managers))

    def _lately(self, now: datetime) -> Around:
        """Return what went on in the whole cluster: the same for all changes of the step."""
        if self._around is None:
            late = self._overdue.lately(now)
            self._around = self._silences.lately(now), late, self._elections() if late else 0
        return self._around

    def note_late(self, known: Tracked, after: Tracked, seen: Observation) -> None:
        """Remember a renewal if it came late, after the state `known`."""
        if known.phase not in _OVERDUE or not seen.live or after.holder != known.holder:
            return
        if after.renewed_at != seen.now or known.observed_at < seen.watched_since:
            return  # nobody watched the whole interval
        if seen.by_hand or known.lasting.renewed_by_hand:
            return
        late = self._overdue.note(known, seen.now)
        if late is not None:
            self.late.append(late)

    def update(
        self,
        cluster: str,
        seq: int,
        now: datetime,
        *,
        listed: bool = False,
        first: bool = False,
    ) -> Update:
        return Update(
            cluster=cluster,
            now=now,
            seq=seq,
            changes=tuple([clue.change for clue in self.clues]),
            clues=tuple(self.clues),
            late=tuple(self.late),
            redraw=tuple(self.redraw),
            renewed=tuple(self.renewed),
            removed=tuple(self.removed),
            skipped=tuple(self.skipped),
            listed=listed,
            first=first,
        )
