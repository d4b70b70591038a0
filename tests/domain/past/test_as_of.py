"""How a Lease stood at an instant."""

from __future__ import annotations

import msgspec
import pytest

from leases.domain.figures import totals_in
from leases.domain.kind import Kind
from leases.domain.terms import Life, PastPhase, as_of, fold
from tests.support.values.leases import after
from tests.support.values.story import change_at

STORY = fold(
    [
        change_at(0, "created"),
        change_at(10, "acquired", "a"),
        change_at(30, "expired", "a"),
        change_at(35, "recovered", "a"),
        change_at(50, "expired", "a"),
        change_at(55, "released", "a"),
        change_at(60, "acquired", "b"),
        change_at(80, "deleted", "b"),
        change_at(100, "created", "c", uid="u-2"),
    ]
)


@pytest.mark.parametrize(
    ("seconds", "exists", "phase", "holder", "since"),
    [
        (-1, False, PastPhase.DELETED, None, None),
        (0, True, PastPhase.VACANT, None, 0),
        (10, True, PastPhase.HELD, "a", 10),
        (29.9, True, PastPhase.HELD, "a", 10),
        (30, True, PastPhase.EXPIRED, "a", 30),
        (35, True, PastPhase.HELD, "a", 10),
        (52, True, PastPhase.EXPIRED, "a", 50),
        (55, True, PastPhase.VACANT, None, 55),
        (60, True, PastPhase.HELD, "b", 60),
        (80, False, PastPhase.DELETED, None, 80),
        (100, True, PastPhase.HELD, "c", 100),
        (9999, True, PastPhase.HELD, "c", 100),
    ],
)
def test_every_instant_has_its_standing(seconds, exists, phase, holder, since):
    stood = as_of(STORY, after(seconds))
    assert (stood.exists, stood.phase, stood.holder) == (exists, phase, holder)
    assert stood.since == (None if since is None else after(since))


def test_before_what_is_remembered_nothing_is_claimed():
    life = fold([change_at(30, "recovered", "a")])
    assert as_of(life, after(29)).phase is PastPhase.UNKNOWN
    assert as_of(life, after(31)).since is None


def unheld(life: Life, since: float, until: float) -> float:
    return totals_in(life, Kind.ELECTION, since=after(since), until=after(until)).gap_seconds


def test_time_without_a_holder_counts_inside_terms_and_between_them():
    assert unheld(STORY, 0, 200) == 10 + 5 + 10 + 20  # the last while there was no Lease
    assert unheld(STORY, 32, 58) == 3 + 8
    open_end = fold([change_at(0, "created", "a"), change_at(40, "expired", "a")])
    assert unheld(open_end, 0, 100) == 60


def test_a_state_names_its_term_also_once_that_has_run_out():
    first, second = STORY.terms[0], STORY.terms[1]
    for seconds in (10, 29.9, 30, 36, 52):
        assert as_of(STORY, after(seconds)).term == first
    assert as_of(STORY, after(60)).term == second
    for seconds in (-1, 0, 55, 85):
        assert as_of(STORY, after(seconds)).term is None


def test_a_lease_of_whose_holder_nothing_is_remembered_is_there_all_the_same():
    stood = as_of(msgspec.structs.replace(STORY, terms=(), gaps=()), after(10))
    assert (stood.exists, stood.phase, stood.holder) == (True, PastPhase.UNKNOWN, None)


def test_a_lease_without_changes_has_no_state():
    stood = as_of(fold([]), after(0))
    assert (stood.exists, stood.phase) == (False, PastPhase.UNKNOWN)
