"""Which Leases are in trouble: the rules behind Attention, the wall and the order of lists."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from leases.domain.figures import (
    FLAPPING_SEVERITY,
    SEVERITY,
    TROUBLE,
    VACANT_GRACE,
    is_in_trouble,
    needs_attention,
    severity,
)
from leases.domain.kind import Kind
from leases.domain.phase import Phase

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def test_every_phase_has_a_severity_and_trouble_comes_first():
    worst_first = sorted(Phase, key=SEVERITY.__getitem__)
    assert set(worst_first[: len(TROUBLE)]) == set(TROUBLE)
    assert worst_first[0] is Phase.EXPIRED
    assert worst_first[-1] is Phase.HELD


@pytest.mark.parametrize("kind", Kind)
def test_a_vacant_election_is_in_trouble_and_a_vacant_lock_is_free(kind):
    assert is_in_trouble(Phase.VACANT, kind) is (kind is Kind.ELECTION)
    assert is_in_trouble(Phase.EXPIRED, kind)
    assert is_in_trouble(Phase.LATE, kind)
    assert not is_in_trouble(Phase.HELD, kind)
    assert not is_in_trouble(Phase.UNTIMED, kind)


def test_a_vacant_election_needs_attention_after_its_grace():
    def needs(vacant_for):
        return needs_attention(Phase.VACANT, Kind.ELECTION, since=NOW - vacant_for, now=NOW)

    assert not needs(VACANT_GRACE - timedelta(microseconds=1))
    assert needs(VACANT_GRACE)


def test_a_lease_that_nobody_need_hold_is_in_no_trouble_and_comes_last():
    for phase in (Phase.VACANT, Phase.EXPIRED):
        assert not is_in_trouble(phase, Kind.ELECTION, excused=True)
        hour = NOW - timedelta(hours=1)
        assert not needs_attention(phase, Kind.ELECTION, since=hour, now=NOW, excused=True)
        assert severity(phase, flaps=False, excused=True) > max(SEVERITY.values())
        assert severity(phase, flaps=True, excused=True) == FLAPPING_SEVERITY


def test_an_expired_lease_needs_attention_at_once():
    assert needs_attention(Phase.EXPIRED, Kind.HEARTBEAT, since=NOW, now=NOW)
    assert not needs_attention(Phase.HELD, Kind.ELECTION, since=NOW, now=NOW)
