"""When an inferred change, or one that arrives late, happened."""

from __future__ import annotations

import pytest

from leases.domain.change import Observation
from leases.domain.phase import Phase
from tests.domain.changes.judged import changes, relisted
from tests.support.values.known_changes import Known
from tests.support.values.leases import after, lease


def test_an_inferred_change_of_holder_happened_when_the_new_one_says_it_acquired() -> None:
    seen = relisted(60, 5)
    (change,) = changes(Known(lease=lease()), lease("b", acquired=15, renewed=58), seen=seen)
    assert (change.change, change.at, change.observed_at) == ("taken_over", after(15), after(60))
    assert (change.inferred, change.inferred_since) == (True, after(5))
    assert change.gap_seconds == 0.0  # at most: the old one may have renewed later
    (change,) = changes(Known(lease=lease()), lease("b", acquired=14, renewed=58), seen=seen)
    assert (change.change, change.at) == ("replaced", after(14))


@pytest.mark.parametrize(
    ("acquired", "since", "transitions", "gap"),
    [(40, 5, 1, 25.0), (40, 35, 1, 5.0), (40, 5, 3, None)],
)
def test_an_unseen_take_over_ended_a_gap_of_at_most_the_time_since_it_could_run_out(
    acquired: int, since: int, transitions: int, gap: float | None
) -> None:
    """It was held when we lost sight; with holders in between nothing is known."""
    taken = lease("b", acquired=acquired, renewed=58, transitions=transitions)
    (change,) = changes(Known(lease=lease()), taken, seen=relisted(60, since))
    assert (change.change, change.gap_seconds) == ("taken_over", gap)


@pytest.mark.parametrize("acquired", [None, -3600, 3600])
def test_without_an_acquire_time_in_the_window_it_happened_when_we_saw_it(
    acquired: float | None,
) -> None:
    seen = relisted(60, 5)
    (change,) = changes(Known(lease=lease()), lease("b", acquired=acquired, renewed=58), seen=seen)
    assert (change.change, change.at) == ("taken_over", after(60))


def test_an_inferred_change_ends_a_gap_only_if_both_ends_are_known() -> None:
    expired = Known(lease=lease(), phase=Phase.EXPIRED, gap_since=after(15))
    seen = relisted(60, 20)
    (change,) = changes(expired, lease("b", acquired=30, renewed=58), seen=seen)
    assert change.gap_seconds == 15
    (change,) = changes(expired, lease("b", acquired=None, renewed=58), seen=seen)
    assert change.gap_seconds is None


def test_a_single_write_that_arrives_late_happened_when_its_renew_time_says() -> None:
    seen = Observation(now=after(60), since=after(5))
    (change,) = changes(Known(lease=lease()), lease("b", acquired=None, renewed=16), seen=seen)
    assert (change.change, change.at, change.inferred) == ("taken_over", after(16), False)


def test_a_late_renewal_is_corrected_by_the_clock_skew_of_its_holder() -> None:
    skewed = Known(
        lease=lease(renewed=-300), phase=Phase.EXPIRED, gap_since=after(15), skew_seconds=300
    )
    seen = Observation(now=after(60), since=after(20))
    (change,) = changes(skewed, lease(renewed=-270), seen=seen)
    assert (change.change, change.at) == ("recovered", after(30))
