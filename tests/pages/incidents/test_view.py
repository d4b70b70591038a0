"""The list of incidents: who comes first, what a filter leaves, and what is said without any."""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime, timedelta
from html import unescape

import msgspec
import pytest

from dashboard.parts.formatting import age, when
from dashboard.watched_cluster import WatchedCluster
from leases.domain.change import ChangeType
from leases.domain.incident import Cause, Standing
from leases.domain.watched_times import ConnectionState, WatchedTime
from leases.history.watched_spans import save
from tests.pages.conftest import HTMX, remember, text_of
from tests.support.values import incident_rows
from tests.support.values.changes import T0
from tests.support.values.incidents import KEDA, SCHEDULER, an_incident

LIST = "/c/a/incidents/"


def stored(*given: dict) -> None:
    for number, values in enumerate(given):
        incident_rows.store(an_incident(**({"id": f"i{number}"} | values)))


def words(answer) -> str:
    text = re.sub(r"<(script|svg).*?</\1>", " ", text_of(answer), flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", text)))


def shown(answer) -> list[str]:
    """The ids of the incidents on a page, in their order."""
    return re.findall(r'<tr role="row"[^>]* data-href="/c/a/incidents/([^/]+)/"', text_of(answer))


def hours(number: float) -> datetime:
    return T0 - timedelta(hours=number)


def test_those_that_go_on_come_first_then_the_newest(store, operator):
    stored(
        {"id": "old", "began": hours(3)},
        {"id": "still", "began": hours(5), "ended": None},
        {"id": "new", "began": hours(1)},
    )
    answer = operator.get(LIST)
    assert shown(answer) == ["still", "new", "old"]
    text = words(answer)
    assert "All 3 Going on 1 Over 2" in text
    assert "All causes 3 Node down 3" in text
    assert "3 of 3 incidents shown" in text
    assert operator.get(f"{LIST}?format=json").json()["items"][0]["id"] == "new"


def test_a_row_says_when_how_long_why_and_how_sure(store, operator):
    stored({"worst_gap_seconds": 45.0})
    text = words(operator.get(LIST))
    assert "20 Nov 2026 12:00:00 Over after 41 s" in text
    assert "worker-7's heartbeat stopped at 12:00:00" in text
    assert "Node down Likely" in text
    assert "3 Leases, 2 hosts, worst 45 s" in text
    assert 'm-hide gap-long">45 s' in text_of(operator.get(LIST))


def test_a_gap_that_goes_on_is_as_long_as_now_in_each_answer(store, operator, monkeypatch):
    gap = {"worst_gap_seconds": 3.0, "unheld_since": T0 - timedelta(seconds=50)}
    stored({"id": "on", "ended": None, **gap})
    for later, worst in ((0, 50.0), (10, 60.0)):
        as_of = T0 + timedelta(seconds=later)
        monkeypatch.setattr(WatchedCluster, "as_of", lambda *_, as_of=as_of: as_of)
        (listed,) = operator.get(f"{LIST}?format=json").json()["items"]
        file = b"".join(operator.get(f"{LIST}?format=csv").streaming_content).decode()
        (row,) = csv.DictReader(file.splitlines())
        one = operator.get(f"{LIST}on/?format=json").json()
        told = (listed, row, one)
        assert [float(each["worst_gap_seconds"]) for each in told] == [worst] * 3
        assert f"worst {age(worst)}" in words(operator.get(LIST))
        counts = rf'"incident-worst"[^>]* data-since="{T0.timestamp() - 50}"[^>]*>{age(worst)}<'
        assert re.search(counts, text_of(operator.get(LIST)))
        assert f"Longest time without a holder | {age(worst)} |" in text_of(
            operator.get(f"{LIST}on/?format=markdown")
        )
        page = text_of(operator.get(f"{LIST}on/"))
        assert re.search(rf'data-since="{T0.timestamp() - 50}" data-measure="incident-worst"', page)
        assert re.search(rf'"incident-worst"[^>]*>{re.escape(age(worst))}<', page)


def test_a_worst_gap_that_is_over_does_not_count_on(store, operator, monkeypatch):
    gap = {"worst_gap_seconds": 300.0, "unheld_since": T0 - timedelta(seconds=50)}
    stored({"id": "on", "ended": None, **gap})
    monkeypatch.setattr(WatchedCluster, "as_of", lambda *_: T0)
    for url in (LIST, f"{LIST}on/"):
        (cell,) = re.findall(r'<[^>]*"incident-worst"[^>]*>5 m 0 s', text_of(operator.get(url)))
        assert "data-since" not in cell


def test_a_gap_that_nobody_can_see_is_none(store, operator):
    stored({"id": "brief", "worst_gap_seconds": 0.03})
    for url in (LIST, f"{LIST}brief/", f"{LIST}brief/?format=markdown"):
        answer = operator.get(url)
        assert answer.status_code == 200
        assert "0.0 s" not in text_of(answer)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("cause=crash", ["crash"]),
        ("cause=crash&cause=drain", ["crash", "drain"]),
        ("going_on=true", ["crash"]),
        ("going_on=false", ["drain", "other"]),
        ("namespace=keda", ["drain"]),
        ("namespace=kube-system&lease=scheduler", ["crash", "other"]),
        ("holder=cp-9", ["other"]),
        (f"from={hours(2.5):%Y-%m-%dT%H:%M:%SZ}", ["crash", "drain"]),
        (f"from={hours(2.9):%Y-%m-%dT%H:%M:%SZ}", ["crash", "drain", "other"]),
        (f"to={hours(2.5):%Y-%m-%dT%H:%M:%SZ}", ["other"]),
        ("limit=1&going_on=false", ["drain"]),
    ],
)
def test_the_url_filters_the_page_and_the_json_alike(store, operator, query, expected):
    stored(
        {"id": "crash", "cause": Cause.CRASH, "began": hours(1), "ended": None,
         "leases": (SCHEDULER,)},
        {"id": "drain", "cause": Cause.DRAIN, "began": hours(2), "leases": (KEDA,)},
        {"id": "other", "began": hours(3), "ended": hours(2.6), "leases": (SCHEDULER,),
         "hosts": ("cp-9",)},
    )  # fmt: skip
    assert shown(operator.get(f"{LIST}?{query}")) == expected
    items = operator.get(f"{LIST}?{query}&format=json").json()["items"]
    assert [item["id"] for item in items] == expected


