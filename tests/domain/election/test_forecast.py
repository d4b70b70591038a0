"""If the holder died now: when could another acquire the Lease?"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from leases.domain.election import Outlook, forecast
from leases.domain.kind import Kind
from leases.domain.lease import Lease
from leases.domain.phase import Phase
from tests.support.values.known_changes import Known
from tests.support.values.leases import after, lease


def forecast_of(
    one: Lease, kind: Kind = Kind.ELECTION, *, cadence: float | None = 2.0, seen: int = 9
):
    known = Known(lease=one, kind=kind, cadence_seconds=cadence, renewals_seen=seen)
    if one.holder is None:
        known = replace(known, phase=Phase.VACANT, phase_since=after(1))
    return forecast(known)


def test_contenders_of_client_go_take_it_within_two_of_their_looks_after_it_ran_out():
    seen = forecast_of(lease())
    assert seen.outlook is Outlook.CONTENDED
    assert seen.earliest == after(15)
    assert seen.latest == after(15 + 2 * 2.2 * 2)
    assert (seen.retry_seconds, seen.learned) == (2.0, True)


def test_until_the_cadence_is_learned_client_gos_proportions_are_assumed():
    seen = forecast_of(lease(duration=30), cadence=7.0, seen=2)
    assert (seen.retry_seconds, seen.learned) == (4.0, False)
    assert seen.latest == after(30 + 2 * 2.2 * 4)


def test_a_vacant_lease_is_taken_at_the_next_look():
    seen = forecast_of(lease(None, duration=1))
    assert (seen.earliest, seen.latest) == (after(1), after(1 + 2.2 * 2))


def test_the_duration_of_a_released_lease_tells_nothing_of_those_who_wait():
    seen = forecast_of(lease(None, duration=1), cadence=None, seen=0)
    assert (seen.earliest, seen.latest, seen.retry_seconds) == (after(1), None, None)
    assert forecast_of(lease(None, duration=30), cadence=None, seen=0).retry_seconds == 4.0


def test_a_controller_gives_a_coordinated_lease_to_a_candidate_that_answers():
    seen = forecast_of(lease(strategy="OldestEmulationVersion"))
    assert (seen.outlook, seen.earliest, seen.latest) == (
        Outlook.COORDINATED, after(15), after(25),
    )  # fmt: skip
    vacant = forecast_of(lease(None, strategy="OldestEmulationVersion", duration=1))
    assert (vacant.earliest, vacant.latest) == (after(1), after(6))


@pytest.mark.parametrize(
    ("kind", "outlook"),
    [
        (Kind.HEARTBEAT, Outlook.HEARTBEAT),
        (Kind.IDENTITY, Outlook.IDENTITY),
        (Kind.LOCK, Outlook.LOCK),
        (Kind.UNKNOWN, Outlook.LOCK),
    ],
)
def test_for_other_kinds_only_the_expiry_is_forecast(kind, outlook):
    seen = forecast_of(lease(), kind)
    assert (seen.outlook, seen.earliest, seen.latest) == (outlook, after(15), None)


def test_a_lease_that_cannot_expire_is_stuck_with_its_holder():
    assert forecast_of(lease(duration=None), Kind.LOCK).outlook is Outlook.STUCK
    assert forecast_of(lease(duration=None), Kind.ELECTION).outlook is Outlook.STUCK
    assert forecast_of(lease(duration=None), Kind.HEARTBEAT).outlook is Outlook.HEARTBEAT
    assert forecast_of(lease(duration=None), Kind.LOCK).earliest is None


def test_a_nameless_heartbeat_is_held_unless_it_named_somebody_before():
    def of(kind: Kind, *, named: bool):
        vacant = named or kind is Kind.ELECTION
        phase = Phase.VACANT if vacant else Phase.HELD
        known = Known(lease=lease(None), kind=kind, phase=phase, phase_since=after(1), named=named)
        return forecast(known).earliest

    assert of(Kind.HEARTBEAT, named=False) == after(15)
    assert of(Kind.HEARTBEAT, named=True) == after(1)
    assert of(Kind.ELECTION, named=False) == after(1)


def test_a_cadence_is_learned_from_three_renewals():
    assert forecast_of(lease(), cadence=4.0, seen=3).retry_seconds == 4.0


def test_without_a_cadence_and_a_duration_nobody_knows_when_it_is_taken():
    seen = forecast_of(lease(None, duration=None), cadence=None, seen=0)
    assert (seen.earliest, seen.latest, seen.retry_seconds) == (after(1), None, None)
