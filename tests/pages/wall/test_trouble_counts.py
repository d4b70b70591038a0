"""A Lease that flaps and is in trouble is counted once, under its worst word."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dashboard.pages.wall import all_trouble, more, trouble_in
from dashboard.parts.lease_filter import LeaseFilter
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from tests.support.board import a_lease, fill


def named(*names: str) -> list[ObjectName]:
    return [ObjectName("apps", name) for name in names]


@pytest.mark.parametrize(
    ("phases", "flapping", "says"),
    [
        ((), False, "3 more expired, 2 more flapping, 1 more vacant"),
        ((Phase.VACANT,), False, "1 more flapping, 1 more vacant"),
        ((Phase.EXPIRED,), False, "3 more expired"),
        ((), True, "1 more expired, 2 more flapping"),
    ],
)
def test_each_lease_counts_once(board, phases, flapping, says):
    store = board.clusters["a"].store
    expiring, vacant = named("out-1", "out-2", "out-3"), named("free-1", "free-2")
    fill(store, *map(a_lease, expiring), *(a_lease(key, holder=None) for key in vacant))
    later = datetime.now(UTC) + timedelta(minutes=1)
    store.turn(later)
    held = named("held-1", "held-2")
    fill(store, *(one.lasting.lease for one in store.snapshot()), *map(a_lease, held))
    flappers = {expiring[0], vacant[0], held[0]}
    wanted = LeaseFilter(kinds=(Kind.ELECTION,), phases=phases, flapping=flapping)
    assert more(trouble_in(all_trouble(store, wanted, flappers), flappers)) == says
