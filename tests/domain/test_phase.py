"""Where a Lease stands, when that turns, and why."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from leases.domain.kind import Kind
from leases.domain.lease import Lease
from leases.domain.phase import Phase, explain, late_after, next_turn, phase_of, wall_clock_expired
from tests.support.values.known_changes import Known
from tests.support.values.leases import NOON, after, lease

MICROSECOND = timedelta(microseconds=1)


def known(
    subject: Lease,
    *,
    cadence: float | None = None,
    seen: int = 0,
    kind: Kind = Kind.ELECTION,
    named: bool = True,
    phase: Phase = Phase.HELD,
) -> Known:
    return Known(
        lease=subject,
        cadence_seconds=cadence,
        renewals_seen=seen,
        kind=kind,
        named=named,
        phase=phase,
    )


def phase(subject: Lease, now: datetime, **more: Any) -> Phase:
    return phase_of(known(subject, **more), now)


@pytest.mark.parametrize("nobody", [None, ""])
def test_no_holder_is_vacant(nobody: str | None) -> None:
    assert phase(lease(nobody), after(0)) is Phase.VACANT


def test_a_heartbeat_that_never_names_a_holder_counts_as_held_by_its_own_name() -> None:
    silent = lease(None)
    assert phase(silent, after(1), kind=Kind.HEARTBEAT, named=False) is Phase.HELD
    assert phase(silent, after(15), kind=Kind.HEARTBEAT, named=False) is Phase.EXPIRED
    assert phase(silent, after(1), kind=Kind.HEARTBEAT, named=True) is Phase.VACANT
    assert phase(silent, after(1), kind=Kind.ELECTION, named=False) is Phase.VACANT


def test_a_holder_without_duration_or_renew_time_cannot_expire() -> None:
    assert phase(lease(duration=None), after(9999)) is Phase.UNTIMED
    assert phase(lease(renewed=None), after(9999)) is Phase.UNTIMED


def test_it_expires_exactly_when_its_duration_has_passed_since_we_saw_it() -> None:
    subject = lease(renewed=-300)  # the holder's clock is five minutes slow, and does not matter
    assert phase(subject, after(15) - MICROSECOND) is not Phase.EXPIRED
    assert phase(subject, after(15)) is Phase.EXPIRED


def test_until_three_renewals_are_seen_late_is_older_than_two_thirds() -> None:
    for seen in (0, 1, 2):
        assert phase(lease(), after(10), cadence=2.0, seen=seen) is Phase.HELD
        assert phase(lease(), after(10) + MICROSECOND, cadence=2.0, seen=seen) is Phase.LATE


def test_with_a_learned_cadence_late_is_older_than_twice_that() -> None:
    assert phase(lease(), after(4), cadence=2.0, seen=3) is Phase.HELD
    assert phase(lease(), after(4) + MICROSECOND, cadence=2.0, seen=3) is Phase.LATE


def test_a_renewal_may_always_be_one_second_overdue() -> None:
    assert phase(lease(), after(1.2), cadence=0.2, seen=9) is Phase.HELD
    assert phase(lease(), after(1.3), cadence=0.2, seen=9) is Phase.LATE


def test_a_holder_that_renews_29_of_30_seconds_is_never_late() -> None:
    kubert = lease(duration=30)
    assert phase(kubert, after(29.9), cadence=29.0, seen=5) is Phase.HELD
    assert phase(kubert, after(30), cadence=29.0, seen=5) is Phase.EXPIRED


def test_an_untimed_lease_with_a_learned_cadence_can_be_late() -> None:
    ocm = lease(duration=None)
    assert phase(ocm, after(120), cadence=60.0, seen=3) is Phase.UNTIMED
    assert phase(ocm, after(121), cadence=60.0, seen=3) is Phase.LATE


@pytest.mark.parametrize(
    ("subject", "cadence", "seen"),
    [
        (lease(), None, 0),
        (lease(), 2.0, 3),
        (lease(duration=30), 29.0, 5),
        (lease(duration=None), 60.0, 3),
        (lease(renewed=None), None, 0),
    ],
)
def test_a_phase_turns_exactly_at_its_deadline(
    subject: Lease, cadence: float | None, seen: int
) -> None:
    now, turns = NOON, 0
    while True:
        current = phase(subject, now, cadence=cadence, seen=seen)
        turn = next_turn(known(subject, cadence=cadence, seen=seen, phase=current))
        if turn is None:
            break
        assert phase(subject, turn - MICROSECOND, cadence=cadence, seen=seen) is current
        assert phase(subject, turn, cadence=cadence, seen=seen) is not current
        now, turns = turn, turns + 1
    assert turns <= 2
    assert phase(subject, now + timedelta(days=1), cadence=cadence, seen=seen) is current


def test_late_after_is_none_only_where_nothing_is_known() -> None:
    assert late_after(known(lease())) == 10
    assert late_after(known(lease(), cadence=2.0, seen=3)) == 4
    assert late_after(known(lease(duration=None))) is None
    assert late_after(known(lease(renewed=None))) is None


@pytest.mark.parametrize(
    ("subject", "seconds", "text"),
    [
        (lease(), 17.2, "renewed 17.2 s ago; lasts 15 s; ran out 2.2 s ago: others may take it"),
        (lease(), 3, "renewed 3.0 s ago; lasts 15 s; others may take it in 12.0 s"),
        (
            lease(),
            5,
            "renewed 5.0 s ago; due every 2.0 s; lasts 15 s; others may take it in 10.0 s",
        ),
        (lease(""), 5, "nobody holds it"),
        (
            lease(duration=20_000),
            3,
            "renewed 3.0 s ago; lasts 20000 s; others may take it in 19997.0 s",
        ),
        (
            lease(duration=None),
            3,
            "renewed 3.0 s ago; without leaseDurationSeconds it cannot run out",
        ),
        (lease(renewed=None), 3, "never renewed; without renewTime it cannot run out"),
    ],
)
def test_a_phase_explains_itself_with_its_numbers(
    subject: Lease, seconds: float, text: str
) -> None:
    assert explain(known(subject, cadence=2.0, seen=3), after(seconds)).text == text


@pytest.mark.parametrize("kind", [Kind.HEARTBEAT, Kind.IDENTITY])
def test_nobody_takes_over_a_heartbeat_or_an_identity(kind: Kind) -> None:
    runs, ran = (explain(known(lease(), kind=kind), after(age)).text for age in (3, 17.2))
    assert runs == "renewed 3.0 s ago; lasts 15 s; runs out in 12.0 s"
    assert ran == "renewed 17.2 s ago; lasts 15 s; ran out 2.2 s ago"


def test_the_wall_clock_may_disagree_about_a_holder_with_a_slow_clock() -> None:
    explained = explain(known(lease(renewed=-300)), after(1))
    assert (explained.phase, explained.wall_clock_expired) == (Phase.HELD, True)


def test_a_clause_agrees_with_its_number() -> None:
    def of(seconds: float, *, seen: int = 3) -> list[tuple[float | None, str, float]]:
        explained = explain(known(lease(), cadence=2.0, seen=seen), after(seconds))
        return [(clause.seconds, clause.counts, clause.offset) for clause in explained.clauses]

    assert of(3) == [(3.0, "up", 0.0), (15, "", 0.0), (12.0, "down", 15)]
    assert of(17) == [(17.0, "up", 0.0), (15, "", 0.0), (2.0, "up", 15)]
    assert of(12, seen=2)[1] == (10.0, "", 0.0)


def test_a_late_lease_without_a_cadence_says_after_what_it_is_late() -> None:
    for cadence, seen in ((None, 9), (2.0, 2), (None, 0)):
        explained = explain(known(lease(), cadence=cadence, seen=seen), after(12))
        assert explained.text.split("; ")[1] == "late after 10.0 s"


def test_a_heartbeat_without_a_name_explains_itself_as_held() -> None:
    def of(kind: Kind, *, named: bool) -> Phase:
        return explain(known(lease(None), kind=kind, named=named), after(1)).phase

    assert of(Kind.HEARTBEAT, named=False) is Phase.HELD
    assert of(Kind.HEARTBEAT, named=True) is Phase.VACANT
    assert of(Kind.ELECTION, named=False) is Phase.VACANT


def test_the_wall_clock_expires_a_lease_after_its_last_valid_instant() -> None:
    assert wall_clock_expired(lease(), after(15)) is False
    assert wall_clock_expired(lease(), after(15) + MICROSECOND) is True
    assert wall_clock_expired(lease(renewed=None), after(99)) is None
    assert wall_clock_expired(lease(duration=None), after(99)) is None
