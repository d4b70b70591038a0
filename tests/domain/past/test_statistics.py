"""What terms add up to."""

from __future__ import annotations

import pytest

from leases.domain.figures import percentile, statistics
from leases.domain.terms import fold
from tests.support.values.leases import after
from tests.support.values.story import change_at

STORY = (
    change_at(0, "created", "a"),
    change_at(100, "released", "a"),
    change_at(102, "acquired", "b"),
    change_at(200, "expired", "b", renewed_at=after(185)),
    change_at(204, "recovered", "b"),
    change_at(300, "expired", "b", renewed_at=after(285)),
    change_at(303, "taken_over", "a"),
    change_at(310, "replaced", "c"),
)


def of(since: float, until: float, holder: str | None = None):
    return statistics([fold(STORY)], since=after(since), until=after(until), holder=holder)


def test_of_a_lease():
    found = of(0, 400)
    assert (found.terms, found.longest, found.median) == (4, 198, 95)
    assert found.leaderless == 2 + 4 + 3
    assert found.held == 400 - 9
    assert (found.handovers, found.handover_p50, found.handover_p95) == (2, 2, 18)


def test_of_a_holder():
    found = of(0, 400, "b")
    assert (found.terms, found.longest, found.held) == (1, 198, 194)
    assert found.leaderless == 4 + 3
    assert (found.handovers, found.handover_p50) == (1, 2)
    assert of(0, 400, "a").handover_p50 == 18


def test_a_range_cuts_what_is_held_but_not_how_long_a_term_was():
    found = of(150, 201)
    assert (found.terms, found.longest) == (1, 198)
    assert (found.held, found.leaderless) == (50, 1)


def test_a_term_that_goes_on_is_as_long_as_the_range_shows():
    assert of(350, 410).longest == 100


def test_a_change_of_nothing():
    found = statistics([], since=after(0), until=after(9))
    assert (found.terms, found.longest, found.median, found.handover_p95) == (0, None, None, None)


@pytest.mark.parametrize(
    ("percent", "value"), [(50, 5), (95, 10), (90, 9), (100, 10), (1, 1), (0, 1)]
)
def test_a_percentile_is_a_value_that_was_seen(percent, value):
    assert percentile([10, 9, 8, 7, 6, 5, 4, 3, 2, 1], percent) == value
