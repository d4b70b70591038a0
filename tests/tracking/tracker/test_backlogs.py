"""Deadlines are judged after what has arrived is read, and only then."""

from __future__ import annotations

import pytest

from leases.domain.change import ChangeType
from leases.domain.steady_clock import EARLIEST
from leases.tracking.deadlines import GRACE
from leases.wire.watch_decoding import (
    Applied,
    Arrived,
    Connected,
    Deleted,
    Disconnected,
    Listed,
    ListPage,
    Replayed,
)
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


async def test_a_deletion_of_a_standstill_is_not_dated_when_it_arrives(watched: Watched) -> None:
    """Nobody ran from 10.3 s on; the next check was planned for 11.2 s."""
    watched.live(lease())
    watched.renew(10, 2)
    watched.at(10.2)
    watched.now = after(30)
    gone = Deleted(lease(renewed=10, version=3))
    anew = lease(uid="uid-2", created=10, acquired=10.9, renewed=10.9, version=4)
    watched.at(30, Arrived([gone, Applied(anew)]))
    deleted, created = [one for update in watched.updates for one in update.changes][1:]
    assert (deleted.change, created.change) == ("deleted", "created")
    since = after(10.2)
    assert (deleted.at, deleted.inferred, deleted.inferred_since) == (since, True, since)
    assert (created.at, created.gap_seconds) == (after(10.9), pytest.approx(0.7))


@pytest.mark.parametrize("first_page", [None, ListPage((), "5")])
async def test_what_a_busy_process_reads_late_after_a_list_happened_when_it_says(
    watched: Watched, first_page: ListPage | None
) -> None:
    """The list was asked for at 7 s."""
    if first_page is not None:
        watched.at(9, first_page)
    watched.at(10, Listed((lease(),), "5"), Connected(listed_seconds=3.0))
    watched.at(10.1, Applied(lease(renewed=8, version=6)))
    known = watched.store.get(lease().key)
    assert known is not None
    assert (known.observed_at, known.skew_seconds) == (after(8), None)
    watched.at(17)
    watched.at(18, Applied(lease(renewed=18, version=7)))
    watched.at(40)
    (expired,) = watched.updates[-1].changes
    assert (expired.change, expired.at) == ("expired", after(33))


async def test_a_deletion_is_as_late_while_the_watch_catches_up(watched: Watched) -> None:
    watched.live(lease(), lease(name="other", uid="o"))
    watched.renew(10, 2)
    watched.at(11, Disconnected("cut"))
    watched.at(30, Connected())
    watched.at(30.5, Deleted(lease(renewed=10, version=3)))
    watched.at(30.9, Applied(lease(uid="uid-2", created=21, acquired=21.5, renewed=29, version=4)))
    watched.at(40, Deleted(lease(name="other", uid="o", version=5)))
    deleted, created, _, last = [one for update in watched.updates for one in update.changes][2:]
    assert (deleted.change, created.change, last.change) == ("deleted", "created", "deleted")
    assert (deleted.at, deleted.inferred, created.at) == (after(10), True, after(21.5))
    assert (last.at, last.inferred) == (after(40), False)


async def test_a_deletion_of_a_standstill_is_late_where_nothing_can_expire(
    watched: Watched,
) -> None:
    watched.live(lease(renewed=None, duration=None))
    watched.at(200)
    assert watched.store.next_deadline() is None
    watched.now = after(230)
    watched.tracker.stood_still(after(200))
    watched.at(230, Deleted(lease(renewed=None, duration=None, version=3)))
    (deleted,) = watched.updates[-1].changes
    assert (deleted.inferred, deleted.observed_at) == (True, after(230))
    assert after(199) <= deleted.at <= after(200)


async def test_what_a_long_list_lacks_was_gone_at_its_beginning(watched: Watched) -> None:
    """Else a Lease of that name, made while the list was read, would seem to be older than it is,
    and its renewals to come too late.
    """
    watched.live(lease(), lease(name="other", uid="other"))
    watched.at(5, Disconnected("410"))
    other = lease(name="other", uid="other", renewed=9, version=8)
    watched.at(10, ListPage((), "10"))
    watched.at(30, Listed((other,), "10"), Connected())
    again = [lease(uid="uid-2", acquired=12, renewed=at, version=at, created=12) for at in (12, 22)]
    watched.at(30, Arrived([Applied(one) for one in again]))
    [deleted] = [c for u in watched.updates for c in u.changes if c.change is ChangeType.DELETED]
    assert (deleted.at, deleted.inferred) == (after(10), True)
    assert watched.changes == ["created", "created", "deleted", "created"]


async def test_what_a_list_lacks_was_not_gone_before_its_last_change(watched: Watched) -> None:
    watched.live(lease())
    watched.at(5, Disconnected("410"))
    new = lease(name="new", uid="new", acquired=11, renewed=11, created=11, version=8)
    watched.at(12, Replayed((Applied(new),)), ListPage((), "10", age=2.0), Listed((lease(),), "10"))
    deleted = [c for u in watched.updates for c in u.changes if c.change is ChangeType.DELETED]
    assert [one.at >= after(11) for one in deleted] == [True]


