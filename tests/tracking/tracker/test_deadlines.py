"""When Leases expire while the cluster is watched, and during and after breaks."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

from leases.domain.change import ChangeType
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.steady_clock import Jump
from leases.tracking import deadlines
from leases.tracking.tracker import BETWEEN_TURNS, UNTIL_READ
from leases.wire.watch_decoding import Applied, Connected, Disconnected, Listed
from tests.support.values.leases import after, lease
from tests.tracking.tracker.conftest import Watched


async def test_a_lease_runs_out_while_we_watch(watched: Watched) -> None:
    watched.live(lease())
    watched.at(20)
    assert watched.changes == ["created", "expired"]


async def test_no_lease_expires_because_the_watch_was_cut(watched: Watched) -> None:
    watched.live(lease())
    watched.at(5, Disconnected("the cable was cut"))
    watched.at(500)
    assert watched.changes == ["created"]
    assert watched.states == ["live", "stale"]


async def test_an_unseen_expiry_comes_after_the_events_that_catch_up(watched: Watched) -> None:
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
    (expired,) = watched.updates[-1].changes
    assert (expired.at, expired.inferred) == (after(73), False)


async def test_an_expiry_in_a_long_break_is_inferred(watched: Watched) -> None:
    watched.live(lease())
    watched.renew(2, 2)
    watched.at(5, Disconnected("cut"))
    watched.at(60, Connected())
    watched.at(62)
    (expired,) = watched.updates[-1].changes
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


async def test_what_ran_out_before_the_watch_broke_was_observed_however_late_we_judge_it(
    watched: Watched,
) -> None:
    names = [f"node-{number}" for number in range(500)]  # more than one check judges
    watched.live(*[lease(name=name, uid=name) for name in names], lease(name="other", uid="o"))
    watched.at(
        16, Applied(lease(name="other", uid="o", renewed=16, version=2)), Disconnected("410")
    )
    assert watched.changes.count("expired") < len(names)
    back = [lease(name=name, uid=name, renewed=59, version=3) for name in names]
    other = lease(name="other", uid="o", renewed=59, version=3)
    watched.at(60, Listed((*back, other), "4"), Connected())
    changes = [change for update in watched.updates for change in update.changes]
    expired = [one for one in changes if one.change == "expired" and one.name != "other"]
    assert sorted(one.name for one in expired) == sorted(names)
    assert {(one.at, one.inferred) for one in expired} == {(after(15), False)}
    recovered = [one.name for one in changes if one.change == "recovered" and one.name != "other"]
    assert sorted(recovered) == sorted(names)


async def test_deadlines_are_judged_after_a_sleep_though_nothing_comes(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "GRACE", timedelta(0))
    watched.live(lease())
    watched.at(2)
    watched.now = after(602)
    watched.tracker.stood_still(after(2))
    async with asyncio.timeout(30):
        while watched.changes != ["created", "expired"]:
            await asyncio.sleep(0)


def due_while_data_waits(watched: Watched) -> list[float]:
    """One Lease is due at 15, another at 25; a check at 15.1 finds data that waits. Returns for how
    many seconds it may have waited.
    """
    waits = [0.0]
    watched.at(0, Listed((lease(), lease(name="other")), "1"), Connected(lambda: waits[0]))
    watched.at(10, Applied(lease(name="other", renewed=10, version=2)))
    watched.at(14.9)
    watched.now, waits[0] = after(15.1), 0.2
    watched.tracker.tick()
    return waits


async def test_what_is_due_while_data_waits_is_judged_once_it_was_read(watched: Watched) -> None:
    waits = due_while_data_waits(watched)
    assert watched.tracker._next.planned == watched.now + UNTIL_READ
    watched.now, waits[0] = after(15.15), 0.0
    watched.tracker.handle(Applied(lease(name="other", renewed=15.14, version=3)))
    assert "expired" not in watched.changes, "the rest of what was read may renew it"
    assert watched.tracker._next.planned == watched.now
    async with asyncio.timeout(30):
        while "expired" not in watched.changes:
            await asyncio.sleep(0)
    assert watched.changes.count("expired") == 1


async def test_events_that_come_one_by_one_do_not_each_have_a_check(watched: Watched) -> None:
    due_while_data_waits(watched)
    checked, watched.now = watched.now, after(15.101)
    watched.tracker.handle(Applied(lease(name="other", renewed=15.1, version=3)))
    assert watched.tracker._next.planned == checked + BETWEEN_TURNS


async def test_an_event_that_comes_before_the_late_check_is_of_the_past(watched: Watched) -> None:
    watched.live(lease())
    watched.renew(2, 2)
    watched.now = after(602)  # the process stood still, and its timer has not run yet
    watched.tracker.handle(
        Applied(lease("b", acquired=300, renewed=601, version=40, transitions=1))
    )
    expired, taken_over = [one for update in watched.updates for one in update.changes][1:]
    assert (expired.change, expired.at, expired.inferred) == ("expired", after(17), True)
    assert (taken_over.change, taken_over.at) == ("taken_over", after(300))


async def test_the_delay_of_events_is_measured_anew_after_a_clock_jump(watched: Watched) -> None:
    watched.live(lease())
    for version, second in enumerate(range(2, 22, 2), start=2):
        watched.renew(second, version)
    watched.tracker.flush()
    assert watched.store.connection.behind_seconds == 0
    jump = Jump(watched.now, after(3620))
    watched.now = jump.after
    watched.tracker.clock_jumped(jump)
    watched.tracker.handle(Applied(lease(renewed=20.5, version=20)))
    watched.tracker.flush()
    assert watched.store.connection.behind_seconds == 3620 - 20.5


async def test_a_watch_that_stops_tells_the_renewals_that_it_had_collected(
    watched: Watched,
) -> None:
    watched.live(lease())
    watched.renew(2, 2)
    assert not any(update.renewed for update in watched.updates)
    watched.tracker.stop()
    assert watched.updates[-1].renewed == (lease().key,)


async def test_nobody_is_late_as_of_a_time_when_it_was_held(watched: Watched) -> None:
    """The watch falls silent with its API server: that is noticed after a while."""

    def phase() -> tuple[Phase, datetime]:
        tracked = watched.store.get(ObjectName("default", "controller"))
        assert tracked is not None
        return tracked.phase, tracked.phase_since

    watched.live(lease("a"))
    for number in range(1, 7):
        watched.renew(2.0 * number, number + 1)
    watched.at(20)
    assert phase()[0] is Phase.LATE
    watched.at(20, Disconnected("nothing was heard for 8 s"))
    assert phase() == (Phase.HELD, after(12))
    watched.at(25)
    assert phase()[0] is Phase.HELD
    watched.at(26, Connected())
    watched.at(60)
    assert phase() == (Phase.EXPIRED, after(27))


async def test_who_was_late_before_the_watch_fell_silent_stays_so(watched: Watched) -> None:
    watched.live(lease("a"))
    for number in range(1, 7):
        watched.renew(2.0 * number, number + 1)
    watched.at(20, Applied(lease("b", name="other", renewed=20, version=9)))
    watched.at(21, Disconnected("cut"))
    tracked = watched.store.get(ObjectName("default", "controller"))
    assert tracked is not None
    assert tracked.phase is Phase.LATE


async def test_what_runs_out_in_a_silence_is_told_once_the_cluster_has_answered(
    watched: Watched,
) -> None:
    silent, asked = [0.0], []
    watched.at(
        0, Listed((lease(),), "1"), Connected(float, lambda: silent[0], lambda: asked.append(1))
    )
    watched.at(14.9)
    assert not asked
    watched.now, silent[0] = after(15.1), 5.0
    watched.tracker.tick()
    assert asked
    assert "expired" not in watched.changes
    assert watched.tracker._next.planned == watched.now + BETWEEN_TURNS
    watched.now, silent[0] = after(15.12), 0.01
    watched.tracker.tick()
    [expired] = watched.updates[-1].changes
    assert (expired.change, expired.at, expired.inferred) == (ChangeType.EXPIRED, after(15), False)


async def test_what_ran_out_in_a_silence_that_was_a_break_is_inferred(watched: Watched) -> None:
    heard = after(12)
    silent = Connected(float, lambda: (watched.now - heard).total_seconds())
    watched.at(0, Listed((lease(), lease(name="other")), "1"), silent)
    watched.at(12, Applied(lease(name="other", renewed=12, version=2)))
    watched.at(19, Disconnected("gone"))
    assert "expired" not in watched.changes
    watched.at(40, Connected())
    watched.at(42)
    expired = [c for u in watched.updates for c in u.changes if c.change is ChangeType.EXPIRED]
    assert [(one.name, one.inferred) for one in expired] == [
        ("controller", True),
        ("other", True),
    ]


async def test_an_alarm_that_a_renewal_has_postponed_asks_nobody(watched: Watched) -> None:
    asked: list[int] = []
    silent = Connected(float, lambda: 5.0, lambda: asked.append(1))
    watched.at(0, Listed((lease(),), "1"), silent)
    watched.renew(10, 2)
    watched.at(24)
    assert not asked
    watched.at(26)
    assert asked
    assert watched.changes == ["created"]


async def test_sleep_is_silence_though_no_clock_of_the_watch_counts_it(watched: Watched) -> None:
    woke, answered = after(610), []

    def silent() -> float:
        return 0.0 if answered else max(0.0, (watched.now - woke).total_seconds() + 0.3)

    watched.at(0, Listed((lease(),), "1"), Connected(float, silent))
    watched.at(10)
    watched.now = woke
    watched.tracker.stood_still(after(10))
    watched.at(611.5)
    assert "expired" not in watched.changes
    answered.append(True)
    watched.at(612.5)
    assert watched.changes == ["created", "expired"]


async def test_a_pause_claims_nothing_of_a_silence_before_it(watched: Watched) -> None:
    silent = Connected(float, lambda: (watched.now - after(12)).total_seconds())
    watched.at(0, Listed((lease(),), "1"), silent)
    watched.at(16)
    watched.tracker.handle(Disconnected("", paused_at=after(16)))
    assert watched.store.connection.heard_at == after(12)
