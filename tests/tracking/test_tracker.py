"""The watch of one cluster: events, the clock and the connection, told to sinks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from leases.domain.connection import ConnectionState
from leases.domain.lease import ObjectName
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update
from leases.tracking.tracker import Tracker
from leases.wire.watch_events import (
    Applied,
    Arrived,
    Bookmark,
    Connected,
    Disconnected,
    Listed,
    ReflectorEvent,
    Replayed,
)
from tests.support.values.leases import NOON, after, lease

KEY = ObjectName("default", "controller")


class Watched:
    """A tracker whose clock is moved by hand, and all that it told."""

    def __init__(self) -> None:
        self.now = NOON
        self.told: list[Update] = []
        self.store = Store("c")
        self.tracker = Tracker(self.store, [self.told.append], lambda: self.now)

    def at(self, seconds: float, *events: ReflectorEvent) -> None:
        """Let the clock come so far, with every deadline in between, then these events."""
        until = after(seconds)
        while self.now < until:
            self.now = min(self._next(), until)
            self.tracker.tick()
        for event in events:
            self.tracker.handle(event)

    def renew(self, seconds: float, version: int, **given: Any) -> None:
        self.at(seconds, Applied(lease(renewed=seconds, version=version, **given)))

    def live(self, *leases: Any) -> None:
        self.at(0, Listed(leases, "1"), Connected())

    def _next(self) -> datetime:
        step = self.now + timedelta(seconds=0.5)
        deadline = self.store.next_deadline()
        return step if deadline is None or deadline <= self.now else min(step, deadline)

    @property
    def changes(self) -> list[str]:
        return [change.change.value for update in self.told for change in update.changes]

    @property
    def states(self) -> list[ConnectionState]:
        return [update.connection.state for update in self.told if update.connection]


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    watched = Watched()
    yield watched
    watched.tracker.stop()


async def test_a_lease_runs_out_while_we_watch(watched: Watched) -> None:
    watched.live(lease())
    watched.at(20)
    assert watched.changes == ["created", "expired"]


async def test_nothing_runs_out_because_we_stopped_listening(watched: Watched) -> None:
    watched.live(lease())
    watched.at(5, Disconnected("the cable was cut"))
    watched.at(500)
    assert watched.changes == ["created"]
    assert watched.states == ["live", "stale"]


async def test_what_ran_out_unseen_is_told_after_what_catches_up(watched: Watched) -> None:
    watched.live(lease())
    watched.renew(2, 2)
    watched.at(5, Disconnected("cut"))
    watched.at(60, Connected())
    assert watched.changes == ["created"]
    for version, second in enumerate(range(4, 60, 2), start=3):
        watched.at(60.1, Applied(lease(renewed=second, version=version)))
    watched.at(65)
    assert watched.changes == ["created"]
    watched.at(80)
    assert watched.changes == ["created", "expired"]
    (expired,) = watched.told[-1].changes
    assert (expired.at, expired.inferred) == (after(73), False)


async def test_an_expiry_in_a_long_break_is_inferred(watched: Watched) -> None:
    watched.live(lease())
    watched.renew(2, 2)
    watched.at(5, Disconnected("cut"))
    watched.at(60, Connected())
    watched.at(62)
    (expired,) = watched.told[-1].changes
    assert (expired.change, expired.at, expired.inferred) == ("expired", after(17), True)
    assert expired.inferred_since == after(2)


async def test_the_grace_for_what_catches_up_has_an_end(watched: Watched) -> None:
    watched.live(lease(), lease(name="slow", uid="s", renewed=-300))
    watched.at(5, Disconnected("cut"))
    watched.at(60, Connected())
    for n in range(1, 24):
        slow = lease(name="slow", uid="s", renewed=-240 + n / 2, version=n + 1)
        watched.at(60 + n / 2, Applied(slow))
    assert "expired" in watched.changes


async def test_a_list_after_a_break_is_compared_with_what_was_known(watched: Watched) -> None:
    watched.live(lease())
    watched.renew(2, 2)
    watched.at(5, Disconnected("410"))
    watched.at(60, Listed((lease("b", acquired=20, renewed=59, version=40),), "41"), Connected())
    watched.at(62)
    assert watched.changes == ["created", "taken_over"]
    assert watched.tracker.resource_version == "41"


async def test_a_bookmark_moves_the_version_and_the_start_of_the_window(watched: Watched) -> None:
    watched.live(lease())
    watched.at(7, Bookmark("30"))
    assert watched.tracker.resource_version == "30"
    watched.at(8, Listed((), "31"))
    (deleted,) = watched.told[-1].changes
    assert (deleted.inferred, deleted.inferred_since) == (True, after(7))


async def test_events_told_again_are_inferred(watched: Watched) -> None:
    watched.store.restore((), after(-60))
    watched.at(0, Replayed(Applied(lease(acquired=-30, renewed=-30, created=-30, version=7))))
    (created,) = watched.told[-1].changes
    assert (created.change, created.at, created.inferred) == ("created", after(-30), True)
    assert watched.tracker.resource_version == "7"


async def test_renewals_gather_and_changes_do_not_wait(watched: Watched) -> None:
    watched.live(lease(), lease(name="other", uid="o"))
    watched.renew(1.5, 2)
    watched.told.clear()
    watched.renew(1.6, 3)
    watched.renew(1.7, 4)
    assert watched.told == []
    watched.at(1.8, Applied(lease("b", name="other", uid="o", version=5)))
    assert watched.changes == ["replaced"]
    watched.tracker.flush()
    assert set(watched.told[-1].renewed) == {KEY}
    assert watched.told[-1].seq == watched.told[-2].seq == watched.store.seq


async def test_numbers_have_no_gap_where_more_than_freshness_changed(watched: Watched) -> None:
    watched.live(lease())
    for version in range(2, 9):
        watched.renew(version * 2, version)
        watched.tracker.flush()
    watched.at(40, Disconnected("cut"))
    numbers = [update.seq for update in watched.told if not update.renewed]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_a_sink_that_fails_is_logged_and_stops_nobody(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(update: Update) -> None:
        raise RuntimeError("full disk")

    told: list[Update] = []
    tracker = Tracker(Store("c"), [broken, told.append], lambda: NOON)
    tracker.handle(Listed((lease(),), "1"))
    assert [update.listed for update in told] == [True]
    assert "full disk" in caplog.text


async def test_the_connection_is_told_when_it_changes_and_only_then(watched: Watched) -> None:
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
    async with asyncio.timeout(10):
        await expired.wait()
    over.set()
    await running
    assert len(asyncio.all_tasks()) == 1


async def test_nothing_is_judged_before_a_large_backlog_is_read(watched: Watched) -> None:
    names = [f"node-{number}" for number in range(60)]
    watched.live(*(lease(name=name, uid=name) for name in names))
    watched.at(5, Disconnected("cut"))
    watched.at(40, Connected())
    for step in range(44):  # half a second each, in which what took a second is read
        many = [lease(name=n, uid=n, renewed=step + 1, version=step + 2) for n in names]
        watched.at(40 + step / 2, Arrived([Applied(one) for one in many]))
    assert watched.changes == ["created"] * 60


async def test_a_cluster_whose_clocks_are_behind_is_judged_as_soon_as_any(watched: Watched) -> None:
    names = [f"node-{number}" for number in range(60)]
    watched.live(lease(name="dead", uid="dead"), *(lease(name=n, uid=n) for n in names))
    watched.at(1, Disconnected("cut"))
    watched.at(2, Connected())
    for step in range(60):
        many = [lease(name=n, uid=n, renewed=step / 2 - 6, version=step + 9) for n in names]
        watched.at(2 + step / 2, Arrived([Applied(one) for one in many]))
    assert watched.changes.count("expired") == 1


async def test_nothing_is_judged_while_something_that_arrived_is_unread(watched: Watched) -> None:
    unread = [True]
    watched.live(lease())
    watched.at(1, Connected(lambda: 30.0 if unread else 0.0))
    watched.at(30)
    for version, renewed in enumerate((10, 20, 29), start=2):
        watched.at(30, Applied(lease(renewed=renewed, version=version)))
    assert watched.changes == ["created"]
    unread.clear()
    watched.at(43)
    assert watched.changes == ["created"]
    watched.at(45)
    assert watched.changes == ["created", "expired"]


async def test_what_ran_out_before_the_unread_arrived_is_judged(watched: Watched) -> None:
    watched.live(lease())
    watched.at(1, Connected(lambda: 0.5))
    watched.at(15.4)
    assert watched.changes == ["created"]
    watched.at(15.6)
    assert watched.changes == ["created", "expired"]


async def test_what_is_still_to_come_has_not_been_watched(watched: Watched) -> None:
    waits = 0.0
    watched.live(lease())
    watched.at(5, Applied(lease(renewed=5, version=2)), Disconnected("cut"))
    assert watched.tracker.watched_until == after(5)
    watched.at(8, Connected(lambda: waits))
    assert watched.tracker.watched_until == after(5)
    watched.at(12)
    assert watched.tracker.watched_until == after(12)
    waits = 3.0
    assert watched.tracker.watched_until == after(9)


async def test_what_comes_after_we_stood_still_tells_of_the_past(watched: Watched) -> None:
    watched.live(lease(), lease(name="dead", uid="d"))
    watched.renew(11, 2)
    watched.now = after(71)  # nobody ran for a minute
    watched.tracker.tick()
    for version, renewed in enumerate(range(20, 71, 10), start=3):
        watched.at(71.1, Applied(lease(renewed=renewed, version=version)))
    assert watched.changes == ["created"] * 2
    watched.at(77)
    (expired,) = watched.told[-1].changes
    assert (expired.name, expired.at, expired.inferred) == ("dead", after(15), True)
