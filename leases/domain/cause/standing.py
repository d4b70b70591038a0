"""Whether somebody meant what happened, and whether it took longer than it should have."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from leases.domain.cause.clue import Clue, Episode, is_human_writer
from leases.domain.cause.scene import Group
from leases.domain.change import ChangeType
from leases.domain.figures import Span, held, watched_gap
from leases.domain.incident import Cause, Standing
from leases.domain.kind import Kind

_PLANNED = frozenset({
    Cause.GRACEFUL_STOP, Cause.ROLLOUT, Cause.SCALED_DOWN, Cause.PREFERRED_HOLDER, Cause.DRAIN,
})  # fmt: skip
_DECORATION = frozenset({"labels", "annotations"})


def standing_of(group: Group, now: datetime, blind: Sequence[Span] = ()) -> Standing:
    """Return whether somebody meant what happened, and whether it went as it should.

    Nobody watched in the times of `blind`.
    """
    episodes = [one.episode for one in group.episodes]
    if all(_is_decoration(clue) for one in episodes for clue in one.clues):
        return Standing.REMARK
    verdict = group.verdict
    by_a_person = verdict.cause is Cause.BY_HAND and is_human_writer(verdict.writer or "")
    # A lock is given back by deleting it.
    given_back = verdict.cause is Cause.DELETED and all(one.kind is Kind.LOCK for one in episodes)
    if verdict.cause not in _PLANNED and not by_a_person and not given_back:
        return Standing.UNPLANNED
    overran = any(_overran(one, now, blind) for one in episodes)
    return Standing.OVERRAN if overran else Standing.PLANNED


def _is_decoration(clue: Clue) -> bool:
    change = clue.change
    return change.change is ChangeType.RECONFIGURED and _DECORATION.issuperset(change.fields)


def _overran(episode: Episode, now: datetime, blind: Sequence[Span]) -> bool:
    """Whether its Lease had no holder for longer than its duration; nobody waits for a lock."""
    if episode.kind is Kind.LOCK:
        return False
    since = episode.unheld_since
    if since is not None and held(since, now, blind).watched >= episode.duration:
        return True
    over = [held(since, until, blind).watched for since, until in episode.waits() if until]
    ended = [watched_gap(change, blind) or 0.0 for change in episode.costly]
    return max((*ended, *over), default=0.0) > episode.duration
