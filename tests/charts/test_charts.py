"""The geometry of lanes, strips, axes and labels: values in, shapes out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.charts.bars import bars
from dashboard.charts.lanes import (
    MAX_SHAPES,
    NARROW,
    WIDEST,
    Piece,
    fit,
    fog,
    marks,
    pieces,
    shapes,
)
from dashboard.charts.time_axis import Scale, ticks
from leases.domain.change import Change, ChangeType
from leases.domain.terms import fold
from tests.support.values import story
from tests.support.values.leases import after

NOON = after(0)
HOUR = Scale(NOON, NOON + timedelta(hours=1))


def changes_at(*steps: tuple[float, ChangeType, str | None]) -> list[Change]:
    """Changes of one Lease: when, what, and who holds it then."""
    return [story.change_at(*step) for step in steps]


HANDED_OVER = changes_at(
    (-600, ChangeType.CREATED, "cp-1"),
    (900, ChangeType.EXPIRED, "cp-1"),
    (1260, ChangeType.TAKEN_OVER, "cp-2"),
)


def test_terms_and_gaps_become_shapes_in_percent_of_the_stretch():
    drawn = shapes(fold(HANDED_OVER), HOUR)
    assert [(s.x, s.width) for s in drawn] == [(0, 25), (25, 10), (35, 65)]
    assert [s.term.holder if s.term else None for s in drawn] == ["cp-1", None, "cp-2"]
    assert [s.edge for s in drawn] == [False, True, True]


def test_a_recovered_expiry_cuts_its_term_without_beginning_it_again():
    changes = changes_at(
        (0, ChangeType.CREATED, "cp-1"),
        (900, ChangeType.EXPIRED, "cp-1"),
        (1800, ChangeType.RECOVERED, "cp-1"),
    )
    before, gap, later = shapes(fold(changes), HOUR)
    assert (before.term.holder, later.term.holder) == ("cp-1", "cp-1")
    assert (before.edge, later.edge) == (True, False)
    assert gap.gap.after is ChangeType.EXPIRED
    assert gap.seconds == 900


def test_a_gap_of_seconds_in_a_day_is_a_mark_and_not_lost():
    day = Scale(NOON - timedelta(hours=12), NOON + timedelta(hours=12))
    changes = changes_at(
        (-600, ChangeType.CREATED, "cp-1"),
        (900, ChangeType.EXPIRED, "cp-1"),
        (912, ChangeType.TAKEN_OVER, "cp-2"),
    )
    _, gap, _ = shapes(fold(changes), day)
    assert gap.narrow
    assert gap.gap is not None


def test_changes_too_dense_to_draw_become_a_band_with_their_count():
    steps = [(0.0, ChangeType.CREATED, "cp-0")]
    steps += [(1800 + n, ChangeType.REPLACED, f"cp-{n % 3}") for n in range(1, 21)]
    first, band, last = shapes(fold(changes_at(*steps)), HOUR)
    assert (first.term.holder, last.term.holder) == ("cp-0", "cp-2")
    assert band.term is None
    assert band.changes == 19  # the twentieth begins the wide term that is drawn beside it
    assert set(band.holders) == {"cp-0", "cp-1", "cp-2"}


def test_a_band_shows_the_time_without_a_holder():
    steps = [(0.0, ChangeType.CREATED, "cp-0")]
    for number in range(5):
        steps.append((1800.0 + 4 * number, ChangeType.RELEASED, None))
        steps.append((1801.0 + 4 * number, ChangeType.ACQUIRED, "cp-1"))
    band = shapes(fold(changes_at(*steps)), HOUR)[1]
    assert [(until - since).total_seconds() for since, until in band.lost] == [1.0] * 5


def test_a_lease_that_is_gone_leaves_its_lane_empty():
    changes = changes_at(
        (0, ChangeType.CREATED, "cp-1"),
        (900, ChangeType.DELETED, None),
    )
    (only,) = shapes(fold(changes), HOUR)
    assert (only.x, only.width) == (0, 25)


STEPS = st.lists(
    st.tuples(
        st.floats(0, 400),
        st.sampled_from([c for c in ChangeType if c is not ChangeType.CREATED]),
        st.sampled_from(["cp-1", "cp-2", "cp-3"]),
    ),
    max_size=400,
)


def seconds(piece: Piece) -> float:
    return (piece.until - piece.since).total_seconds()


@given(STEPS)
def test_any_life_is_drawn_in_order_inside_its_lane_with_a_bounded_number_of_shapes(steps):
    at, changes = 0.0, changes_at((0, ChangeType.CREATED, "cp-1"))
    for wait, change, holder in steps:
        at += wait
        nobody = change in (ChangeType.RELEASED, ChangeType.DELETED)
        changes += changes_at((at, change, None if nobody else holder))
    life = fold(changes)
    drawn = shapes(life, HOUR)
    assert len(drawn) <= MAX_SHAPES
    for one, next_ in pairwise(drawn):
        assert one.until <= next_.since
    for shape in drawn:
        assert HOUR.since <= shape.since < shape.until <= HOUR.until
        assert 0 <= shape.x <= 100
        assert shape.x + shape.width <= 100 + 1e-2
    cut = pieces(life, HOUR.since, HOUR.until)
    assert sum(map(seconds, cut)) <= HOUR.length.total_seconds() + 1e-3
    bands = sum(shape.changes for shape in drawn)
    assert bands + sum(not shape.changes for shape in drawn) >= len(cut) - len(drawn)
    gaps = sum(seconds(one) for one in cut if one.gap)
    drawn_gaps = sum(s.seconds for s in drawn if s.gap) + sum(
        (until - since).total_seconds() for s in drawn for since, until in s.lost
    )
    assert drawn_gaps == pytest.approx(gaps, abs=1e-3)


def test_thousands_of_changes_stay_a_few_dozen_shapes():
    steps = [(0.0, ChangeType.CREATED, "cp-0")]
    steps += [(0.7 * n, ChangeType.REPLACED, f"cp-{n % 5}") for n in range(1, 5000)]
    drawn = shapes(fold(changes_at(*steps)), HOUR)
    assert len(drawn) <= MAX_SHAPES
    assert sum(shape.changes for shape in drawn) > 4900


def test_an_hour_of_changes_becomes_bands_narrow_enough_to_zoom_into():
    steps = [(0.0, ChangeType.CREATED, "cp-0")]
    steps += [(7.0 * n, ChangeType.REPLACED, f"cp-{n % 2}") for n in range(1, 514)]
    bands = [shape for shape in shapes(fold(changes_at(*steps)), HOUR) if shape.changes]
    assert len(bands) == 6
    assert all(band.width <= WIDEST for band in bands)
    assert all(one.until == next_.since for one, next_ in pairwise(bands))
    assert sum(band.changes for band in bands) == 513


def test_a_lease_that_is_made_anew_all_the_time_stays_bounded():
    changes = []
    for number in range(1500):
        changes.append(story.change_at(2 * number, "created", "cp-1", uid=f"u{number}"))
        changes.append(story.change_at(2 * number + 1, "deleted", "cp-1", uid=f"u{number}"))
    assert len(shapes(fold(changes), HOUR)) <= MAX_SHAPES


def test_marks_that_fall_together_are_one_with_their_number():
    moments = [(after(60), "edit"), (after(61), "edit"), (after(61), "reconfigured")]
    found = marks(moments, HOUR)
    assert [(mark.what, mark.number) for mark in found] == [("edit", 2), ("reconfigured", 1)]
    assert marks([(after(-1), "edit"), (after(3601), "edit")], HOUR) == ()


def test_unwatched_time_is_cut_to_the_stretch_and_joined_where_it_touches():
    spans = [
        (after(-99), after(360)),
        (after(360), after(720)),
        (after(1800), after(2160)),
        (after(9000), after(9999)),
    ]
    found = fog(spans, HOUR)
    assert [(one.x, one.width) for one in found] == [(0, 20), (50, 10)]
    assert (found[0].since, found[0].until) == (after(-99), after(720))


@given(st.integers(0, 100 * 366 * 86400), st.integers(10, 400 * 86400))
def test_an_axis_has_few_ticks_at_round_moments_in_order(epoch, seconds):
    since = datetime.fromtimestamp(epoch, UTC)
    scale = Scale(since, since + timedelta(seconds=seconds))
    found = ticks(scale)
    assert 1 <= len(found) <= 15
    assert all(0 <= tick.x <= 100 for tick in found)
    assert all(one.x < next_.x for one, next_ in pairwise(found))


def test_an_axis_says_hours_and_days():
    six = Scale(NOON + timedelta(hours=8, minutes=4), NOON + timedelta(hours=14, minutes=4))
    assert [tick.label for tick in ticks(six)] == [
        "21:00", "22:00", "23:00", "21 Nov", "01:00", "",
    ]  # fmt: skip
    assert [tick.label for tick in ticks(six) if tick.strong] == ["21 Nov"]
    minute = Scale(NOON, NOON + timedelta(seconds=20))
    assert [tick.label for tick in ticks(minute)][1] == "12:00:05"


def test_a_strip_is_as_high_as_its_highest_bar_and_shows_one_change():
    found = bars([0, 1, 80], NOON, timedelta(minutes=15), height=30)
    assert [bar.height for bar in found] == [1.5, 3.0, 30.0]
    assert [bar.since for bar in found][2] == after(1800)
    assert found[0].x < found[1].x < found[2].x < 100
    assert bars([0, 0, 1], NOON, timedelta(minutes=15), height=30)[2].height < 10


@pytest.mark.parametrize(
    ("share", "label"),
    [
        (100, "ingress-nginx-controller-59d4c9cf7d-l4xvb"),
        (20, "ingress-nginx-co…-l4xvb"),
        (10, "ing…-l4xvb"),
        (8, "…d-l4xvb"),
        (7, "…l4xvb"),
        (6, ""),
        (3, ""),
    ],
)
def test_a_label_is_shortened_to_its_bar_and_keeps_the_tail(share, label):
    fitted = fit("ingress-nginx-controller-59d4c9cf7d", "-l4xvb", share)
    assert fitted == label


def test_narrow_is_what_the_design_says():
    assert NARROW == 0.5