async def test_what_ran_out_is_told_as_soon_as_all_was_followed_that_came_until_then(
    watched: Watched,
) -> None:
    """What comes while a list is read is followed afterwards, and the watch may break before we
    reach the present.
    """
    received = 10.0
    watched.live(lease(), lease(name="other", uid="other"))
    watched.at(5, Disconnected("410"))
    other = lease(name="other", uid="other", renewed=9, version=9)
    watched.at(10, ListPage((lease(renewed=9, version=8),), "10"))
    watched.at(30, Listed((other,), "10"))
    watched.at(30, Connected(lambda: (watched.now - after(received)).total_seconds()))
    for step in range(1, 30):
        received = 10 + step / 2
        watched.at(30 + step / 4)
        renewal = lease(name="other", uid="other", renewed=received - 0.1, version=10 + step)
        watched.at(30 + step / 4, Arrived([Applied(renewal)]))
        if received < 24:
            assert "expired" not in watched.changes
    (expired,) = [c for u in watched.updates for c in u.changes if c.change is ChangeType.EXPIRED]
    assert (expired.name, expired.at, expired.inferred) == ("controller", after(24), False)
    kept = watched.store.get(other.key)
    assert kept is not None
    assert kept.observed_at == after(received - 0.1)  # which is long ago
    assert kept.estimated
    assert watched.store.behind == after(10)


async def test_a_backlog_that_came_at_once_is_followed_before_anything_is_judged(
    watched: Watched,
) -> None:
    watched.live(lease())
    watched.at(1, Disconnected("cut"))
    watched.at(2, Connected())
    watched.at(2.5, Disconnected("cut again"))
    watched.at(30, Connected(lambda: (watched.now - after(30)).total_seconds()))
    watched.at(33)
    for version, renewed in enumerate((10, 20, 29), start=2):
        watched.at(33, Applied(lease(renewed=renewed, version=version)))
    watched.at(34)
    assert watched.changes == ["created"]


async def test_a_backlog_of_which_little_waits_is_followed_before_anything_is_judged(
    watched: Watched,
) -> None:
    waits = 0.9
    watched.live(lease(duration=6), lease(name="other", uid="other"))
    watched.at(5, Disconnected("cut"))
    watched.at(6, Connected(lambda: waits))
    watched.at(6, Applied(lease(name="other", uid="other", renewed=5.1, version=2)))
    waits = 0.0
    watched.at(6.5)
    watched.at(6.5, Applied(lease(duration=6, renewed=5.5, version=3)))
    assert watched.changes == ["created", "created"]


async def test_what_is_replayed_after_a_410_makes_the_watch_no_more_live(watched: Watched) -> None:
    """What cannot be replayed is in the list, which may take long."""
    watched.live(lease(), lease(name="other", uid="other"))
    watched.at(0.5, Disconnected("410"))  # before it has caught up
    other = lease(name="other", uid="other", renewed=1, version=2)
    watched.at(2, Arrived([Applied(other)]))
    watched.at(20)
    assert watched.store.behind is not None
    first = ListPage((lease(renewed=14, version=3),), "9", age=2.0)
    watched.at(20, first, Listed((other,), "9", age=4.0))
    known = watched.store.get(lease().key)
    assert known is not None
    assert known.observed_at == after(14)
    assert "expired" not in watched.changes


@pytest.mark.parametrize("ahead", [0, 90], ids=["right clocks", "clocks that are ahead"])
async def test_what_ran_out_is_told_while_a_long_backlog_is_read(
    watched: Watched, ahead: int
) -> None:
    """Events come in the order of writing. How old they are is known from what was live before."""
    names = [f"node-{number}" for number in range(20)]
    watched.live(lease(name="dead", uid="dead"), *(lease(name=n, uid=n) for n in names))

    def read(at: float, written: float) -> None:
        many = [
            lease(name=n, uid=n, renewed=written + ahead, version=int(written * 10) + 9)
            for n in names
        ]
        watched.at(at, Arrived([Applied(one) for one in many]))

    for step in range(1, 16):
        read(step / 2, step / 2 - 0.1)
    assert watched.store.behind is None
    watched.at(10, Disconnected("cut"))
    watched.at(60, Connected())
    for step in range(60):  # half a second each, in which what took one is read
        assert ("expired" in watched.changes) is (step > 11), step
        read(60 + step / 2, 10 + step)  # what was written 5 s before may still come
        due = watched.tracker._next._due
        assert due is not None
        assert due <= watched.now + GRACE
    expired = next(c for u in watched.updates for c in u.changes if c.change is ChangeType.EXPIRED)
    assert (expired.name, expired.at) == ("dead", after(15))


async def test_a_backlog_of_odd_times_stops_nothing(watched: Watched) -> None:
    names = [f"node-{number}" for number in range(20)]
    watched.live(*(lease(name=n, uid=n) for n in names))
    watched.at(0.5, Arrived([Applied(lease(name=n, uid=n, renewed=30, version=2)) for n in names]))
    watched.at(9)
    assert watched.store.behind is None
    watched.at(10, Disconnected("cut"), Connected())
    long_ago = (EARLIEST - after(0)).total_seconds()
    odd = [Applied(lease(name=n, uid=n, renewed=long_ago, version=3)) for n in names]
    watched.at(10.5, Arrived(odd))
    watched.at(12, Arrived([Applied(lease(name=n, uid=n, renewed=12, version=4)) for n in names]))
    assert "expired" not in watched.changes
