"""History and the page of a Lease name the cause of each change, and who wrote it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from leases.domain.change import Change, ChangeType
from leases.domain.incident import Cause
from leases.history.write_batch import write_changes
from leases.tracking.tracked_lease import Update
from tests.pages.conftest import HTMX, text_of
from tests.support.board import KEY
from tests.support.values.changes import a_change
from tests.support.values.incident_rows import incident_with
from tests.support.values.incident_rows import store as keep

LONG_AGO = datetime.now(UTC) - timedelta(hours=1)


def passed(seconds: float, change: ChangeType, **more) -> Change:
    at = LONG_AGO + timedelta(seconds=seconds)
    return a_change(int(seconds), change=change, at=at, observed_at=at, **more)


@pytest.fixture
def told(store, db):
    """A node that went down, a theft, and a change that belongs to no incident."""
    down = passed(1, ChangeType.EXPIRED, writer="kube-scheduler")
    stolen = passed(9, ChangeType.REPLACED, writer="kubectl-edit", holder="me")
    innocent = passed(20, ChangeType.RECONFIGURED)
    write_changes([down, stolen, innocent])
    keep(incident_with(down, id="down"))
    keep(incident_with(stolen, id="theft", cause=Cause.BY_HAND, writer="kubectl-edit"))


@pytest.mark.parametrize("path", ["history/", "history/?view=sentences", f"leases/{KEY}/"])
def test_a_change_names_its_cause_with_the_way_to_its_incident(told, operator, path):
    text = text_of(operator.get(f"/c/a/{path}"))
    assert text.count('class="why-link"') == 2
    assert 'href="/c/a/incidents/down/"' in text
    assert "node down" in text
    assert "by kubectl-edit" in text


def test_a_holders_own_manager_is_named_plainly_in_the_table_alone(told, operator):
    table = text_of(operator.get("/c/a/history/"))
    assert '<span title="kube-scheduler">by kube-scheduler</span>' in table
    assert '<span class="strong" title="kubectl-edit">by kubectl-edit</span>' in table
    assert "by kube-scheduler" not in text_of(operator.get("/c/a/history/?view=sentences"))


@pytest.mark.parametrize("query", ["", "?change=expired"])
def test_a_cause_that_is_not_written_yet_is_shown(store, operator, board, query):
    down = passed(1, ChangeType.EXPIRED)
    write_changes([down])
    hub = board.publisher.hubs["a"]
    hub.publish(Update(cluster="a", now=LONG_AGO, seq=1, changes=(down,)))
    hub.incidents_moved([incident_with(down, id="down")])
    assert 'href="/c/a/incidents/down/"' in text_of(operator.get(f"/c/a/history/{query}"))


def test_history_is_filtered_by_several_causes(told, operator):
    def found(query: str) -> list[str]:
        items = operator.get(f"/c/a/history/?format=json&{query}").json()["items"]
        return [item["incident"] for item in items]

    assert found("cause=by_hand") == ["theft"]
    assert found("cause=by_hand&cause=node_down") == ["theft", "down"]
    assert found("cause=by_hand&cause=node_down&change=expired") == ["down"]
    assert found("cause=node_down&namespace=kube-system&lease=scheduler") == ["down"]
    assert found("cause=crash") == []


def test_the_chosen_causes_are_shown_and_kept(told, operator):
    query = "cause=by_hand&cause=node_down"
    page = text_of(operator.get(f"/c/a/history/?{query}"))
    assert '<span id="cause-label">By hand, Node down</span>' in page
    assert 'name="cause" value="by_hand" checked' in page
    assert f"/c/a/history/?{query.replace('&', '&amp;')}&amp;format=csv" in page
    assert "2 matching changes in the last 24 h" in page
    part = text_of(operator.get("/c/a/history/?cause=crash", headers=HTMX))
    assert "Cause is crash." in part
