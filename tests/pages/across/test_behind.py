"""A board that cannot keep up says how far it is behind, wherever it shows how Leases stand."""

from __future__ import annotations

import msgspec
import pytest

from dashboard import clock
from dashboard.live.messages import connection_item
from tests.pages.conftest import text_of

SAID = "Leaseboard is 42 s behind: more arrives than it reads."


@pytest.fixture
def behind(store):
    """Cluster a, live, whose newest event taken is 42 s old while more wait."""
    store.connection = msgspec.structs.replace(
        store.connection, behind_seconds=42.0, lag_seconds=42.0, heard_at=clock.now()
    )
    return store


@pytest.mark.parametrize(
    "path", ["", "leases/", "timeline/", "nodes/", "leases/kube-system/scheduler/"]
)
def test_a_page_says_so_and_is_as_of_then(behind, operator, path):
    html = text_of(operator.get(f"/c/a/{path}"))
    assert 'data-live="stale"' in html
    assert "Not live since" in html
    assert SAID in html


def test_the_wall_says_so(behind, operator):
    html = text_of(operator.get("/c/a/wall/"))
    assert 'data-live="stale"' in html
    assert "NOT LIVE for <span data-not-live>00:00:4" in html


@pytest.mark.parametrize("path", ["leases/", "holders/"])
def test_json_says_so(behind, operator, path):
    answer = operator.get(f"/c/a/{path}?format=json").json()
    assert answer["connection"] == "stale"
    assert answer["behind_seconds"] == 42.0
    assert answer["as_of"] < answer["now"]


def test_the_metrics_and_the_frames_say_so(behind, operator):
    assert 'leaseboard_seconds_behind{cluster="a"} 42.0' in text_of(operator.get("/metrics"))
    now = clock.now()
    item = connection_item(behind.connection, now=now, events_per_second=0.0, problem=None)
    assert (item["state"], item["detail"], item["behind_seconds"]) == ("stale", SAID, 42.0)
    assert now.timestamp() - item["as_of"] == pytest.approx(42.0)


def test_a_board_that_keeps_up_says_nothing(store, operator):
    assert 'data-live="live"' in text_of(operator.get("/c/a/"))
    assert "as_of" not in operator.get("/c/a/leases/?format=json").json()
