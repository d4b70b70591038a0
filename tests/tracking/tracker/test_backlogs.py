"""Deadlines are judged after what has arrived is read, and only then."""

from __future__ import annotations

from leases.wire.watch_decoding import Applied, Arrived, Connected, Disconnected
from tests.support.values.leases import after, lease
from tests.tracking.tracker.conftest import Watched


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


async def test_an_expiry_before_the_unread_bytes_arrived_is_judged(watched: Watched) -> None:
    watched.live(lease())
    watched.at(1, Connected(lambda: 0.5))
    watched.at(15.4)
    assert watched.changes == ["created"]
    watched.at(15.6)
    assert watched.changes == ["created", "expired"]


async def test_events_still_to_come_are_not_yet_watched(watched: Watched) -> None:
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


async def test_events_that_arrive_after_a_standstill_are_of_the_past(watched: Watched) -> None:
    watched.live(lease(), lease(name="dead", uid="d"))
    watched.renew(11, 2)
    watched.now = after(71)  # nobody ran for a minute
    watched.tracker.tick()
    for version, renewed in enumerate(range(20, 71, 10), start=3):
        watched.at(71.1, Applied(lease(renewed=renewed, version=version)))
    assert watched.changes == ["created"] * 2
    watched.at(77)
    (expired,) = watched.updates[-1].changes
    assert (expired.name, expired.at, expired.inferred) == ("dead", after(15), True)