def test_pages_lead_from_the_newest_to_the_oldest(store, operator):
    stored(*({"id": f"i{n}", "began": hours(n)} for n in range(5)))
    first = operator.get(f"{LIST}?limit=2")
    assert shown(first) == ["i0", "i1"]
    older = re.search(r'href="([^"]+before=[^"]+)"', text_of(first))[1]
    second = operator.get(unescape(older))
    assert shown(second) == ["i2", "i3"]
    assert "Newest" in words(second)
    found, url = [], f"{LIST}?limit=2&format=json"
    while url:
        answer = operator.get(url).json()
        assert answer["total"] == 5
        found += [item["id"] for item in answer["items"]]
        url = answer["next"]
    assert found == [f"i{n}" for n in range(5)]


def test_all_that_match_are_in_the_file(store, operator):
    stored(*({"id": f"i{n}", "began": hours(n), "sentence": "=cmd()"} for n in range(3)))
    answer = operator.get(f"{LIST}?format=csv&limit=1")
    rows = list(csv.DictReader(b"".join(answer.streaming_content).decode().splitlines()))
    assert [row["id"] for row in rows] == ["i0", "i1", "i2"]
    assert rows[0]["sentence"] == "'=cmd()"


def test_htmx_gets_the_rows_and_the_region_that_is_drawn_again(store, operator):
    stored({})
    part = text_of(operator.get(LIST, headers=HTMX))
    assert "<html" not in part
    board = re.search(r'<div id="board"[^>]*>', part)[0]
    assert "incidents" in re.search(r'data-region="([^"]+)"', board)[1].split()


def test_a_bad_filter_is_one_sentence_at_its_field(store, operator):
    answer = operator.get(f"{LIST}?from=yesterday&namespace=keep")
    assert answer.status_code == 400
    problem = re.search(r'id="error-from">(.*?)</label>', unescape(text_of(answer)), re.DOTALL)
    assert "From cannot be 'yesterday'" in problem[1]
    assert 'value="keep"' in text_of(answer)
    answer = operator.get(f"{LIST}?cause=bad&format=json")
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("cause cannot be 'bad': use one of graceful_stop")


