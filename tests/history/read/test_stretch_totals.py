"""The changes of each Lease in a stretch of time are counted, and those of a cause are found."""

from __future__ import annotations

from datetime import timedelta

import pytest

from leases.domain.change import ChangeType
from leases.domain.incident import Cause
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.history.change_counts import stretch_totals
from leases.history.find_changes import find
from leases.history.indexed_search import HistoryFilter
from leases.history.write_batch import write_changes
from tests.support.values.changes import T0, a_change
from tests.support.values.incident_rows import incident_with, store

pytestmark = pytest.mark.django_db
SCHEDULER, BEAT = ObjectName("kube-system", "scheduler"), ObjectName("kube-node-lease", "worker-7")


def test_a_lease_is_counted_within_the_stretch_alone():
    lost = {"change": ChangeType.EXPIRED, "gap_seconds": None}
    beat = {"namespace": BEAT.namespace, "name": BEAT.name, "kind": Kind.HEARTBEAT}
    write_changes([
        a_change(-50, **lost),
        a_change(10, gap_seconds=60.0),  # 10 s of it lie in the stretch
        a_change(20, gap_seconds=1.5, holder="cp-3"),
        a_change(40, **lost, **beat),  # up to the end
        a_change(30, name="calm", gap_seconds=None),
        a_change(200),
    ])  # fmt: skip
    found = stretch_totals("a", (), since=T0, until=T0 + timedelta(seconds=100))
    totals = {one.key: one for one in found.leases}
    assert found.counted_from is None
    assert (totals[SCHEDULER].changes, totals[SCHEDULER].handovers) == (2, 2)
    assert totals[SCHEDULER].gap_seconds == pytest.approx(11.5, abs=0.01)
    assert totals[ObjectName("kube-system", "calm")].gap_seconds == 0.0, "not the whole stretch"
    assert totals[BEAT].gap_seconds == pytest.approx(60.0, abs=0.01)
    assert [one.kind for one in (totals[SCHEDULER], totals[BEAT])] == ["election", "heartbeat"]
    span = {"since": T0, "until": T0 + timedelta(seconds=100)}
    assert len(stretch_totals("a", (Kind.HEARTBEAT,), **span).leases) == 1


def test_changes_are_found_by_several_causes():
    crash, hand, other = (a_change(number) for number in range(3))
    write_changes([crash, hand, other])
    store(incident_with(crash, id="crash", cause=Cause.CRASH))
    store(incident_with(hand, id="hand", cause=Cause.BY_HAND))
    found = find("a", HistoryFilter(cause=("crash", "by_hand")), limit=10)
    assert [change.incident for change in found.changes] == ["hand", "crash"]
    assert (found.total, found.exact) == (2, True)


def test_what_nobody_watched_is_not_counted_in_a_stretch():
    write_changes([a_change(second) for second in (10, 20, 30, 40)])
    end = T0 + timedelta(seconds=100)
    blind = [(T0 + timedelta(seconds=15), T0 + timedelta(seconds=30))]
    (found,) = stretch_totals("a", (), since=T0, until=end, blind=blind).leases
    assert (found.changes, found.handovers) == (2, 2)
