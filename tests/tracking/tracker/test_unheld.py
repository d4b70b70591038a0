"""The seconds without a holder of the metrics count watched time in which somebody was needed."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from leases.domain.figures import totals_of
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.steady_clock import Jump
from leases.tracking import counters as module
from leases.tracking.counters import FORGOTTEN_AFTER
from leases.wire.watch_decoding import Applied, Connected, Deleted, Disconnected, Replayed
from tests.support.values.leases import after, lease
from tests.tracking.tracker.conftest import Watched

KEY = ObjectName("default", "controller")


def unheld(watched: Watched) -> float:
    tracked = watched.store.get(KEY)
    assert tracked is not None
    return watched.tracker.counters.election(tracked, watched.now).unheld_seconds


def release(watched: Watched, seconds: float, version: int) -> None:
    watched.at(seconds, Applied(lease("", renewed=seconds, duration=1, version=version)))


def acquire(watched: Watched, seconds: float, version: int) -> None:
    new = lease("b", renewed=seconds, acquired=seconds, transitions=1, version=version)
    watched.at(seconds, Applied(new))


async def test_a_gap_counts_while_it_goes_on_and_once_it_has_ended(watched: Watched) -> None:
    watched.live(lease("a"))
    release(watched, 5, 2)
    watched.at(9)
    assert unheld(watched) == pytest.approx(4)
    acquire(watched, 12, 3)
    assert unheld(watched) == pytest.approx(7)


async def test_the_time_of_a_lost_connection_does_not_count(watched: Watched) -> None:
    watched.live(lease("a"))
    release(watched, 5, 2)
    watched.at(8, Disconnected("cut"))
    watched.at(30, Connected())
    acquire(watched, 33, 3)
    assert unheld(watched) == pytest.approx((5 - 5) + 3, abs=0.01)


async def test_the_time_in_which_the_process_stood_still_does_not_count(watched: Watched) -> None:
    watched.live(lease("a"))
    release(watched, 5, 2)
    watched.at(8)
    watched.now = after(69)
    watched.tracker.stood_still(after(8))
    acquire(watched, 71, 3)
    assert unheld(watched) == pytest.approx((8 - 5) + (71 - 69), abs=0.01)


async def test_a_clock_that_is_set_makes_no_gap_longer(watched: Watched) -> None:
    watched.live(lease("a"))
    release(watched, 5, 2)
    watched.at(9)
    watched.now = after(3609)
    watched.tracker.clock_jumped(Jump(after(9), after(3609)))
    acquire(watched, 3612, 3)
    assert unheld(watched) == pytest.approx(7)


async def test_a_lease_that_may_be_vacant_needs_no_holder(watched: Watched) -> None:
    watched.live(lease("a"))
    watched.tracker.set_overrides({}, {KEY: "ada"})
    release(watched, 5, 2)
    watched.at(9)
    assert unheld(watched) == 0
    acquire(watched, 12, 3)
    assert unheld(watched) == 0


async def test_time_after_it_was_abandoned_does_not_count(watched: Watched) -> None:
    watched.live(lease("a"))
    release(watched, 5, 2)
    acquire(watched, 5 + 4000, 3)
    assert watched.now == after(4005)
    assert unheld(watched) == pytest.approx(3600)


async def test_a_change_of_holder_counts_where_it_was_seen(watched: Watched) -> None:
    def changed() -> int:
        tracked = watched.store.get(KEY)
        assert tracked is not None
        return watched.tracker.counters.election(tracked, watched.now).holder_changes

    watched.live(lease("a"))
    release(watched, 5, 2)
    acquire(watched, 6, 3)
    assert changed() == 1
    watched.at(8, Disconnected("cut"))
    new = lease("c", renewed=20, acquired=20, transitions=2, version=4)
    watched.at(30, Replayed((Applied(new),)), Connected())
    assert changed() == 1
    release(watched, 33, 5)
    acquire(watched, 34, 6)
    assert changed() == 2


async def test_a_process_that_stood_still_and_lost_its_watch_lost_the_time_once(
    watched: Watched,
) -> None:
    watched.live(lease("a"))
    release(watched, 5, 2)
    watched.at(8)
    watched.now = after(69)
    watched.tracker.stood_still(after(8))
    watched.at(69, Disconnected("cut"))
    watched.at(70, Connected())
    acquire(watched, 73, 3)
    assert unheld(watched) == pytest.approx((5 - 5) + (73 - 70), abs=0.01)


def delete(watched: Watched, seconds: float, name: str, version: int) -> None:
    known = watched.store.get(ObjectName(KEY.namespace, name))
    assert known is not None
    meta = msgspec.structs.replace(known.lease.metadata, resource_version=str(version))
    watched.at(seconds, Deleted(msgspec.structs.replace(known.lease, metadata=meta)))


def create(watched: Watched, seconds: float, name: str, holder: str, version: int) -> None:
    one = lease(
        holder, renewed=seconds, acquired=seconds, version=version, uid=f"{version}", name=name
    )
    watched.at(seconds, Applied(one))


def come_to(watched: Watched, seconds: float) -> None:
    """Let the clock come so far at once."""
    watched.now = after(seconds)
    watched.tracker.tick()


async def test_counters_of_a_name_go_on_when_it_is_deleted_and_made_anew(watched: Watched) -> None:
    watched.live(lease("a"))
    for number, holder in enumerate("bba"):
        delete(watched, 5 + 3 * number, KEY.name, 10 + 2 * number)
        create(watched, 6 + 3 * number, KEY.name, holder, 11 + 2 * number)
    tracked = watched.store.get(KEY)
    assert tracked is not None
    found = watched.tracker.counters.election(tracked, watched.now)
    assert (found.handovers, found.holder_changes) == (2, 0)
    assert found.unheld_seconds == pytest.approx(3)


@pytest.mark.parametrize(
    ("holder", "kind", "handovers", "lost"),
    [(None, Kind.UNKNOWN, 1, 4), ("b", Kind.HEARTBEAT, 2, 2)],
)
async def test_what_was_an_election_counts_as_one_whatever_it_seems_when_it_is_made_anew(
    watched: Watched, holder: str | None, kind: Kind, handovers: int, lost: float
) -> None:
    watched.live(lease("a"))
    delete(watched, 5, KEY.name, 10)
    bare = {"acquired": None, "duration": None, "transitions": None, "uid": "11"}
    watched.at(7, Applied(lease(holder, renewed=7 if holder else None, version=11, **bare)))
    new = lease("c", renewed=9, acquired=9, transitions=1, version=12, uid="11")
    watched.at(9, Applied(new))
    changes = [change for update in watched.updates for change in update.changes]
    assert [change.kind for change in changes[1:3]] == [Kind.ELECTION, kind]
    tracked = watched.store.get(KEY)
    assert tracked is not None
    found = watched.tracker.counters.election(tracked, watched.now)
    totals = totals_of(changes, since=after(0), until=watched.now + timedelta(seconds=1))
    assert (totals.handovers, totals.gap_seconds) == (handovers, pytest.approx(lost))
    assert (found.handovers, found.unheld_seconds) == (handovers, pytest.approx(lost))


async def test_a_clock_that_is_set_forgets_no_election(watched: Watched) -> None:
    week = 7 * FORGOTTEN_AFTER.total_seconds()
    watched.live(lease("a"), lease("a", name="other", uid="other"))
    delete(watched, 5, KEY.name, 10)
    watched.now = after(week)
    watched.tracker.clock_jumped(Jump(after(5), after(week)))
    delete(watched, week + 1, "other", 11)
    assert set(watched.tracker.counters.elections) == {KEY, ObjectName("default", "other")}


async def test_an_election_that_was_deleted_for_good_is_forgotten(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters, day = watched.tracker.counters, FORGOTTEN_AFTER.total_seconds()

    def known() -> set[str]:
        assert len(counters._gaps._tails) == len(counters.elections)
        return {key.name for key in counters.elections}

    watched.live(*(lease("a", name=name, uid=name) for name in ("gone", "back")))
    delete(watched, 5, "gone", 10)
    delete(watched, 6, "back", 11)
    come_to(watched, day)
    create(watched, day + 1, "back", "b", 12)
    assert known() == {"gone", "back"}
    come_to(watched, day + 5)
    create(watched, day + 6, "new", "a", 13)
    assert known() == {"back", "new"}
    back = watched.store.get(ObjectName(KEY.namespace, "back"))
    assert back is not None
    found = counters.election(back, watched.now)
    assert (found.handovers, found.unheld_seconds) == (1, 0), "gone for more than an hour"

    monkeypatch.setattr(module, "MAX_GONE", 3)
    for number in range(10):
        create(watched, day + 7, f"job-{number}", "a", 20 + 2 * number)
        delete(watched, day + 7, f"job-{number}", 21 + 2 * number)
    assert known() == {"back", "new", "job-7", "job-8", "job-9"}
