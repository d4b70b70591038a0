"""Pages that read history claim no change that it does not have yet: it is told to them again."""

from __future__ import annotations

import re

import pytest

from dashboard.feed import stamp_of
from tests.support.board import a_lease, fill
from tests.support.values.changes import a_change

PAGES = ("history/?lease=scheduler", "timeline/", "holders/", "holders/cp-1/")


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("waiting", [0, 1, 1000])
def test_a_page_claims_what_history_has(board, operator, path, waiting):
    fill(board.clusters["a"].store, a_lease(holder="cp-1"))
    board.publisher.fill("a", [a_change()])
    feed = board.feeds["a"]
    feed.unwritten = lambda: waiting
    html = operator.get(f"/c/a/{path}").content.decode()
    claimed = int(re.search(r'data-feed="(\d+)"', html)[1])
    assert claimed == feed.seq - (waiting > 0)


@pytest.mark.parametrize("waiting", [0, 1, 1000])
def test_a_page_of_several_clusters_goes_back_to_what_history_lacks(board, waiting):
    change = a_change()
    board.publisher.fill("a", [change])
    feed = board.feeds["a"]
    feed.unwritten = lambda: waiting
    ago = change.observed_at.timestamp() - float(stamp_of([feed]).partition("-")[2])
    assert 0 < ago < 0.01 if waiting else ago < -0.01
