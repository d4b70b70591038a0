"""How long a Lease has been expired: one age on every page, over a time that nobody watched."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest

from dashboard import clock
from dashboard.board import running_board
from dashboard.live.shared_drawings import render_tile
from leases.domain.change import ChangeType
from leases.domain.incident import Cause
from leases.domain.watched_times import Connection, ConnectionState
from leases.models import WatchSpan
from tests.pages.conftest import text_of
from tests.support.board import KEY, a_lease, fill
from tests.support.values import incident_rows
from tests.support.values.change_rows import to_row
from tests.support.values.changes import a_change
from tests.support.values.incidents import an_incident

NOW = datetime(2026, 11, 26, 16, 50, 49, tzinfo=UTC)
EXPIRED = NOW - timedelta(minutes=4, seconds=31)
STOPPED, STARTED = NOW - timedelta(seconds=120), NOW - timedelta(seconds=98)
BEGAN = NOW - timedelta(minutes=40)
SINCE = f'data-since="{EXPIRED.timestamp()}"'


@pytest.fixture
def expired(board, db, monkeypatch):
    """A Lease that is expired, also while Leaseboard was stopped for 22 s."""
    monkeypatch.setattr(clock, "now", lambda: NOW)
    store = board.clusters["a"].store
    fill(store, a_lease(now=EXPIRED - timedelta(seconds=15)))
    while store.turn(NOW):
        pass
    watched = board.feeds["a"].activity.watched
    for state, since in (("live", BEGAN), ("stale", STOPPED), ("live", STARTED)):
        watched.record(Connection(state=ConnectionState(state), since=since, heard_at=since))
    store.connection = Connection(state=ConnectionState.LIVE, since=STARTED, heard_at=NOW)
    span = {"cluster": "a", "process": "p"}
    WatchSpan.objects.create(since=BEGAN, until=STOPPED, ended="stopped", **span)
    WatchSpan.objects.create(since=STARTED, until=NOW + timedelta(minutes=1), **span)
    return store


def words(answer) -> str:
    text = re.sub(r"<(script|svg).*?</\1>", " ", text_of(answer), flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", text)))


@pytest.fixture
def incident(expired):
    """The same as an incident that goes on."""
    change = a_change(change=ChangeType.EXPIRED, at=EXPIRED, observed_at=EXPIRED, gap_seconds=None)
    to_row(change).save()
    one = an_incident(
        cause=Cause.UNKNOWN,
        began=EXPIRED,
        ended=None,
        leases=(KEY,),
        hosts=(),
        members=(incident_rows.member_of(change),),
        worst_gap_seconds=None,
        unheld_since=EXPIRED,
    )
    incident_rows.store(one)
    running_board().publisher.hubs["a"].going_on = lambda: [one]


@pytest.mark.parametrize("path", ["", "wall/", f"leases/{KEY}/"])
def test_every_page_says_the_same_age(path, expired, operator):
    html = text_of(operator.get(f"/c/a/{path}"))
    assert re.search(f"{SINCE}[^>]*>4 m 31 s<", html)


def test_a_drawing_that_is_sent_says_the_same_age(expired, board):
    tile = render_tile("a", expired.get(KEY), NOW, board.feeds["a"].activity)
    assert re.search(f"{SINCE}>4 m 31 s<", tile)


@pytest.mark.parametrize("path", ["", "incidents/", "incidents/first/", f"leases/{KEY}/"])
def test_an_incident_has_the_age_of_its_lease(path, incident, operator):
    html = text_of(operator.get(f"/c/a/{path}"))
    assert re.search(f"{SINCE}[^>]*>4 m 31 s<", html)


def test_a_figure_of_watched_time_says_what_it_leaves_out(incident, operator):
    told = words(operator.get("/c/a/incidents/first/"))
    assert "Worst without a holder 4 m 9 s scheduler 22 s more not watched" in told
    assert "4 m 9 s so far, 22 s more not watched" in told
    exported = text_of(operator.get("/c/a/incidents/first/?format=markdown"))
    assert "| 4 m 9 s so far, 22 s more not watched |" in exported
    told = words(operator.get(f"/c/a/leases/{KEY}/?range=15m"))
    assert "4 m 9 s without a holder, 22 s more not watched" in told


def test_a_figure_of_time_that_was_all_watched_says_nothing_more(incident, operator):
    WatchSpan.objects.update(until=NOW + timedelta(minutes=1))
    assert "more not watched" not in words(operator.get("/c/a/incidents/first/"))
    assert "more not watched" not in words(operator.get(f"/c/a/leases/{KEY}/?range=15m"))
