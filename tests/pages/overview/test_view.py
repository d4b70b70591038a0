"""The overview page."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from leases.domain.change import ChangeType
from leases.domain.watched_times import Connection, ConnectionState
from leases.history.deliveries import FailingReceiver
from tests.pages.conftest import remember, text_of
from tests.support.board import a_lease, fill


def test_the_overview_shows_figures_trouble_and_changes(store, operator):
    remember(ChangeType.RELEASED, previous_holder="cp-9", namespace="apps", name="free")
    html = text_of(operator.get("/c/a/"))
    assert re.search(r'data-figure="total".*?<span class="v">3</span>', html, re.DOTALL)
    assert "Changes of holder per hour over 24 h: 0 in total" in html
    assert "Age of the last renewal of" in html
    assert "was released by <code>cp-9</code>" in html


def test_a_quiet_cluster_needs_nothing(board, operator):
    store = board.clusters["a"].store
    fill(store, a_lease())
    store.connection = Connection(state=ConnectionState.LIVE, since=datetime.now(UTC))
    assert "Nothing needs attention" in text_of(operator.get("/c/a/"))


def test_a_receiver_that_fails_needs_attention_and_leads_to_its_log(board, operator):
    later = datetime.now(UTC) + timedelta(seconds=30)
    board.notifications.failing = [FailingReceiver(7, "on-call", 3, later)]
    html = text_of(operator.get("/c/a/"))
    assert '<a class="name" href="/notifications/log/?receiver=7">on-call</a>' in html
    assert "It does not take messages." in html
    assert re.search(r"<b>3 attempts</b>next at \d\d:", html)
    board.notifications.failing = [FailingReceiver(7, "on-call", 3, datetime.now(UTC))]
    assert "<b>3 attempts</b>next now" in text_of(operator.get("/c/a/"))


def test_a_cluster_that_nobody_watches_claims_nothing(board, operator):
    store = board.clusters["a"].store
    store.connection = Connection(
        state=ConnectionState.REFUSED, since=datetime.now(UTC), detail="Bind the ClusterRole."
    )
    html = text_of(operator.get("/c/a/"))
    assert "Nothing needs attention" not in html
    assert "No access since" in html
    assert "Bind the ClusterRole." in html
