"""When something that nobody saw was written: what the holder claims, inside the window."""

from __future__ import annotations

from datetime import datetime

import msgspec
import pytest

from leases.domain.change import (
    Observation,
    appeared_at,
    believed,
    renewal_moved,
    renewed_at,
    written_at,
)
from leases.domain.lease import Lease
from tests.support.values.leases import NOON, after, lease


class Claims(msgspec.Struct, frozen=True):
    """Somebody whose clock is known."""

    lease: Lease
    observed_at: datetime = NOON
    skew_seconds: float | None = None


def seen(now: float, since: float | None = None, *, remembered: bool = False) -> Observation:
    return Observation(
        now=after(now),
        since=None if since is None else after(since),
        inferred=True,
        listed=True,
        remembered=remembered,
    )


@pytest.mark.parametrize(
    "renewed", [lease(renewed=1), lease("b"), lease(acquired=1), lease(duration=16)]
)
def test_each_of_four_fields_renews(renewed: Lease) -> None:
    assert renewal_moved(lease(), renewed)


def test_writes_without_a_new_renew_time_renew_nothing() -> None:
    assert not renewal_moved(lease(), lease(version=2, transitions=9, labels={"a": "b"}))
    assert not renewal_moved(lease(None), lease(""))


@pytest.mark.parametrize(
    ("claimed", "skew", "since", "moment"),
    [
        (10, None, None, 10),
        (10, 2.5, None, 12.5),
        (10, -3.0, None, 7),
        (10, None, 10, 10),
        (10, None, 11, 11),
        (10, None, 9, 10),
        (21, None, None, 20),
        (19, 5.0, None, 20),
        (10, -5.0, 8, 8),
    ],
)
def test_a_claim_is_corrected_by_the_skew_and_kept_in_the_window(
    claimed: float, skew: float | None, since: float | None, moment: float
) -> None:
    floor = None if since is None else after(since)
    assert believed(after(claimed), skew, floor, after(20)) == after(moment)


def test_a_renewal_that_was_seen_live_happened_now_whatever_it_claims() -> None:
    live = Observation(now=after(20))
    assert renewed_at(Claims(lease()), lease(renewed=10), live) == after(20)


def test_a_renewal_without_a_claim_happened_when_it_was_seen() -> None:
    assert renewed_at(Claims(lease()), lease(renewed=None), seen(20, 5)) == after(20)


@pytest.mark.parametrize(
    ("before", "how", "moment"),
    [
        (None, seen(20, 5), 10),
        (None, seen(20, 15), 15),
        (None, seen(20, 15, remembered=True), 15),
        (Claims(lease(), skew_seconds=3.0), seen(20, 5), 13),
        (Claims(lease("b"), skew_seconds=3.0), seen(20, 5), 10),
        (Claims(lease(), after(18)), seen(20, 15), 15),
        (Claims(lease(), after(12)), seen(20, 15, remembered=True), 12),
    ],
)
def test_a_renewal_that_nobody_saw_happened_when_its_holder_says(
    before: Claims | None, how: Observation, moment: float
) -> None:
    assert renewed_at(before, lease(renewed=10), how) == after(moment)


def test_an_acquire_time_at_either_end_of_the_window_is_inside() -> None:
    for acquired in (5, 20):
        moment = written_at(Claims(lease()), lease("b", acquired=acquired), seen(20, 5))
        assert moment == (after(acquired), True)


def test_a_list_without_a_new_renew_time_dates_nothing() -> None:
    assert written_at(Claims(lease()), lease(duration=9), seen(20, 5)) == (after(20), False)


@pytest.mark.parametrize(
    ("appeared", "holder", "how", "moment"),
    [
        (lease(acquired=10, created=8), "a", Observation(now=after(20)), 20),
        (lease(acquired=10, created=8), "a", seen(20, 5), 10),
        (lease(acquired=8, created=8), "a", seen(20, 5), 8),
        (lease(acquired=10, created=8), None, seen(20, 5), 8),
        (lease(acquired=7, created=8), "a", seen(20, 5), 8),
        (lease(acquired=4, created=3), "a", seen(20, 5), 20),
        (lease(acquired=21, created=8), "a", seen(20, 5), 8),
        (lease(acquired=None, created=8), "a", seen(20, 5), 8),
        (lease(acquired=None, created=8), None, seen(20), 20),
        (lease(acquired=None, created=4), None, seen(20, 5), 20),
        (lease(acquired=None, created=21), None, seen(20, 5), 20),
        (lease(acquired=10, created=8), "a", seen(20), 10),
    ],
)
def test_a_new_lease_appeared_when_its_holder_came_or_it_was_created(
    appeared: Lease, holder: str | None, how: Observation, moment: float
) -> None:
    assert appeared_at(appeared, holder, how) == after(moment)


def test_a_lease_without_a_creation_time_appeared_when_its_holder_came() -> None:
    one = lease(acquired=10)
    unborn = Lease(msgspec.structs.replace(one.metadata, creation_timestamp=None), one.spec)
    assert appeared_at(unborn, "a", seen(20, 5)) == after(10)
    assert appeared_at(unborn, None, seen(20, 5)) == after(20)
