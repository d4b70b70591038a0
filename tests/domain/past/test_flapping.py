"""Too many changes of holder in too short a time, for each kind."""

from __future__ import annotations

from leases.domain.kind import Kind
from leases.domain.past.flapping import flaps
from tests.support.values.leases import after
from tests.support.values.story import change_at

HALF_AN_HOUR = 1800


def passes(number: int, kind: Kind, word: str = "taken_over", every: float = 60):
    return [change_at(n * every, word, f"h-{n}", kind=kind) for n in range(number)]


def test_five_holders_in_half_an_hour_are_too_many_for_an_election():
    assert len(flaps(passes(5, Kind.ELECTION), after(300))) == 5
    assert flaps(passes(4, Kind.ELECTION), after(300)) == []


def test_older_changes_do_not_count():
    spread = passes(5, Kind.ELECTION, every=HALF_AN_HOUR / 4)
    assert len(flaps(spread, after(HALF_AN_HOUR))) == 5
    assert flaps(spread, after(HALF_AN_HOUR + 1)) == []


def test_a_lock_is_made_to_change_hands():
    assert flaps(passes(30, Kind.LOCK), after(1800)) == []
    assert flaps(passes(60, Kind.LOCK, every=10), after(600))


def test_a_heartbeat_flaps_by_running_out():
    assert flaps(passes(5, Kind.HEARTBEAT, "expired"), after(300))
    assert flaps(passes(5, Kind.ELECTION, "expired"), after(300)) == []


def test_no_changes_are_no_flapping():
    assert flaps([], after(0)) == []
