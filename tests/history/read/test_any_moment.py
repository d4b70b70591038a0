"""History keeps whatever times and numbers a Lease may carry, and gives them back as they were."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from leases.domain.change import ChangeType, Observation, compare
from leases.domain.kind import Kind
from leases.domain.lease import MAX_INT32
from leases.domain.steady_clock import EARLIEST, LATEST
from leases.history import export, find_changes
from leases.history.activity import Activity
from leases.history.indexed_search import HistoryFilter
from leases.history.write_batch import write_changes
from tests.support.values.changes import T0, a_change
from tests.support.values.known_changes import Known
from tests.support.values.leases import NOON, lease

pytestmark = pytest.mark.django_db(transaction=True)

ODD = [
    a_change(uid="u-0", at=EARLIEST, observed_at=T0, inferred=True, inferred_since=EARLIEST),
    a_change(1, at=LATEST, observed_at=LATEST, renewed_at=LATEST),
    a_change(2, transitions=-(2**31), missed=MAX_INT32),
    a_change(3, transitions=MAX_INT32, gap_seconds=(LATEST - EARLIEST).total_seconds()),
    a_change(4, at=EARLIEST + timedelta(microseconds=1), renewed_at=EARLIEST),
]


def test_every_moment_and_every_int32_is_kept_as_it_was():
    write_changes(ODD)
    kept = list(find_changes.oldest_first("a", HistoryFilter(), chunk=2))
    assert kept == sorted(ODD, key=lambda change: change.at)
    assert len(list(export.ndjson(kept))) == len(ODD)
    assert len(list(export.as_csv(kept))) >= len(ODD)


def test_the_hours_of_the_last_day_bear_them():
    activity = Activity()
    activity.note([msgspec.structs.replace(one, change=ChangeType.TAKEN_OVER) for one in ODD])
    assert sum(activity.of_kind(Kind.ELECTION, [ChangeType.TAKEN_OVER], T0)) <= len(ODD)
    activity.forget(T0)


def test_a_leap_of_the_counter_is_capped_at_what_a_column_holds():
    before = Known(lease=lease("a", transitions=-(2**31)))
    after = lease("b", transitions=MAX_INT32, version=2)
    (change, *_) = compare(
        "a", before, after, holder="b", kind=Kind.ELECTION, seen=Observation(now=NOON)
    )
    assert change.missed == MAX_INT32
    write_changes([change])
    (kept,) = find_changes.oldest_first("a", HistoryFilter(), chunk=2)
    assert kept.missed == MAX_INT32