def watch_since(began: datetime, until: datetime) -> None:
    save([("a", "process", WatchedTime(since=began, until=until))])


def test_without_an_incident_the_page_says_since_when_somebody_watched(store, operator):
    now = datetime.now(UTC)
    watch_since(now - timedelta(hours=2), now)
    text = words(operator.get(LIST))
    assert "No incident since the watch began at" in text
    assert "3 elections watched without a break." in text


def test_a_watch_that_began_a_moment_ago_is_a_watch(store, operator):
    """History knows of it only seconds later."""
    text = words(operator.get(LIST))
    assert "No incident since the watch began at" in text
    assert "watched without a break." in text


def test_changes_without_a_cause_are_no_proof_that_nothing_happened(store, operator):
    now = datetime.now(UTC)
    watch_since(now - timedelta(hours=2), now)
    remember(ChangeType.EXPIRED)
    text = words(operator.get(LIST))
    assert "No incident is known" in text
    assert "since the watch began" not in text


def test_a_cluster_that_is_not_live_is_not_called_quiet(store, operator):
    now = datetime.now(UTC)
    watch_since(now - timedelta(hours=2), now - timedelta(minutes=20))
    heard = now - timedelta(minutes=20)
    store.connection = msgspec.structs.replace(
        store.connection, state=ConnectionState.STALE, since=heard, heard_at=heard
    )
    text = words(operator.get(LIST))
    assert f"No incident up to {when(heard, now)}" in text
    assert "Nobody watches since then." in text


def test_one_that_goes_on_lasts_until_the_cluster_was_heard(store, operator):
    heard = datetime.now(UTC) - timedelta(minutes=20)
    stored({"began": heard - timedelta(minutes=2), "ended": None})
    store.connection = msgspec.structs.replace(
        store.connection, state=ConnectionState.STALE, since=heard, heard_at=heard
    )
    assert "Going on for 2 m 0 s" in words(operator.get(LIST))


def planned_and_not() -> None:
    stored(
        {"id": "planned", "cause": Cause.ROLLOUT, "standing": Standing.PLANNED},
        {"id": "overran", "cause": Cause.DRAIN, "standing": Standing.OVERRAN, "began": hours(1)},
        {"id": "unplanned", "began": hours(2)},
        {"id": "labels", "cause": Cause.BY_HAND, "standing": Standing.REMARK, "began": hours(3)},
    )


def test_what_went_as_planned_is_one_click_away(store, operator):
    planned_and_not()
    answer = operator.get(LIST)
    assert shown(answer) == ["overran", "unplanned"]
    assert "Unplanned 2 All 3" in words(answer)
    assert "planned, took too long" in words(answer)
    assert "planned, took too long" in words(operator.get(f"{LIST}overran/"))
    assert shown(operator.get(f"{LIST}?show=all")) == ["planned", "overran", "unplanned"]
    assert shown(operator.get(f"{LIST}?cause=rollout")) == ["planned"]
    assert shown(operator.get(f"{LIST}?cause=rollout&show=unplanned")) == []
    assert operator.get(f"{LIST}?show=some").status_code == 400


def test_a_program_reads_all_and_what_was_planned_unless_it_asks_for_less(store, operator):
    planned_and_not()
    every = operator.get(f"{LIST}?format=json").json()
    told = {one["id"]: (one["planned"], one["overran"]) for one in every["items"]}
    assert told == {
        "planned": (True, False), "overran": (True, True), "unplanned": (False, False),
    }  # fmt: skip
    assert every["total"] == 3
    fewer = operator.get(f"{LIST}?format=json&show=unplanned").json()
    assert [one["id"] for one in fewer["items"]] == ["overran", "unplanned"]
    assert fewer["total"] == 2
    lines = b"".join(operator.get(f"{LIST}?format=csv&show=unplanned")).splitlines()
    assert len(lines) == 3
    page = text_of(operator.get(LIST))
    assert "?show=unplanned&amp;format=json" in page
    assert "?show=all&amp;format=csv" in text_of(operator.get(f"{LIST}?show=all"))


def test_where_all_went_as_planned_the_page_says_how_much(store, operator):
    stored({"cause": Cause.ROLLOUT, "standing": Standing.PLANNED})
    text = words(operator.get(LIST))
    assert "No unplanned incident" in text
    assert "1 incident went as planned." in text
