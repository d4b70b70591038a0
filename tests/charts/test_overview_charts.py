"""Pictures from numbers: hours of a day, ages of renewals."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from dashboard.charts.bars import hours_chart
from dashboard.charts.histograms import ages_chart, spans
from leases.domain.phase import Phase

NOW = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)


def test_the_running_hour_stands_last_and_the_highest_reaches_the_top():
    chart = hours_chart([0] * 21 + [4, 0, 2], NOW, what="Changes of holder")
    assert [bar.hour for bar in chart.bars[-3:]] == ["10:00", "11:00", "12:00"]
    assert [(bar.y, bar.height) for bar in chart.bars[-3:]] == [(16, 96), (111, 1), (64, 48)]
    assert [bar.number for bar in chart.bars if bar.highest] == [4]
    assert chart.finding == ("Changes of holder per hour over 24 h: 6 in total, highest 4 at 10:00")
    assert [number for _, number in chart.grid] == ["0", "2", "4"]
    assert chart.bars[-1].hit + chart.bars[-1].hit_width <= 100.01


def test_a_day_without_changes_says_so():
    chart = hours_chart([0] * 24, NOW, what="Changes of holder")
    assert chart.finding == "Changes of holder per hour over 24 h: 0 in total"
    assert not any(bar.highest for bar in chart.bars)


def test_an_hour_that_nobody_watched_has_no_number():
    hour = timedelta(hours=1)
    blind = [(NOW - 40 * hour, NOW - 20 * hour), (NOW - 1.25 * hour, NOW - hour)]
    chart = hours_chart([0] * 3 + [2] + [0] * 20, NOW, what="Changes", blind=blind)
    titles = [bar.title for bar in chart.bars]
    assert titles[:5] == [
        "13:00, not watched",
        "14:00, not watched",
        "15:00, not watched",
        "16:00, 2 changes, in part not watched",
        "17:00, 0 changes",
    ]
    assert titles[-2:] == ["11:00, 0 changes, in part not watched", "12:00, 0 changes"]
    assert [bar.known for bar in chart.bars] == [False] * 3 + [True] * 21
    assert chart.finding.endswith("; 5 h not watched in full")
    (x, width), (_, second_width) = chart.fog
    assert x <= chart.bars[0].hit
    assert x + width == pytest.approx(chart.bars[3].middle, abs=0.02)
    assert second_width == pytest.approx(chart.bars[0].hit_width / 4, abs=0.02)


def test_ages_stand_in_their_span_and_the_old_ones_together():
    held, late, dead = Phase.HELD, Phase.LATE, Phase.EXPIRED
    ages = {held: Counter([0.2, 0.9]), late: Counter([25.0]), dead: Counter([61.0, 9000.0])}
    chart = ages_chart(spans(ages, 40), 40, of="heartbeats")
    assert [(bar.phase, bar.title) for bar in chart.bars] == [
        ("held", "0 s to 1 s: 2 held"),
        ("late", "25 s to 26 s: 1 late"),
        ("expired", "59 s to more: 2 expired"),
    ]
    assert chart.counts == (("held", 2), ("late", 1), ("expired", 2))
    assert chart.finding == "Age of the last renewal of 5 heartbeats: 2 held, 1 late, 2 expired"
    assert chart.limit == 66.67


def test_one_late_among_130000_is_still_seen():
    ages = {(3, Phase.HELD): 130_000, (30, Phase.LATE): 1}
    chart = ages_chart(ages, 40, of="heartbeats")
    large, small = chart.bars
    assert (large.height, small.height) == (72.0, 5.0)
    numbers = [number for _, number in chart.levels]
    assert numbers == [1, 10, 100, 1_000, 10_000, 100_000]
    steps = {round(above - below, 0) for (above, _), (below, _) in pairwise(chart.levels)}
    assert len(steps) == 1, "each line is ten times the one below it"


def test_no_heartbeat_is_an_empty_picture():
    assert ages_chart({}, 40, of="heartbeats").bars == ()
