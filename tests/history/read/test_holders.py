"""Whose terms ended in a range, from the changes that end one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from leases.domain.change import ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.history import states_as_of, timeline_lanes
from leases.history.states_as_of import EndedTerms, ended_terms
from tests.support.values.change_rows import to_row
from tests.support.values.changes import T0, a_change

pytestmark = pytest.mark.django_db

A = ObjectName("ns", "a")


def keep(change: ChangeType, minutes: float, *, name: str = "a", kind=Kind.ELECTION, **more):
    at = T0 + timedelta(minutes=minutes)
    known = {"holder": None, "previous_holder": None, "namespace": "ns", "name": name}
    known |= {"kind": kind, "change": change, "at": at, "resource_version": str(minutes)}
    to_row(a_change(**(known | more))).save()


def found(kinds=(Kind.ELECTION,), since=T0) -> set[tuple[str, str, int]]:
    past = ended_terms("a", kinds, since)
    return {(ended.holder, ended.key.name, ended.terms) for ended in past.ended}


def test_every_ending_counts_for_the_holder_whose_term_it_ended():
    keep(ChangeType.TAKEN_OVER, 1, holder="y", previous_holder="x")
    keep(ChangeType.REPLACED, 2, holder="z", previous_holder="y")
    keep(ChangeType.RELEASED, 3, previous_holder="z")
    keep(ChangeType.ACQUIRED, 4, holder="x")
    keep(ChangeType.RESTARTED, 5, holder="x", previous_holder="x")
    keep(ChangeType.DELETED, 6, previous_holder="x")
    assert found() == {("x", "a", 3), ("y", "a", 1), ("z", "a", 1)}


def test_changes_that_end_no_term_count_for_nobody():
    keep(ChangeType.EXPIRED, 1, holder="x", previous_holder="x")
    keep(ChangeType.RECOVERED, 2, holder="x", previous_holder="x")
    keep(ChangeType.DELETED, 3, previous_holder=None)
    assert found() == set()


def test_other_kinds_clusters_and_times_are_left_out():
    keep(ChangeType.RELEASED, 1, previous_holder="x", kind=Kind.LOCK)
    keep(ChangeType.RELEASED, 2, previous_holder="y", cluster="other")
    keep(ChangeType.RELEASED, -1, previous_holder="z")
    keep(ChangeType.RELEASED, 3, previous_holder="x", name="b")
    assert found() == {("x", "b", 1)}
    past = ended_terms("a", (Kind.LOCK,), T0)
    assert past.ended == (EndedTerms("x", A, Kind.LOCK, 1),)
    assert past.since == T0


def test_of_too_many_changes_the_newest_are_read_and_the_page_says_since_when(monkeypatch):
    monkeypatch.setattr(states_as_of, "MAX_CHANGES", 2)
    for minutes in range(5):
        keep(ChangeType.RELEASED, minutes, previous_holder=f"h{minutes}")
    past = ended_terms("a", (Kind.ELECTION,), T0)
    assert past.since == T0 + timedelta(minutes=2)
    assert {ended.holder for ended in past.ended} == {"h2", "h3", "h4"}


def test_a_busy_lane_that_is_not_counted_still_names_its_holders(monkeypatch):
    monkeypatch.setattr(timeline_lanes, "CHANGES", 4)
    monkeypatch.setattr(timeline_lanes, "MIN_CHANGES", 4)
    monkeypatch.setattr(timeline_lanes, "MIN_PIECES", 4)
    monkeypatch.setattr(timeline_lanes, "PIECES", 4)
    for number in range(20):
        keep(ChangeType.REPLACED, 1 + number, holder=f"h{number}", previous_holder="x")
    until = T0 + timedelta(minutes=40)
    (lane,) = timeline_lanes.lanes("a", [A], since=T0, until=until, counted=False)
    assert lane.bands == ()
    assert lane.changes == 20
    assert [term.holder for term in lane.life.terms] == ["h9", "h19"]
    (lane,) = timeline_lanes.lanes("a", [A], since=T0, until=until)
    assert sum(band.changes for band in lane.bands) == 20
