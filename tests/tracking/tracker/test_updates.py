"""What the tracker passes to its sinks: changes, renewals, numbers, connection states."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from leases.domain.lease import ObjectName
from leases.domain.watched_times import ConnectionState
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update
from leases.tracking.tracker import Tracker
from leases.wire.watch_decoding import (
    Applied,
    Bookmark,
    Connected,
    Disconnected,
    Listed,
    ReflectorEvent,
    Replayed,
)
from tests.support.values.leases import NOON, after, lease
from tests.tracking.tracker.conftest import Watched

KEY = ObjectName("default", "controller")


async def test_a_bookmark_moves_the_version_and_the_start_of_the_window(watched: Watched) -> None:
    watched.live(lease())
    watched.at(7, Bookmark("30"))
    assert watched.tracker.resource_version == "30"
    watched.at(8, Listed((), "31"))
    (deleted,) = watched.updates[-1].changes
    assert (deleted.inferred, deleted.inferred_since) == (True, after(7))


async def test_replayed_events_are_inferred(watched: Watched) -> None:
    watched.store.restore((), after(-60))
    watched.at(0, Replayed((Applied(lease(acquired=-30, renewed=-30, created=-30, version=7)),)))
    (created,) = watched.updates[-1].changes
    assert (created.change, created.at, created.inferred) == ("created", after(-30), True)
    assert watched.tracker.resource_version == "7"


async def test_renewals_gather_and_changes_do_not_wait(watched: Watched) -> None:
    watched.live(lease(), lease(name="other", uid="o"))
    watched.renew(1.5, 2)
    watched.updates.clear()
    watched.renew(1.6, 3)
    watched.renew(1.7, 4)
    assert watched.updates == []
    watched.at(1.8, Applied(lease("b", name="other", uid="o", version=5)))
    assert watched.changes == ["replaced"]
    watched.tracker.flush()
    assert set(watched.updates[-1].renewed) == {KEY}
    assert watched.updates[-1].seq == watched.updates[-2].seq == watched.store.seq


async def test_numbers_have_no_gap_where_more_than_freshness_changed(watched: Watched) -> None:
    watched.live(lease())
    for version in range(2, 9):
        watched.renew(version * 2, version)
        watched.tracker.flush()
    watched.at(40, Disconnected("cut"))
    numbers = [update.seq for update in watched.updates if not update.renewed]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_a_sink_that_fails_is_logged_and_stops_nobody(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(update: Update) -> None:
        raise RuntimeError("full disk")

    reported: list[Update] = []
    tracker = Tracker(Store("c"), [broken, reported.append], lambda: NOON)
    tracker.handle(Listed((lease(),), "1"))
    assert [update.listed for update in reported] == [True]
    assert "full disk" in caplog.text


async def test_the_connection_is_reported_only_when_it_changes(watched: Watched) -> None:
    assert watched.store.connection.state is ConnectionState.CONNECTING
    watched.at(1, Disconnected("no route"), Disconnected("no route"))
    assert watched.states == ["connecting"]
    watched.at(2, Listed((), "1"), Connected())
    watched.at(9, Bookmark("2"), Disconnected("cut"))
    watched.at(12, Disconnected("cut"))
    stale = watched.store.connection
    assert (stale.state, stale.since, stale.detail) == ("stale", after(9), "cut")
    watched.at(20, Connected(), Disconnected("no right", refused=True))
    assert watched.states == ["connecting", "live", "stale", "live", "refused"]


async def test_all_is_known_until_a_pause_that_somebody_wanted(watched: Watched) -> None:
    watched.live(lease())
    breaks = watched.tracker.counters.breaks
    watched.at(9)
    watched.at(10, Disconnected("ada paused it", paused_at=after(9)))
    told = watched.store.connection
    assert (told.state, told.since, told.heard_at) == ("paused", after(9), after(10))
    watched.at(60, Disconnected("ada paused it", paused_at=after(9)))
    assert watched.store.connection.heard_at == after(10)
    assert watched.changes == ["created"], "nothing runs out in a time that nobody watched"
    assert watched.tracker.counters.breaks == breaks


async def test_remembered_leases_are_stale_until_the_cluster_answers() -> None:
    store = Store("c")
    store.restore((), after(-60))
    tracker = Tracker(store, [], lambda: NOON)
    assert store.connection.heard_at == after(-60)
    tracker.handle(Disconnected("no route"))
    assert (store.connection.state, store.connection.since) == ("stale", after(-60))
    assert not store.synced
    tracker.handle(Listed((), "1"))
    assert store.synced


async def test_how_far_behind_we_are_is_the_median_lag_of_renewals(watched: Watched) -> None:
    watched.live(lease())
    for version in range(2, 9):
        watched.at(version * 2, Applied(lease(renewed=version * 2 - 0.3, version=version)))
        watched.tracker.flush()
    assert watched.store.connection.behind_seconds == pytest.approx(0.3)


async def test_renewals_are_compared_with_their_times_once_a_second(watched: Watched) -> None:
    watched.live(lease())
    watched.at(10, Applied(lease(renewed=10, version=2)))
    told = []
    for number, late in enumerate((0.3, 0.5, 0.7, *4 * [0.9]), start=3):
        at = 10 + number * 0.4
        watched.at(at, Applied(lease(renewed=at - late, version=number)))
        watched.tracker.flush()
        told.append(watched.store.connection.behind_seconds)
    assert told == [pytest.approx(one) for one in (*6 * [0.3], 0.6)]


async def test_run_follows_the_events_with_the_clock_beside_them(watched: Watched) -> None:
    over = asyncio.Event()
    expired = asyncio.Event()

    def sink(update: Update) -> None:
        if any(change.change == "expired" for change in update.changes):
            expired.set()

    async def events() -> AsyncIterator[ReflectorEvent]:
        yield Listed((lease(renewed=0, duration=1),), "1")
        yield Connected()
        watched.now = after(2.5)
        await over.wait()

    tracker = Tracker(watched.store, [sink], lambda: watched.now)
    running = asyncio.create_task(tracker.run(events()))
    async with asyncio.timeout(60):
        await expired.wait()
    over.set()
    await running
    assert len(asyncio.all_tasks()) == 1
