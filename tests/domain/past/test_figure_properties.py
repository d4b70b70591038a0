"""The figures of any history agree with their parts, however a time is cut and whoever watched."""

from __future__ import annotations

from datetime import timedelta
from functools import reduce
from itertools import pairwise
from operator import add

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leases.domain.change import Change, ChangeType
from leases.domain.figures import Span, Totals, statistics, totals_of, unheld_seconds
from leases.domain.kind import Kind
from leases.domain.terms import GapFollower, LeaseGap, fold
from leases.tracking.store import Store
from tests.support.values.changes import a_change
from tests.support.values.lease_histories import Event, apply_all, histories
from tests.support.values.leases import after

FIRST, LAST = after(-1000), after(2000)
edges_of_spans = st.lists(st.integers(-500, 900), max_size=6, unique=True)
limits = st.sampled_from([None, timedelta(seconds=30), timedelta(hours=1)])


def spans(edges: list[int]) -> list[Span]:
    """Spans that do not overlap, in order."""
    some = [after(second) for second in sorted(edges)]
    return list(zip(some[::2], some[1::2], strict=False))


def by_lease(events: list[Event]) -> list[list[Change]]:
    found: dict[str, list[Change]] = {}
    for change in apply_all(Store("a"), events):
        election = msgspec.structs.replace(change, kind=Kind.ELECTION)
        found.setdefault(change.name, []).append(election)
    return list(found.values())


@given(histories(), edges_of_spans, edges_of_spans, edges_of_spans, limits)
def test_the_parts_of_a_time_add_up_to_the_whole(events, cuts, blind, marks, limit):
    more = {
        "blind": spans(blind), "may_be_vacant": spans(marks), "abandoned_after": limit,
    }  # fmt: skip
    edges = [FIRST, *(after(second) for second in sorted(cuts)), LAST]
    for changes in by_lease(events):
        whole = totals_of(changes, since=FIRST, until=LAST, **more)
        parts = [totals_of(changes, since=a, until=b, **more) for a, b in pairwise(edges)]
        total = reduce(add, parts, Totals())
        assert total.gap_seconds == pytest.approx(whole.gap_seconds, abs=1e-6)
        assert total.watched_seconds == pytest.approx(whole.watched_seconds, abs=1e-6)
        assert total.unwatched_seconds == pytest.approx(whole.unwatched_seconds, abs=1e-6)
        assert (total.handovers, total.failovers) == (whole.handovers, whole.failovers)


@given(histories(), edges_of_spans, edges_of_spans, limits)
def test_no_figure_is_larger_than_what_it_is_a_part_of(events, blind, marks, limit):
    length = (LAST - FIRST).total_seconds()
    for changes in by_lease(events):
        found = totals_of(
            changes,
            since=FIRST,
            until=LAST,
            blind=spans(blind),
            may_be_vacant=spans(marks),
            abandoned_after=limit,
        )
        assert -1e-6 <= found.gap_seconds <= found.watched_seconds + 1e-6
        assert found.watched_seconds + found.unwatched_seconds <= length + 1e-6
        assert found.failovers <= found.handovers
        measured = statistics(fold(changes), since=FIRST, until=LAST, blind=spans(blind))
        assert measured.measured <= found.handovers
        assert found.handovers <= measured.terms


@given(histories())
def test_time_that_nobody_watched_is_in_no_figure(events):
    for changes in by_lease(events):
        found = totals_of(changes, since=FIRST, until=LAST, blind=[(FIRST, LAST)])
        assert (found.gap_seconds, found.watched_seconds) == (0, 0)
        measured = statistics(fold(changes), since=FIRST, until=LAST, blind=[(FIRST, LAST)])
        assert (measured.measured, measured.longest or 0.0, measured.median or 0.0) == (0, 0, 0)


@given(histories())
def test_handovers_counted_as_they_come_are_those_of_the_whole_history(events):
    for changes in by_lease(events):
        follower = GapFollower()
        came = sum(follower.step(change).handover for change in changes)
        assert came == totals_of(changes, since=FIRST, until=LAST).handovers


def test_a_gap_that_ends_where_the_next_change_follows_at_once_is_told_once():
    deleted = {"change": ChangeType.DELETED, "holder": None, "gap_seconds": None}
    follower, one, other = GapFollower(), FIRST, FIRST + timedelta(seconds=10)
    changes = [
        a_change(at=one, previous_holder="x", **deleted),
        a_change(at=other, previous_holder=None, **(deleted | {"change": ChangeType.CREATED})),
        a_change(at=other, previous_holder=None, **deleted),
    ]
    told = [gap.gap for change in changes for gap in follower.follow(change)]
    assert [(gap.since, gap.until) for gap in told] == [(one, other)]


@given(histories(), edges_of_spans, limits)
def test_gaps_counted_as_they_end_are_those_of_the_whole_history(events, blind, limit):
    for changes in by_lease(events):
        follower, ended = GapFollower(), list[LeaseGap]()
        for change in changes:
            ended += follower.follow(change)
        open_gaps = [
            LeaseGap(
                ended[0].key if ended else None,
                gap,
                fold(changes).terms[-1].since if fold(changes).terms else None,
            )
            for gap in fold(changes).gaps
            if gap.until is None
        ]
        counted = sum(
            unheld_seconds(
                one.gap,
                Kind.ELECTION,
                (FIRST, LAST),
                spans(blind),
                held_since=one.held_since,
                abandoned_after=limit,
            )
            for one in (*ended, *open_gaps)
        )
        whole = totals_of(
            changes, since=FIRST, until=LAST, blind=spans(blind), abandoned_after=limit
        )
        assert counted == pytest.approx(whole.gap_seconds, abs=1e-6)
