"""When a Lease counts as abandoned."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from leases.domain.figures import DEFAULT_ABANDONED_AFTER, VACANT_GRACE, abandoned_from
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from leases.domain.steady_clock import LATEST
from tests.support.values.leases import NOON, after

HOUR = timedelta(hours=1)


def judged(
    phase: Phase = Phase.VACANT,
    kind: Kind = Kind.ELECTION,
    *,
    since: datetime = NOON,
    renewed_at: datetime | None = NOON,
    held_since: datetime | None = None,
    threshold: timedelta = HOUR,
) -> datetime | None:
    return abandoned_from(
        phase, kind, since=since, renewed_at=renewed_at, held_since=held_since, threshold=threshold
    )


def test_the_usual_threshold_is_an_hour():
    assert DEFAULT_ABANDONED_AFTER == HOUR


@pytest.mark.parametrize("kind", [Kind.ELECTION, Kind.IDENTITY, Kind.UNKNOWN])
def test_a_vacant_lease_is_abandoned_after_the_threshold(kind):
    assert judged(kind=kind) == after(3600)
    assert judged(kind=kind, threshold=timedelta(minutes=5)) == after(300)


def test_what_was_renewed_last_long_before_it_was_first_seen_is_vacant_since_then():
    assert judged(renewed_at=after(-7200)) == after(-3600)
    assert judged(renewed_at=after(60)) == after(3600), "an edit of a vacant Lease renews nothing"


def test_a_lease_that_nobody_ever_held_is_abandoned_after_the_grace_of_a_hand_over():
    assert judged(renewed_at=None) == NOON + VACANT_GRACE
    assert judged(renewed_at=None, threshold=timedelta(seconds=5)) == after(5)


def test_an_expired_lease_is_abandoned_only_if_its_holder_never_renewed_it():
    def expired(renewed_at):
        return judged(Phase.EXPIRED, since=after(15), renewed_at=renewed_at, held_since=NOON)

    assert expired(NOON) == after(15 + 3600)
    assert expired(after(-1)) == after(15 + 3600)
    assert expired(after(0.001)) is None
    assert judged(Phase.EXPIRED, since=after(15)) is None, "nobody knows when its holder came"


@pytest.mark.parametrize("phase", [Phase.VACANT, Phase.EXPIRED])
def test_a_heartbeat_is_never_abandoned(phase):
    assert judged(phase, Kind.HEARTBEAT, held_since=NOON) is None


def test_a_vacant_lock_is_free_and_an_expired_one_can_be_abandoned():
    assert judged(kind=Kind.LOCK) is None
    assert judged(kind=Kind.LOCK, renewed_at=None) is None
    assert judged(Phase.EXPIRED, Kind.LOCK, held_since=NOON) == after(3600)


@pytest.mark.parametrize("phase", [Phase.HELD, Phase.LATE, Phase.UNTIMED])
def test_a_lease_that_somebody_holds_is_not(phase):
    assert judged(phase, held_since=NOON) is None


def test_no_time_is_too_late_for_the_calendar():
    assert judged(since=LATEST, renewed_at=LATEST) == LATEST
