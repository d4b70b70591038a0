"""What Prometheus reads, and the rules that are built on it."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
import yaml
from django.test import Client

from dashboard import clock
from dashboard.metrics import election_series
from dashboard.serving.runtime import Runtime
from leases.domain.cause.clue import LateRenewal
from leases.domain.incident import Cause
from leases.domain.lease import Lease, ObjectName
from leases.domain.watched_times import Connection, ConnectionState
from leases.history.recorder import StateSource
from leases.tracking.tracked_lease import Update
from leases.tracking.tracker import Tracker
from leases.wire.watch_decoding import Applied, Bookmark, Connected, Disconnected, Listed
from tests.support.board import KEY, a_lease, fill
from tests.support.metrics import samples
from tests.support.values.changes import a_change

ROOT = Path(__file__).parents[2]
ALERTS = yaml.safe_load((ROOT / "deploy" / "alerts.yaml").read_text())
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()


def test_leases_are_counted_by_kind_and_phase(board: Runtime):
    fill(board.clusters["a"].store, a_lease(), a_lease(ObjectName("x", "y"), holder=""))
    found = samples()
    assert found["leaseboard_leases", "a", "election", "held"] == 1
    assert found["leaseboard_leases", "a", "election", "vacant"] == 1
    assert found["leaseboard_leases", "a", "election", "late"] == 0
    assert (found["leaseboard_synced", "a"], found["leaseboard_synced", "b"]) == (1, 0)


def test_near_misses_and_settled_incidents_are_counted(board: Runtime):
    counters = board.clusters["a"].counters
    late = LateRenewal(KEY, at=clock.now(), seconds=11.0, duration_seconds=15, holder="cp-1")
    counters.count(Update(cluster="a", now=clock.now(), seq=1, late=(late, late)))
    counters.incidents[Cause.DRAIN] += 1
    found = samples()
    assert found["leaseboard_near_misses_total", "a"] == 2
    assert found["leaseboard_incidents_total", "drain", "a"] == 1
    assert found["leaseboard_incidents_total", "crash", "a"] == 0


def test_deliveries_are_counted_by_sort_and_outcome(board: Runtime):
    board.notifications.outcomes["slack", "failed"] += 2
    found = samples()
    assert found["leaseboard_notifications_total", "failed", "slack"] == 2
    assert found["leaseboard_notifications_total", "sent", "email"] == 0


def test_leases_that_flap_are_counted_by_kind(board: Runtime):
    fill(board.clusters["a"].store, a_lease())
    passes = [a_change(n, at=(at := clock.now()), observed_at=at) for n in range(5)]
    board.feeds["a"].activity.note(passes)
    found = samples()
    assert found["leaseboard_leases_flapping", "a", "election"] == 1
    assert found["leaseboard_leases_flapping", "a", "heartbeat"] == 0


def test_what_was_never_read_has_no_series_rather_than_zeros(board: Runtime):
    fill(board.clusters["a"].store)
    of = {(name, *labels) for name, *labels in samples()}
    for family in ("leases", "leases_flapping", "elections_left_out"):
        clusters = {one[1] for one in of if one[0] == f"leaseboard_{family}"}
        assert clusters == {"a"}, family


async def watched(board: Runtime, *events: object) -> None:
    """Cluster a as if its watch had sent these."""
    cluster = board.clusters["a"]
    tracker = Tracker(cluster.store, [board.publisher.publish], lambda: datetime.now(UTC))
    cluster.counters = tracker.counters
    for event in events:
        tracker.handle(event)  # type: ignore[arg-type]
    tracker.stop()


async def test_metrics_count_what_a_watch_received(board: Runtime):
    await watched(
        board,
        Listed((a_lease(),), "1"),
        Connected(),
        Applied(a_lease(version="2", holder="cp-2")),
        Bookmark("3"),
        Disconnected("cut"),
        Listed((a_lease(version="9", holder="cp-2"),), "9", reason="gone"),
        Connected(),
    )
    found = samples()
    assert found["leaseboard_connected", "a"] == 1
    assert found["leaseboard_connected", "b"] == 0
    assert found["leaseboard_watch_events_total", "a"] == 1
    assert found["leaseboard_watch_bookmarks_total", "a"] == 1
    assert found["leaseboard_watch_breaks_total", "a"] == 1
    assert found["leaseboard_relists_total", "a", "start"] == 1
    assert found["leaseboard_relists_total", "a", "gone"] == 1
    assert found["leaseboard_changes_total", "created", "a", "election"] == 1
    assert found["leaseboard_changes_total", "replaced", "a", "election"] == 1
    assert found["leaseboard_last_heard_timestamp_seconds", "a"] > 1.7e9
    assert ("leaseboard_seconds_behind", "b") not in found


async def test_an_edit_of_the_duration_is_no_renewal(board: Runtime):
    renewed = datetime.now(UTC) - timedelta(seconds=12)
    lease, later = a_lease(now=renewed), a_lease(version="2", now=renewed)
    edited = msgspec.structs.replace(later.spec, lease_duration_seconds=60)
    cluster = board.clusters["a"].store
    cluster.replace(Listed((lease,), "1"), renewed)
    cluster.follow((Applied(Lease(later.metadata, edited)),), datetime.now(UTC))
    found = samples()
    which = ("a", KEY.namespace, KEY.name)
    assert 12 <= found["leaseboard_election_seconds_since_renewal", *which] < 30
    left = found["leaseboard_election_expiry_timestamp_seconds", *which] - time.time()
    assert 50 < left <= 60


async def test_an_election_has_series_of_its_own(board: Runtime):
    await watched(
        board,
        Listed((a_lease(holder='odd "one"\\'),), "1"),
        Connected(),
        Applied(a_lease(version="2", holder="cp-2")),
    )
    found = samples()
    which = ("a", KEY.namespace, KEY.name)
    assert found["leaseboard_election_holder_info", *which, "cp-2"] == 1
    assert found["leaseboard_election_duration_seconds", *which] == 15
    assert 0 <= found["leaseboard_election_seconds_since_renewal", *which] < 15
    left = found["leaseboard_election_expiry_timestamp_seconds", *which] - time.time()
    assert 0 < left <= 15
    assert found["leaseboard_election_holder_changes_total", *which] == 1
    assert found["leaseboard_election_unheld_seconds_total", *which] == 0


async def test_a_holder_of_any_spelling_is_a_label(board: Runtime):
    await watched(board, Listed((a_lease(holder='odd "one"\\ \n'),), "1"))
    which = ("a", KEY.namespace, KEY.name)
    assert samples()["leaseboard_election_holder_info", *which, 'odd "one"\\ \n'] == 1


async def test_time_without_a_holder_counts_while_it_lasts_and_after(board: Runtime):
    await watched(
        board,
        Listed((a_lease(),), "1"),
        Connected(),
        Applied(a_lease(version="2", holder="")),
    )
    cluster, which = board.clusters["a"], ("a", KEY.namespace, KEY.name)
    tracked = cluster.store.get(KEY)
    assert tracked is not None
    assert tracked.gap_since is not None
    counted = cluster.counters.election(tracked, tracked.gap_since + timedelta(seconds=7))
    assert (counted.holder_changes, counted.unheld_seconds) == (0, 7.0)
    text = election_series([cluster], 10, tracked.gap_since + timedelta(seconds=7))
    assert re.search(r"^leaseboard_election_unheld_seconds_total\{.*\} 7\.000$", text, re.MULTILINE)
    heard_at = tracked.gap_since + timedelta(seconds=2)
    gone = Connection(state=ConnectionState.STALE, since=heard_at, heard_at=heard_at)
    live, cluster.store.connection = cluster.store.connection, gone
    text = election_series([cluster], 10, tracked.gap_since + timedelta(seconds=7))
    assert re.search(r"^leaseboard_election_unheld_seconds_total\{.*\} 2\.000$", text, re.MULTILINE)
    cluster.store.connection = live
    found = samples()
    assert not [name for name in found if name[0] == "leaseboard_election_holder_info"]
    assert ("leaseboard_election_unheld_seconds_total", *which) in found
    later = cluster.store.follow(
        (Applied(a_lease(version="3", holder="cp-3")),), tracked.gap_since + timedelta(seconds=9)
    )
    assert later is not None
    cluster.counters.count(later)
    tracked = cluster.store.get(KEY)
    assert tracked is not None
    counted = cluster.counters.election(tracked, datetime.now(UTC))
    assert (counted.holder_changes, counted.handovers, counted.unheld_seconds) == (1, 1, 9.0)


def test_metrics_list_the_first_elections_and_count_the_rest(board: Runtime, settings):
    settings.LEASEBOARD = replace(settings.LEASEBOARD, metrics_elections=2)
    fill(board.clusters["b"].store)
    fill(board.clusters["a"].store, *(a_lease(ObjectName("n", f"e-{n}")) for n in range(5)))
    found = samples()
    shown = [name[3] for name in found if name[0] == "leaseboard_election_holder_info"]
    assert shown == ["e-0", "e-1"]
    assert found["leaseboard_elections_left_out", "a"] == 3
    assert found["leaseboard_elections_left_out", "b"] == 0


@pytest.mark.django_db(transaction=True)
async def test_metrics_count_history_writes_and_open_feeds(board: Runtime):
    board.recorder.add(StateSource("a", lambda _: None, lambda: "1", clock.now))
    board.publisher.hubs["a"].feeds.add(object())  # type: ignore[arg-type]
    await board.recorder.flush()
    found = samples()
    assert found["leaseboard_history_write_seconds_count",] == 1
    assert found["leaseboard_history_write_seconds_sum",] > 0
    assert found["leaseboard_history_queue_changes",] == 0
    assert found["leaseboard_history_failing",] == 0
    assert found["leaseboard_live_clients", "a", "feed"] == 1
    assert found["leaseboard_live_clients", "a", "page"] == 0
    await board.recorder.in_thread(lambda: None)


@pytest.mark.django_db  # a token that is not the setting's may be an API token
def test_a_token_is_asked_for_where_the_settings_name_one(board: Runtime, settings):
    settings.LEASEBOARD = replace(settings.LEASEBOARD, metrics_token="only-for-prometheus")
    refused = Client().get("/metrics", headers={"Authorization": "Bearer other"})
    assert (refused.status_code, refused["WWW-Authenticate"]) == (401, "Bearer")
    assert Client().get("/metrics").status_code == 401
    assert samples(Authorization="Bearer only-for-prometheus")


def known_names(board: Runtime) -> set[str]:
    fill(board.clusters["a"].store, a_lease())
    text = Client().get("/metrics").content.decode()
    families = re.findall(r"^# TYPE (\S+) \S+$", text, re.MULTILINE)
    return {name for name in families if name.startswith("leaseboard_")}


def test_every_alert_asks_for_what_there_is(board: Runtime):
    names = known_names(board)
    rules = [rule for group in ALERTS["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        asked = set(re.findall(r"\bleaseboard_\w+", rule["expr"]))
        assert asked, rule["alert"]
        assert asked <= names, rule["alert"]
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}
        assert rule["annotations"]["summary"]


def test_the_dashboard_for_grafana_asks_for_what_there_is(board: Runtime):
    names = known_names(board)
    dashboard = json.loads((ROOT / "deploy" / "grafana" / "leaseboard.json").read_text())
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    assert len({panel["title"] for panel in panels}) == len(panels) > 10
    for panel in panels:
        for target in panel["targets"]:
            asked = set(re.findall(r"\bleaseboard_\w+", target["expr"]))
            families = {re.sub(r"_(sum|count)$", "", name) for name in asked}
            assert families, panel["title"]
            assert families <= names, panel["title"]


def test_the_docs_name_every_metric_family(board: Runtime):
    section = OPERATIONS.partition("## Metrics")[2].partition("\n## ")[0]
    found = set(re.findall(r"`(leaseboard_\w+)", section))
    assert found == known_names(board)
