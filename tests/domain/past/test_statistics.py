"""What terms add up to."""

from __future__ import annotations

import pytest

from leases.domain.figures import Held, Statistics, Totals, held, percentile, statistics, totals_of
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


def of(since: float, until: float, **more: object) -> Statistics:
    return statistics(fold(STORY), since=after(since), until=after(until), **more)


def totals(since: float, until: float, **more: object) -> Totals:
    return totals_of(STORY, since=after(since), until=after(until), **more)


def test_of_a_lease() -> None:
    found, counted = of(0, 400), totals(0, 400)
    assert (found.terms, found.longest, found.median) == (4, 194, 95)
    assert counted.gap_seconds == 2 + 4 + 3
    assert counted.watched_seconds == 400
    assert counted.handovers == 3
    assert (found.measured, found.handover_p50, found.handover_p95) == (2, 2, 18)


def test_a_range_cuts_the_time_without_a_holder_but_not_how_long_a_term_was() -> None:
    found = of(150, 201)
    assert (found.terms, found.longest) == (1, 194)
    assert totals(150, 201).gap_seconds == 1


def test_a_term_that_goes_on_is_as_long_as_the_range_shows() -> None:
    assert of(350, 410).longest == 100
    assert of(350, 410, held_for=103.0).longest == 103.0
    assert of(350, 410, blind=[(after(390), after(400))]).longest == 90.0


def test_of_a_short_time_no_second_is_left_out() -> None:
    """3.0 s of which 1.4 s lie in a pause of half a minute are no 3.0 s that somebody watched."""
    blind = [(after(0), after(31.4))]
    assert held(after(30), after(33), blind) == Held(pytest.approx(1.6), pytest.approx(1.4))
    assert held(after(30), after(60), blind) == Held(30, 0)


def test_a_term_of_which_nobody_watched_a_second_has_no_length() -> None:
    found = of(350, 410, blind=[(after(0), after(410))])
    assert (found.terms, found.longest, found.median) == (1, None, None)
    assert held(after(10), after(40), [(after(20), after(25))]) == Held(25.0, 5.0)
    assert held(after(10), after(40), [(after(20), after(21.5))]) == Held(30.0, 0.0)
    assert held(after(10), after(11), [(after(0), after(11))]) == Held(0.0, 1.0)


def test_the_same_holder_again_is_no_hand_over_and_another_after_a_deletion_is() -> None:
    again = (
        change_at(0, "created", "a"),
        change_at(10, "released", "a"),
        change_at(12, "acquired", "a"),
        change_at(20, "deleted", "a"),
        change_at(20.4, "created", "b", uid="u-2"),
    )
    found = totals_of(again, since=after(0), until=after(60))
    assert (found.handovers, found.gap_seconds) == (1, pytest.approx(2.4))
    assert found.watched_seconds == pytest.approx(60)
    times = statistics(fold(again), since=after(0), until=after(60))
    assert (times.measured, times.handover_p50) == (1, pytest.approx(0.4))


def test_no_hand_over_is_measured_across_a_time_that_nobody_watched() -> None:
    blind = [(after(290), after(301))]
    found = of(0, 400, blind=blind)
    assert (found.measured, found.handover_p95) == (1, 2)
    assert (found.longest, of(0, 400).longest) == (184, 194)
    assert totals(0, 400, blind=blind).handovers == 3
    assert totals(0, 400, blind=blind).gap_seconds == 2 + 4 + 2


def test_a_change_of_nothing() -> None:
    found = statistics(fold([]), since=after(0), until=after(9))
    assert (found.terms, found.longest, found.median, found.handover_p95) == (0, None, None, None)


@pytest.mark.parametrize(
    ("percent", "value"), [(50, 5), (95, 10), (90, 9), (100, 10), (1, 1), (0, 1)]
)
def test_a_percentile_is_a_value_that_was_seen(percent, value):
    assert percentile([10, 9, 8, 7, 6, 5, 4, 3, 2, 1], percent) == value
