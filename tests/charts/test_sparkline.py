"""A day in 24 bars."""

from __future__ import annotations

from dashboard.charts.bars import UNWATCHED, sparkline


def test_every_hour_is_a_bar_in_the_class_of_its_number():
    bars = sparkline([0] * 20 + [1, 2, 3, 99])
    assert (bars.zero.count("M"), bars.some.count("M"), bars.hot.count("M")) == (20, 2, 2)
    assert bars.total == 105


def test_a_bar_grows_with_its_number_up_to_the_height():
    assert sparkline([1]).some == "M0.0 17v-3.2h2.2v3.2z"
    assert sparkline([0, 5]).hot == "M3.2 17v-16h2.2v16z"
    assert sparkline([0, 500]).hot == sparkline([0, 5]).hot


def test_an_hour_that_nobody_watched_is_fog_unless_it_has_a_change():
    bars = sparkline([0, 0, 2, 0], [UNWATCHED, f"in part {UNWATCHED}", UNWATCHED, ""])
    assert (bars.blind, bars.unwatched) == ("M0.0 17v-16h3.2v16z", 1)
    assert (bars.zero.count("M"), bars.some.count("M")) == (2, 1)
