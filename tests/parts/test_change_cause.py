"""The cause of a change in a few words, and who wrote it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dashboard.live.shared_drawings import render_change
from dashboard.parts.change_sentence import change_line
from leases.domain.incident import Cause
from leases.domain.kind import Kind
from tests.support.values.changes import T0, a_change

LATER = T0 + timedelta(minutes=10)


def test_a_change_links_to_its_incident_in_a_few_words():
    line = change_line(a_change(cause=Cause.NODE_DOWN, incident="5e1f"), LATER)
    assert line.cause is not None
    assert (line.cause.word, line.cause.url) == ("node down", "/c/a/incidents/5e1f/")


def test_an_old_change_and_an_innocent_one_have_no_cause():
    assert change_line(a_change(), LATER).cause is None


@pytest.mark.parametrize(("minutes", "says"), [(1, "not known yet"), (3, "cause not known")])
def test_a_cause_that_is_not_known_is_said_to_be_sought_until_it_is_settled(minutes, says):
    change = a_change(cause=Cause.UNKNOWN, incident="5e1f")
    line = change_line(change, T0 + timedelta(minutes=minutes))
    assert line.cause is not None
    assert line.cause.word == says


@pytest.mark.parametrize("hour", [-6, 6])
@pytest.mark.parametrize(("minutes", "says"), [(1, "not known yet"), (3, "cause not known")])
def test_a_line_of_an_open_page_says_so_too_at_any_time_of_day(hour, minutes, says):
    at = T0 + timedelta(hours=hour)
    change = a_change(cause=Cause.UNKNOWN, incident="5e1f", at=at, observed_at=at)
    assert says in render_change(change, "line", at + timedelta(minutes=minutes))


@pytest.mark.parametrize(
    ("writer", "kind", "by_hand"),
    [
        ("kubectl-edit", Kind.ELECTION, True),
        ("kube-scheduler", Kind.ELECTION, False),
        ("terraform", Kind.LOCK, False),
        (None, Kind.ELECTION, False),
    ],
)
def test_a_persons_tool_stands_out_and_a_holders_own_manager_does_not(writer, kind, by_hand):
    assert change_line(a_change(writer=writer, kind=kind), LATER).by_hand is by_hand
