"""How Leases stood at an instant, in words; what is unknown about it.

Nothing is claimed about a time in which nobody watched. `static/js/instant.js` uses the same words
while the playhead moves.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from dashboard.parts.formatting import when
from dashboard.parts.lease_row import FREE
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.terms import PastPhase, PastState
from leases.domain.watched_times import UnwatchedTime
from leases.history.states_as_of import states_at
from leases.history.watched_spans import unwatched_times
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked

ABSENT, UNWATCHED, FLAPPING = "absent", "unwatched", "flapping"
# Of each state: the colour, the symbol, the words.
SIGNS = {
    "held": ("held", "st-held", "held"),
    "late": ("late", "st-late", "late"),
    "expired": ("expired", "st-expired", "expired"),
    "vacant": ("vacant", "st-vacant", "vacant"),
    "untimed": ("untimed", "st-untimed", "untimed"),
    FLAPPING: ("late", "i-flap", "flapping"),
    "deleted": ("deleted", "st-deleted", "deleted"),
    ABSENT: ("deleted", "i-minus", "did not exist"),
    "unknown": ("deleted", "i-minus", "unknown"),
    UNWATCHED: ("deleted", "i-blind", "not watched"),
}


def stood(standing: PastState) -> str:
    """A past state as one word; a Lease that was not created yet is `absent`."""
    if standing.phase is PastPhase.DELETED and standing.since is None:
        return ABSENT
    return standing.phase.value


def counted_as(kind: Kind | None, word: str) -> str:
    """The word by which a Lease is counted: a lock that nobody holds is `free`, no trouble."""
    return FREE if kind is Kind.LOCK and word == PastPhase.VACANT else word


def stood_when_watched(standing: PastState, *, watched: bool) -> str:
    """The same, but `unwatched` for a time in which nobody watched."""
    word = stood(standing)
    return word if watched or word == ABSENT else UNWATCHED


def group_titles(
    at: datetime, *, now: datetime, watched: bool, unseen: str, groups: Sequence[str]
) -> dict[str, str]:
    """The titles of the groups; `unseen` is the part of the stretch that nobody watched."""
    quiet = {"": "No change of holder", "part": "No change of holder seen", "whole": "Not watched"}[
        unseen
    ]
    moment = "now" if watched else "when last watched"
    known = {
        "trouble": f"Without a holder {moment}, late or flapping",
        "nobody": f"Without a holder at {when(at, now)}",
        "changed": "Lost or changed their holder in this stretch",
        "quiet": quiet,
        "absent": "Did not exist yet",
    }
    return {group: known.get(group, group) for group in groups}


AROUND = timedelta(minutes=1)  # read after an instant to find out whether anybody watched
NOT_YET = PastState(exists=False, phase=PastPhase.DELETED)
_WHY = {
    None: "Leaseboard did not know this cluster yet.",
    "": "Leaseboard was not running.",
    "stopped": "Leaseboard was stopped.",
    "lost": "The connection was lost.",
}


def blind_at(cluster: str, at: datetime, now: datetime) -> UnwatchedTime | None:
    """The unwatched time that contains the instant, or None."""
    around = unwatched_times(cluster, since=at, until=at + AROUND, now=now)
    return next((span for span in around if span.since <= at < span.until), None)


def why_blind(blind: UnwatchedTime | None) -> str:
    """A sentence that says why nobody watched; "" if somebody did."""
    return "" if blind is None else blind.detail or _WHY[blind.ended]


def created_after(tracked: Tracked | None, at: datetime) -> bool:
    created = tracked.lease.metadata.creation_timestamp if tracked else None
    return created is not None and created > at


MAX_JUDGED = 1000  # Leases whose state at an instant is read


def nobody_at(
    store: Store, kinds: Sequence[Kind], gone: Collection[ObjectName], at: datetime
) -> list[ObjectName]:
    """Elections without a holder and expired Leases, without those that nobody needed to hold.

    `gone` were deleted since then. Of more than MAX_JUDGED Leases it tells none.
    """
    living = [tracked.key for tracked in store.select(kinds, tuple(Phase))]
    keys = sorted({*living, *gone})
    if len(keys) > MAX_JUDGED:
        return []
    bad = []
    after = store.abandoned_after
    for state in states_at(store.cluster, keys, at, abandoned_after=after):
        if state.excused:
            continue
        free = state.standing.phase is PastPhase.VACANT and state.kind is Kind.ELECTION
        if free or state.standing.phase is PastPhase.EXPIRED:
            bad.append((state.standing.since or at, state.key))
    return [key for _, key in sorted(bad)]
