"""One timer wakes the clusters in which something is due, and no other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from leases.tracking import shared_timer
from leases.tracking.shared_timer import DeadlineTimer, SharedTimer
from tests.support.values.leases import NOON, after

AT_ONCE = timedelta(0)


class Clusters:
    """Two on one timer, with a clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = NOON
        self.woken: list[str] = []
        self.timers = SharedTimer(lambda: self.now)
        self.one, self.other = (
            DeadlineTimer(self.timers, lambda name=name: self.woken.append(name))
            for name in ("one", "other")
        )

    def plan(self, one: datetime, other: datetime) -> None:
        self.one.plan(one, self.now, at_least=AT_ONCE)
        self.other.plan(other, self.now, at_least=AT_ONCE)

    async def until_woken(self, *names: str) -> None:
        async with asyncio.timeout(30):
            while self.woken != [*names]:
                await asyncio.sleep(0.001)


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> Clusters:
    monkeypatch.setattr(shared_timer, "MAX_WAIT", timedelta(milliseconds=10))
    return Clusters()


async def test_who_is_due_is_woken_alone(clusters: Clusters) -> None:
    clusters.plan(NOON, after(3600))
    await clusters.until_woken("one")
    for second in range(1, 6):  # the process looks again and again meanwhile
        clusters.now = after(second)
        await asyncio.sleep(0.02)
    assert clusters.woken == ["one"]
    assert not clusters.other.overdue(clusters.now)
    clusters.now = after(3600)
    await clusters.until_woken("one", "other")


async def test_all_are_woken_after_the_process_stood_still(clusters: Clusters) -> None:
    clusters.plan(after(60), after(3600))
    clusters.now = after(5)
    assert clusters.one.overdue(clusters.now)
    await clusters.until_woken("one", "other")
    assert after(0) < clusters.other.take_planned() < after(1)


async def test_what_is_due_soon_after_a_beat_shares_the_next_one(clusters: Clusters) -> None:
    clusters.plan(NOON, after(3600))
    await clusters.until_woken("one")
    clusters.one.plan(after(0.002), clusters.now, at_least=timedelta(milliseconds=1))
    clusters.other.plan(after(0.008), clusters.now, at_least=AT_ONCE)
    assert clusters.timers._at == after(0.01)
    clusters.now = after(0.01)
    await clusters.until_woken("one", "other", "one")


async def test_who_stopped_is_not_woken(clusters: Clusters) -> None:
    clusters.plan(NOON, NOON)
    clusters.one.stop()
    await clusters.until_woken("other")


async def test_the_plan_is_void_after_the_clock_was_set(clusters: Clusters) -> None:
    clusters.plan(after(3600), after(3600))
    clusters.now = after(-3600)
    for timer in (clusters.one, clusters.other):
        timer.forget()
    clusters.plan(after(-3600), after(3600))
    await clusters.until_woken("one")


async def test_renewals_of_all_are_told_together_and_one_that_fails_stops_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shared_timer, "COALESCE", 0.001)
    told: list[str] = []

    def broken() -> None:
        told.append("broken")
        raise RuntimeError("a defect of ours")

    def other() -> None:
        told.append("other")

    timer = SharedTimer(lambda: NOON)
    dropped: Callable[[], None] = lambda: told.append("dropped")  # noqa: E731
    for wake in (broken, dropped, other, broken):
        timer.collect(wake)
    timer.drop(dropped)
    with caplog.at_level(logging.CRITICAL, "asyncio"):
        await asyncio.sleep(0.05)
    assert told == ["broken", "other"]
