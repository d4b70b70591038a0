"""What becomes of a Lease whose holder dies, as the page says it."""

from __future__ import annotations

import msgspec
import pytest

from dashboard.parts.formatting import age
from dashboard.parts.lease_head import forecast_view, lease_view
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from tests.support.values.tracked_leases import NOW, tracked

pytestmark = pytest.mark.usefixtures("board")


def said(one) -> str:
    view = forecast_view(one, NOW)
    return view.before + " to ".join(bound.text for bound in view.bounds) + view.after


def with_spec(one, **spec):
    lease = msgspec.structs.replace(one.lease, spec=msgspec.structs.replace(one.lease.spec, **spec))
    return one.replace(lease=lease)


def test_an_election_is_taken_between_the_run_out_and_the_slowest_look():
    one = tracked(age=2.0)
    assert said(one) == ("If the holder died now, others may acquire it in about 13 s to 21 s.")
    view = forecast_view(one, NOW)
    assert [round(bound.left, 1) for bound in view.bounds] == [15.0, 23.8]
    assert "look every 2 s to 4.4 s (learned from the renewals)" in view.basis
    assert "does not say whether another contender is running" in view.basis


def test_a_cadence_not_learned_yet_is_said_to_be_assumed():
    assert "(assumed from the duration)" in forecast_view(tracked(renewals_seen=1), NOW).basis


def test_an_expired_election_is_open_since_then():
    one = tracked(phase=Phase.EXPIRED, age=20.0)
    assert said(one) == (
        "Others have been able to acquire it since 12:04:18; "
        "a contender of client-go that runs should have by 12:04:26."
    )
    long_ago = tracked(phase=Phase.EXPIRED, age=60.0)
    assert said(long_ago).endswith("that runs had until 12:03:46.")


def test_a_coordinated_election_waits_for_the_api_server():
    one = with_spec(tracked(), strategy="OldestEmulationVersion")
    assert said(one).startswith("If the holder died now, the API server may give it to another")
    vacant = with_spec(tracked(holder=None, phase=Phase.VACANT), strategy="OldestEmulationVersion")
    able = "The API server has been able to give it to a candidate since 12:04:22"
    assert said(vacant).startswith(able)


def test_nobody_else_acquires_a_heartbeat():
    one = tracked(kind=Kind.HEARTBEAT, namespace="kube-node-lease", duration=40, age=8.0)
    assert said(one) == "If the holder died now, it would expire in 32 s."
    assert "kube-controller-manager has a grace period" in forecast_view(one, NOW).basis
    other = tracked(kind=Kind.HEARTBEAT, duration=None, phase=Phase.UNTIMED)
    assert said(other) == "If the holder died now, this would never expire."
    gone = tracked(kind=Kind.IDENTITY, phase=Phase.EXPIRED, age=20)
    assert said(gone) == "It ran out at 12:04:18."


def test_a_lock_shows_only_the_earliest_moment():
    one = tracked(kind=Kind.LOCK, age=5.0)
    assert said(one).endswith("others may acquire it in about 10 s at the earliest.")
    stuck = tracked(kind=Kind.LOCK, phase=Phase.UNTIMED, duration=None)
    assert said(stuck).startswith("If the holder died now, nobody could acquire it")


def test_the_head_says_when_a_preferred_holder_ends_the_term():
    one = with_spec(tracked(), strategy="OldestEmulationVersion", preferred_holder="cp-2_5f0c")
    successor = lease_view("a", one, NOW).successor
    assert successor is not None
    assert successor.identity == "cp-2_5f0c"
    assert lease_view("a", tracked(), NOW).successor is None


def test_the_time_held_stops_at_the_expiry():
    held, expired = (tracked(phase=phase, age=20.0) for phase in (Phase.HELD, Phase.EXPIRED))
    assert lease_view("a", held, NOW).row.held.since is not None
    row = lease_view("a", expired, NOW).row
    lasted = (expired.phase_since - expired.held_since).total_seconds()
    assert (row.held.since, row.held.length) == (None, age(lasted))


def test_why_goes_on_with_the_clock():
    parts = lease_view("a", tracked(phase=Phase.LATE, age=9.0), NOW).why
    assert "".join(part.before + part.number + part.after for part in parts) == (
        "Renewed 9.0 s ago; due every 2.0 s; lasts 15 s; others may take it in 6.0 s."
    )
    long = tracked(phase=Phase.LATE, age=9.0, duration=20_000)
    parts_of_long = lease_view("a", long, NOW).why
    assert "lasts 5 h 33 m; others may take it in 5 h 33 m" in "".join(
        part.before + part.number + part.after for part in parts_of_long
    )
    assert [(part.passed, part.left) for part in parts] == [
        (0.0, None), (None, None), (None, None), (None, 15.0),
    ]  # fmt: skip
