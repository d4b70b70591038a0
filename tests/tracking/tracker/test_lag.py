"""How far behind we are is how old the newest event taken is, while more wait."""

from __future__ import annotations

import asyncio

import pytest

from leases.domain.watched_times import BRIEF
from leases.tracking import shared_timer
from leases.wire.watch_decoding import Applied, Arrived, Connected, Deleted, Disconnected, Listed
from tests.support.values.leases import after, lease
from tests.tracking.tracker.conftest import Watched

NAMES = tuple(f"node-{number}" for number in range(20))


class Backlog:
    """A watch whose events come `late` seconds after they were written, while more wait."""

    def __init__(self, watched: Watched) -> None:
        self.watched = watched
        self.waited = 0.0
        self._version = 1
        watched.at(0, Listed(tuple(lease(name=n, uid=n) for n in NAMES), "1"))
        watched.at(0, Connected(lambda: self.waited))

    def renew(self, seconds: float, *, late: float, clocks: float = 0.0) -> None:
        """Take a renewal of each; the clocks of the writers are so many seconds behind."""
        self._version += 1
        some = [
            lease(name=n, uid=n, renewed=seconds - late - clocks, version=self._version)
            for n in NAMES
        ]
        self.watched.at(seconds, Arrived([Applied(one) for one in some]))
        self.watched.tracker.flush()

    @property
    def lag(self) -> float:
        return self.watched.store.connection.lag_seconds


@pytest.fixture
async def backlog(watched: Watched) -> Backlog:
    return Backlog(watched)


async def test_nothing_waits_in_a_watch_that_is_gone(backlog: Backlog) -> None:
    backlog.renew(2, late=0.01)
    backlog.waited = 60.0
    assert backlog.watched.tracker.unprocessed_seconds() == 60.0
    backlog.watched.at(3, Disconnected("the cable was cut"))
    assert backlog.watched.tracker.unprocessed_seconds() == 0.0


async def test_the_age_of_the_newest_event_is_told_while_more_wait(backlog: Backlog) -> None:
    backlog.renew(2, late=0.01)
    assert backlog.lag == 0.0
    backlog.waited = 60.0
    backlog.renew(10, late=7.5)
    connection = backlog.watched.store.connection
    assert connection.lag_seconds == pytest.approx(7.5, abs=0.1)
    assert connection.behind_seconds == connection.lag_seconds
    backlog.waited = 0.0
    backlog.renew(12, late=0.01)
    assert backlog.lag == 0.0


async def test_a_recovery_tells_it_as_a_renewal_does(backlog: Backlog) -> None:
    """After a silence each event is a change, and none is a plain renewal."""
    backlog.renew(2, late=0.01)
    backlog.watched.at(80)
    assert backlog.watched.changes.count("expired") == len(NAMES)
    backlog.waited = 30.0
    backlog.renew(90, late=9.0)
    assert backlog.watched.changes.count("recovered") == len(NAMES)
    assert backlog.lag == pytest.approx(9.0, abs=0.1)


async def test_it_grows_while_nothing_is_taken(backlog: Backlog) -> None:
    backlog.renew(2, late=0.01)
    backlog.waited = 20.0
    backlog.renew(10, late=5.0)
    backlog.watched.at(14)
    backlog.watched.tracker.flush()
    assert backlog.lag == pytest.approx(9.0, abs=0.1)


async def test_it_is_told_until_nothing_waits_though_nothing_more_comes(
    backlog: Backlog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_timer, "COALESCE", 0.0)
    backlog.waited = 20.0
    backlog.renew(10, late=5.0)
    await asyncio.sleep(0.05)
    assert backlog.lag > 0
    backlog.waited = 0.0
    async with asyncio.timeout(10):
        while backlog.lag:
            await asyncio.sleep(0.01)


async def test_a_lag_is_told_by_itself_though_no_renewal_is(
    backlog: Backlog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change is sent at once; the state of the connection comes with the collected renewals."""
    monkeypatch.setattr(shared_timer, "COALESCE", 0.0)
    backlog.waited = 4.0
    gone = Deleted(lease(None, renewed=None, name="node-1", uid="node-1", version=9))
    backlog.watched.at(10, Arrived([gone]))
    async with asyncio.timeout(10):
        while not backlog.lag:
            await asyncio.sleep(0.01)


async def test_wrong_clocks_of_writers_are_no_lag(backlog: Backlog) -> None:
    backlog.renew(2, late=0.0, clocks=40.0)
    backlog.waited = 60.0
    backlog.renew(10, late=3.0, clocks=40.0)
    assert backlog.lag == pytest.approx(3.0, abs=0.1)


async def test_without_any_time_it_is_how_long_data_waited(backlog: Backlog) -> None:
    backlog.waited = 4.0
    gone = Deleted(lease(None, renewed=None, name="node-1", uid="node-1", version=9))
    backlog.watched.at(10, Arrived([gone]))
    backlog.watched.tracker.flush()
    assert backlog.lag == 4.0


async def test_what_is_two_seconds_old_is_not_claimed_as_now(backlog: Backlog) -> None:
    backlog.renew(2, late=0.01)
    backlog.waited = 60.0
    backlog.renew(10, late=1.9)
    connection = backlog.watched.store.connection
    assert connection.shown(after(10)) is connection
    assert connection.as_of(after(10)) == after(10)
    backlog.renew(20, late=30.0)
    backlog.renew(40, late=12.0)
    connection = backlog.watched.store.connection
    assert connection.lag_seconds >= BRIEF.total_seconds()
    told = connection.shown(after(40))
    assert (connection.state, told.state) == ("live", "stale")
    assert (after(40) - told.as_of(after(40))).total_seconds() == pytest.approx(12.0, abs=0.1)
    assert told.detail == "Leaseboard is 12 s behind: more arrives than it reads."
    assert [update.connection for update in backlog.watched.updates if update.connection][-1]
