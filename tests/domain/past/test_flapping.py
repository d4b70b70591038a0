"""Too many changes of holder in too short a time, for each kind."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leases.domain.flapping import FEWEST, RULES, BriefChange, flapped, flapping
from leases.domain.kind import Kind
from tests.support.values.leases import after
from tests.support.values.story import change_at

HALF_AN_HOUR = 1800
UUIDS = [f"3b1e4a9a-4ce8-42dc-92f4-98d29928ba4{n}" for n in range(5)]


def passes(number: int, word: str = "taken_over", every: float = 60, **more) -> list[BriefChange]:
    changes = (change_at(n * every, word, f"h-{n % 3}", **more) for n in range(number))
    return [BriefChange.of(change) for change in changes]


def test_five_holders_in_half_an_hour_are_too_many_for_an_election():
    found = flapping(passes(5, gap_seconds=2.0), Kind.ELECTION, after(300))
    assert (found.changes, found.since, found.holders) == (5, after(0), 3)
    assert (found.gap_seconds, found.within.total_seconds()) == (10.0, HALF_AN_HOUR)
    assert flapping(passes(4), Kind.ELECTION, after(300)) is None


def test_a_process_that_is_started_again_is_another_holder_on_the_same_host():
    changes = (change_at(n * 60, "taken_over", f"h-{n % 2}_{UUIDS[n]}") for n in range(5))
    found = flapping([BriefChange.of(one) for one in changes], Kind.ELECTION, after(300))
    assert (found.holders, found.hosts) == (5, 2)


def test_a_count_that_began_with_the_watching_says_so():
    some = passes(6)
    whole = flapping(some, Kind.ELECTION, after(400))
    began_before = flapping(some, Kind.ELECTION, after(400), watched_since=after(-HALF_AN_HOUR))
    assert whole == began_before
    assert whole.counted_since is None
    later = flapping(some, Kind.ELECTION, after(400), watched_since=after(50))
    assert (later.changes, later.since, later.counted_since) == (5, after(60), after(50))


def test_a_gap_counts_from_where_the_count_begins():
    some = passes(6, gap_seconds=40.0)
    later = flapping(some, Kind.ELECTION, after(400), watched_since=after(50))
    assert later.gap_seconds == 10.0 + 4 * 40.0


def test_older_changes_do_not_count():
    spread = passes(5, every=HALF_AN_HOUR / 4)
    assert flapping(spread, Kind.ELECTION, after(HALF_AN_HOUR)).changes == 5
    assert flapping(spread, Kind.ELECTION, after(HALF_AN_HOUR + 1)) is None


def test_changes_after_the_moment_do_not_count():
    assert flapping(passes(5), Kind.ELECTION, after(200)) is None


def test_three_holders_that_each_lost_an_election_soon_are_enough_for_a_while():
    died = passes(3, every=30, gap_seconds=15.0)
    assert flapping(died, Kind.ELECTION, after(90)).changes == 3
    assert flapping(died, Kind.ELECTION, after(60 + 301)) is None
    assert flapping(passes(3, every=90, gap_seconds=15.0), Kind.ELECTION, after(200)) is None
    assert flapping(died, Kind.UNKNOWN, after(90)) is None
    rollout = passes(3, "acquired", every=10)
    assert flapping(rollout, Kind.ELECTION, after(40)) is None
    again = [msgspec.structs.replace(one, holder=f"h-{n % 2}") for n, one in enumerate(rollout)]
    assert flapping(again, Kind.ELECTION, after(40)).holders == 2
    assert flapping(passes(4, "replaced", every=5), Kind.ELECTION, after(40)) is None


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3000),
            st.sampled_from(["acquired", "taken_over", "replaced", "expired"]),
            st.sampled_from(["h-0", "h-1", "h-2", "h-3"]),
            st.sampled_from([None, 2.0, 40.0]),
        ),
        max_size=9,
    ),
    st.sampled_from(Kind),
)
def test_an_incident_is_called_flapping_if_the_overview_ever_called_it_that(moments, kind):
    changes = [
        BriefChange.of(change_at(at, word, holder, gap_seconds=gap))
        for at, word, holder, gap in sorted(moments, key=lambda one: one[0])
    ]
    ever = any(flapping(changes, kind, one.at) is not None for one in changes)
    assert flapped(changes, kind) is ever


def test_a_lock_is_made_to_change_hands():
    assert flapping(passes(30), Kind.LOCK, after(1800)) is None
    assert flapping(passes(60, every=10), Kind.LOCK, after(600)).changes == 60


@pytest.mark.parametrize("kind", [Kind.HEARTBEAT, Kind.IDENTITY])
def test_who_holds_for_life_flaps_by_running_out(kind):
    assert flapping(passes(5, "expired"), kind, after(300)).changes == 5
    assert flapping(passes(5, "expired"), Kind.ELECTION, after(300)) is None


@pytest.mark.parametrize("word", ["released", "recovered", "reconfigured", "restarted", "created"])
def test_what_changes_no_holder_does_not_count(word):
    assert flapping(passes(70, word, every=1), Kind.ELECTION, after(300)) is None


def test_the_order_of_the_changes_does_not_matter():
    found = flapping(passes(6)[::-1], Kind.ELECTION, after(300))
    assert (found.changes, found.since) == (6, after(0))


def test_every_kind_has_a_rule_and_no_changes_are_no_flapping():
    for kind in Kind:
        assert flapping([], kind, after(0)) is None
        assert RULES[kind].number >= FEWEST
