"""The learned interval between renewals."""

from __future__ import annotations

from leases.domain.phase import EMPTY, WINDOW, median, samples, with_sample


def learned(*samples: float) -> float | None:
    window = EMPTY
    for sample in samples:
        window = with_sample(window, sample)
    return median(window)


def test_no_samples_give_no_cadence() -> None:
    assert learned() is None


def test_a_missed_renewal_does_not_move_it() -> None:
    assert learned(10, 10, 10, 20, 10) == 10


def test_two_renewals_at_once_when_a_term_begins_do_not_move_it() -> None:
    assert learned(3.6, 0.006, 2.0) == 2.0
    assert learned(3.6, 0.006, 2.0, 2.0, 2.0) == 2.0


def test_a_new_cadence_is_learned_within_three_renewals() -> None:
    assert learned(2, 2, 2, 2, 2, 10, 10, 10) == 10


def test_it_keeps_no_more_than_its_window() -> None:
    window = EMPTY
    for sample in range(100):
        window = with_sample(window, float(sample))
    assert list(memoryview(window).cast("d")) == [95.0, 96.0, 97.0, 98.0, 99.0]
    assert len(memoryview(window).cast("d")) == WINDOW


def test_the_numbers_of_a_window_come_oldest_first():
    window = EMPTY
    for sample in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0):
        window = with_sample(window, sample)
    assert samples(window) == [2.0, 3.0, 4.0, 5.0, 6.0]
    assert samples(EMPTY) == []
