"""A stretch of one's own: Leases ranked, incidents in it, export and share."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from dashboard.board import running_board
from dashboard.pages.history import stretch
from leases.domain.change import ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.watched_times import Connection, ConnectionState
from leases.history import change_counts
from leases.models import WatchSpan
from tests.pages.conftest import remember, text_of
from tests.support.board import a_lease, fill
from tests.support.values.incidents import open_incident

NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=1)
STRETCH = f"from={NOON:%Y-%m-%dT%H:%M:%SZ}&to={NOON + timedelta(minutes=30):%Y-%m-%dT%H:%M:%SZ}"
BUSY, LOST, BEFORE = "busy", "lost", "before"


@pytest.fixture
def store(board, db):
    """Three elections: one changes often, one loses its holder, one had none all along."""
    stretch._totals._answers.clear()
    stretch._measured._answers.clear()
    WatchSpan.objects.create(
        cluster="a", process="p", since=NOON - timedelta(hours=2), until=NOON + timedelta(hours=3)
    )
    store = board.clusters["a"].store
    fill(store, *(a_lease(ObjectName("apps", name)) for name in (BUSY, LOST, BEFORE)))
    store.connection = Connection(state=ConnectionState.LIVE, since=NOON)
    note(BEFORE, ChangeType.EXPIRED, -3600, holder="w-3")
    note(BEFORE, ChangeType.TAKEN_OVER, 7200, holder="w-4", gap_seconds=10_800.0)
    note(LOST, ChangeType.EXPIRED, -60, holder="w-0")
    note(LOST, ChangeType.TAKEN_OVER, 20, holder="w-1", gap_seconds=80.0)  # 20 s of it inside
    note(LOST, ChangeType.EXPIRED, 1500, holder="w-1")  # 300 s to the end
    note(LOST, ChangeType.RELEASED, 1600, previous_holder="w-1")
    for second in (100, 200, 300, 400):
        note(BUSY, ChangeType.REPLACED, second, holder=f"w-{second}", previous_holder="w-0")
    return store


def note(name: str, change: ChangeType, second: float, **more) -> None:
    at = NOON + timedelta(seconds=second)
    known: dict = {
        "namespace": "apps",
        "name": name,
        "kind": Kind.ELECTION,
        "at": at,
        "observed_at": at,
    }
    remember(change, resource_version=str(second), **(known | more))


def ranked(browser, query: str) -> list[tuple[str, int, int, float]]:
    answer = browser.get(f"/c/a/history/stretch/?format=json&{query}").json()
    return [
        (one["name"], one["changes"], one["handovers"], one["gap_seconds"])
        for one in answer["items"]
    ]


def test_leases_are_ranked_by_changes_and_by_time_without_a_holder(store, operator):
    by_changes = [(BUSY, 4, 4, 0.0), (LOST, 3, 1, 320.0), (BEFORE, 0, 0, 1800.0)]
    assert ranked(operator, STRETCH) == by_changes
    assert [name for name, *_ in ranked(operator, f"{STRETCH}&sort=gap")] == [BEFORE, LOST, BUSY]
    assert ranked(operator, f"{STRETCH}&kind=heartbeat") == []


def test_a_free_lock_is_not_without_a_holder(store, operator):
    note("lock", ChangeType.RELEASED, 60, previous_holder="w-1", kind=Kind.LOCK)
    assert ranked(operator, f"{STRETCH}&kind=lock") == [("lock", 1, 0, 0.0)]
    assert "needs none" in text_of(operator.get(f"/c/a/history/stretch/?{STRETCH}"))


def test_pages_and_files_name_every_ranked_lease(store, operator):
    first = operator.get(f"/c/a/history/stretch/?format=json&limit=2&{STRETCH}").json()
    assert (first["total"], len(first["items"])) == (3, 2)
    (last,) = operator.get(first["next"]).json()["items"]
    assert last["name"] == BEFORE
    answer = operator.get(f"/c/a/history/stretch/?format=csv&{STRETCH}")
    lines = b"".join(answer.streaming_content).decode().splitlines()
    assert lines[0] == "cluster,namespace,name,kind,from,to,changes,handovers,gap_seconds"
    assert [line.split(",")[2] for line in lines[1:]] == [BUSY, LOST, BEFORE]
    assert lines[2].endswith(",3,1,320.0")


def test_the_page_shows_lengths_and_links_that_keep_the_stretch(store, operator):
    text = text_of(operator.get(f"/c/a/history/stretch/?{STRETCH}&sort=gap"))
    assert "7 changes</span> of 3 Leases, 2 of them some time without a holder" in text
    assert "5 m 20 s" in text
    assert "30 m 0 s" in text
    since = f"{NOON:%Y-%m-%dT%H}%3A00%3A00Z"
    for link in (
        f"/c/a/leases/apps/{LOST}/?from={since}",
        f"/c/a/history/?since={since}",
        f"/c/a/timeline/?from={since}",
    ):
        assert link in text


def test_a_range_offers_the_link_that_stays(store, operator):
    text = text_of(operator.get("/c/a/history/stretch/?range=6h"))
    assert "Keep this stretch" in text
    assert "Keep this stretch" not in text_of(operator.get(f"/c/a/history/stretch/?{STRETCH}"))


def test_more_changes_than_are_counted_are_said(store, operator, monkeypatch):
    monkeypatch.setattr(change_counts, "TALLIED", 4)
    text = text_of(operator.get(f"/c/a/history/stretch/?{STRETCH}"))
    assert "Too much changed to count all of it: the numbers begin at" in text
    assert "4 changes</span> of" in text


def test_a_wrong_stretch_is_one_sentence_at_its_field(store, operator):
    answer = operator.get("/c/a/history/stretch/?from=03:10&to=03:05:99")
    assert answer.status_code == 400
    text = text_of(answer)
    assert 'id="error-to"><svg' in text.replace("\n", "")
    assert 'value="03:10"' in text


def test_the_incidents_of_the_stretch_are_listed_with_the_way_to_all(store, operator):
    late = {"began": NOON + timedelta(minutes=40), "id": "later", "sentence": "too late"}
    long = {"began": NOON - timedelta(minutes=40), "id": "long", "sentence": "since before"}
    inside = open_incident(ObjectName("apps", LOST), began=NOON + timedelta(minutes=10))
    found = (inside, open_incident(**late), open_incident(**long))
    running_board().publisher.hubs["a"].going_on = lambda: found
    text = text_of(operator.get(f"/c/a/history/stretch/?{STRETCH}"))
    assert 'href="/c/a/incidents/5e1f/"' in text
    assert "since before" in text
    assert "too late" not in text
    assert f"/c/a/incidents/?from={NOON:%Y-%m-%dT%H}%3A" in text
    none = text_of(
        operator.get("/c/a/history/stretch/?from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z")
    )
    assert "Incidents in this stretch" not in none


@pytest.mark.parametrize(("number", "count"), [(6, "6"), (8, "6 of 8")])
def test_the_count_of_incidents_says_how_many_are_listed(store, operator, number, count):
    found = [open_incident(id=f"i{n}", began=NOON + timedelta(minutes=n)) for n in range(number)]
    running_board().publisher.hubs["a"].going_on = lambda: found
    text = text_of(operator.get(f"/c/a/history/stretch/?{STRETCH}"))
    panel = text.partition('aria-label="Incidents"')[2].partition("</section>")[0]
    assert f'<span class="count">{count}</span>' in panel
    assert len(set(re.findall(r'href="(/c/a/incidents/i\d/)"', panel))) == 6
