"""Elections that came close to running out, from the intervals between their renewals."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from dashboard.pages.incidents.near_misses import (
    HEIGHT,
    LIMIT,
    NearMiss,
    near_miss_item,
    near_miss_line,
    near_misses,
    none_near,
)
from dashboard.serving.tasks.history_upkeep import near_miss_counts
from leases.domain.lease import ObjectName
from leases.domain.steady_clock import Jump
from leases.domain.watched_times import Connection, ConnectionState
from leases.wire.watch_decoding import Applied, Listed
from tests.support.board import a_lease
from tests.support.metrics import samples

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


@pytest.fixture
def watched(board):
    watched = board.clusters["a"]
    watched.store.connection = Connection(
        state=ConnectionState.LIVE, since=NOW - timedelta(hours=2), heard_at=NOW
    )
    return watched


def renew(watched, lengths: dict[str, Sequence[float]]) -> list[NearMiss]:
    """Renew each Lease at these intervals, the last of them now; all of them last 15 s."""
    keys = {name: ObjectName("apps", name) for name in lengths}
    starts = {name: NOW - timedelta(seconds=sum(some)) for name, some in lengths.items()}
    first = min(starts.values())
    leases = tuple(a_lease(keys[name], now=starts[name]) for name in lengths)
    watched.store.replace(Listed(leases, "1"), first)
    events = []
    for name, some in lengths.items():
        at = starts[name]
        for length in (0.0, *some):
            at += timedelta(seconds=length)
            events.append((at, name))
    for number, (at, name) in enumerate(sorted(events), 2):
        lease = a_lease(keys[name], version=str(number), now=at)
        spec = msgspec.structs.replace(lease.spec, acquire_time=first - timedelta(hours=1))
        watched.store.turn(at)
        update = watched.store.follow((Applied(type(lease)(lease.metadata, spec)),), at)
        if update is not None:
            watched.counters.count(update)
        tracked = watched.store.get(keys[name])
        watched.renewals.look([tracked])
    return near_misses(watched, NOW)


USUAL = (2.0,) * 5


def test_the_closest_to_running_out_comes_first(watched):
    found = renew(
        watched,
        {
            "calm": (*USUAL, 9.0, 2.0),
            "close": (*USUAL, 14.0, 2.0),
            "near": (*USUAL, 11.0, 2.0, 2.0),
        },
    )
    assert [(miss.key.name, round(miss.seconds, 3)) for miss in found] == [
        ("close", 14.0),
        ("near", 11.0),
    ]
    assert (found[0].holder, found[0].duration, round(found[0].left, 3)) == ("cp-1", 15, 1.0)
    assert found[0].at <= NOW - timedelta(seconds=2) < found[0].at + timedelta(seconds=10)


def test_the_page_json_the_metric_and_the_totals_of_days_count_the_same(watched):
    """A habit, a loss and a lock are no near misses; two of one Lease within seconds are two."""
    found = renew(
        watched,
        {
            "twice": (*USUAL, 11.0, 14.0),
            "once": (*USUAL, 13.0, *USUAL, 14.0, *USUAL),
            "habit": (14.0,) * 6,
            "lost": (*USUAL, 16.0, 2.0),
            "new": (2.0, 11.0, 2.0),
            "lock-tfstate-x": (*USUAL, 14.0, 2.0),
        },
    )
    times = {miss.key.name: near_miss_item("a", miss)["times"] for miss in found}
    assert times == {"twice": 2, "once": 2}
    assert samples()["leaseboard_near_misses_total", "a"] == 4
    assert near_miss_counts(watched.store, NOW).total() == 4


def test_a_near_miss_stays_as_long_ago_after_the_wall_clock_was_set(watched):
    (miss,) = renew(watched, {"close": (*USUAL, 14.0, 2.0)})
    watched.store.clock_jumped(Jump(NOW, NOW + timedelta(days=1)))
    (moved,) = watched.store.near_misses(NOW)
    assert moved.at == miss.at + timedelta(days=1)


def test_one_that_is_always_renewed_late_is_none(watched):
    """Some writers renew 1 s before the Lease runs out, as a habit."""
    assert renew(watched, {"habit": (14.0,) * 6}) == []


def test_one_that_ran_out_is_an_incident_and_no_near_miss(watched):
    assert renew(watched, {"lost": (*USUAL, 16.0, 2.0)}) == []


def test_a_line_shows_the_intervals_of_the_hour(watched):
    (miss,) = renew(watched, {"close": (*USUAL, 14.0, 2.0)})
    line = near_miss_line("a", miss, NOW)
    assert (line.longest, line.duration, line.left) == ("14.0 s", "15 s", "1.0 s")
    assert line.cadence == "2.0 s"
    assert line.times == 1
    (bar,) = line.bars  # all of it lies in the last 150 s
    assert bar.hot
    assert bar.height == round(14 / 15 * (HEIGHT - LIMIT), 1)
    assert bar.y + bar.height == HEIGHT
    assert line.says == "Longest interval: 14.0 s. The Lease runs out at 15 s."
    long = msgspec.structs.replace(miss, seconds=104.3, duration=110)
    assert near_miss_line("a", long, NOW).longest == "104.3 s", "as its duration, of 110 s"
    item = near_miss_item("a", miss)
    assert item["seconds"] == 14.0
    assert max(one["seconds"] for one in item["intervals"]) == 14.0


def test_no_near_miss_is_good_news_only_where_renewals_were_seen(watched, board):
    assert none_near(watched, NOW).title == "No election was renewed yet"
    renew(watched, {"calm": USUAL})
    calm = none_near(watched, NOW)
    assert (calm.css, calm.text) == ("is-held", "1 election renewed since 11:00:00.")
    watched.store.connection = Connection(
        state=ConnectionState.STALE, since=NOW, detail="It does not answer."
    )
    assert none_near(watched, NOW).css == ""


@pytest.mark.parametrize("tight", [(14.0,) * 6, (*USUAL, 16.0, 2.0)])
def test_a_habit_or_a_loss_is_no_near_miss_and_no_good_news_either(watched, tight):
    assert renew(watched, {"calm": USUAL, "tight": tight}) == []
    calm = none_near(watched, NOW)
    assert (calm.title, calm.css) == ("No unusual near miss", "")
    assert "1 of them always leaves less than a third of the time, or was renewed" in calm.text
    assert "ran out" not in calm.text  # how many did, it cannot know: others hold them now


def test_elections_whose_renewals_are_not_followed_are_no_good_news(watched, monkeypatch):
    monkeypatch.setattr("leases.tracking.renewals.MAX_LEASES", 1)
    renew(watched, {"calm": USUAL, "other": USUAL})
    calm = none_near(watched, NOW)
    assert (calm.title, calm.css) == ("No near miss is known", "")
