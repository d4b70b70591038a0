"""Who held what, made from the changes that are stored with an incident."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from dashboard.pages.incidents.evidence import MAX_LANES, affected_leases, lane_chart
from leases import models
from leases.domain.change import ChangeType
from leases.domain.lease import ObjectName
from tests.support.values.change_rows import to_row
from tests.support.values.changes import T0, a_change
from tests.support.values.incidents import BEAT, KEDA, SCHEDULER, a_story, an_incident

pytestmark = pytest.mark.django_db
LATER = T0 + timedelta(minutes=5)


def test_each_lease_has_its_holders_and_its_time_without_one():
    found = affected_leases(an_incident(), a_story(), LATER)
    assert [(one.key, one.before, one.after, one.lost) for one in found] == [
        (SCHEDULER, "cp-1", "cp-2", 16.0),
        (KEDA, "keda-1", "keda-2", 2.0),
        (BEAT, "worker-7", None, 1.0),
    ]
    assert [one.open for one in found] == [False, False, True]


def test_an_open_gap_of_an_incident_that_goes_on_lasts_until_now():
    found = affected_leases(an_incident(ended=None), a_story(), LATER)
    assert (found[0].key, found[0].lost) == (BEAT, 260.0)


def test_a_lease_without_stored_changes_is_named_all_the_same():
    other = ObjectName("default", "other")
    found = affected_leases(an_incident(leases=(KEDA, other)), a_story()[:2], LATER)
    assert [(one.key, bool(one.changes)) for one in found] == [(KEDA, True), (other, False)]


def test_a_lane_shows_the_term_before_the_gap_and_the_next_holder():
    chart = lane_chart(an_incident(), affected_leases(an_incident(), a_story(), LATER), LATER)
    lane = chart["lanes"][0]
    assert lane["key"] == str(SCHEDULER)
    assert [(one.what, one.holder and one.holder.identity) for one in lane["shapes"]] == [
        ("term", "cp-1"),
        ("gap", None),
        ("term", "cp-2"),
    ]
    first, gap, _ = lane["shapes"]
    assert (first.until, gap.since) == (gap.since, (T0 + timedelta(seconds=15)).timestamp())
    assert lane["as_of"]["holder"].identity == "cp-2"
    assert chart["lanes"][2]["as_of"]["word"] == "no holder"
    assert chart["x"] > 0
    assert chart["x"] + chart["width"] < 100
    assert not chart["cut"]


def test_of_a_long_incident_the_lanes_show_the_beginning():
    """Seven hours later its half minute of changes would be too narrow to see."""
    later = T0 + timedelta(hours=7)
    one = an_incident(ended=later)
    chart = lane_chart(one, affected_leases(one, a_story(), later), later)
    assert chart["scale"].length < timedelta(minutes=4)
    assert chart["cut"]


def test_of_an_incident_that_goes_on_the_lanes_reach_to_now():
    later = T0 + timedelta(hours=7)
    one = an_incident(ended=None)
    chart = lane_chart(one, affected_leases(one, a_story(), later), later)
    assert (chart["scale"].until, chart["cut"]) == (later, False)
    assert chart["scale"].since < T0
    assert chart["length"] == "7 h 50 m"
    assert chart["x"] + chart["width"] == 100


def test_an_incident_of_an_instant_has_a_stretch_that_the_timeline_can_show():
    one = an_incident(ended=T0)
    story = [msgspec.structs.replace(change, at=T0) for change in a_story()[:1]]
    chart = lane_chart(one, affected_leases(one, story, T0), T0)
    assert chart["scale"].length >= timedelta(seconds=10)


def test_an_incident_of_thousands_of_leases_has_few_lanes():
    keys = tuple(ObjectName("default", f"lease-{number:04}") for number in range(3000))
    story = [a_change(number, namespace="default", name=key.name) for number, key in
             enumerate(keys[:1000])]  # fmt: skip
    affected = affected_leases(an_incident(leases=keys), story, LATER)
    chart = lane_chart(an_incident(leases=keys), affected, LATER)
    assert len(chart["lanes"]) == MAX_LANES
    assert chart["more"] == 3000 - MAX_LANES


def test_the_lanes_have_what_other_incidents_know_of_the_same_lease():
    """Of the losses of one Lease, this incident has the first and the last alone."""
    moments = [("created", "a"), ("expired", "a"), ("taken_over", "b"), ("expired", "b"),
               ("taken_over", "a"), ("expired", "a"), ("taken_over", "b")]  # fmt: skip
    story = [
        a_change(
            10 * n, change=ChangeType(change), name=KEDA.name, namespace=KEDA.namespace,
            holder=holder, previous_holder="b" if holder == "a" else "a",
        )
        for n, (change, holder) in enumerate(moments)
    ]  # fmt: skip
    models.ChangeRecord.objects.bulk_create([to_row(change) for change in story])
    own = [story[1], story[6]]
    incident = an_incident(leases=(KEDA,), began=own[0].at, ended=own[-1].at)
    (lane,) = lane_chart(incident, affected_leases(incident, own, LATER), LATER)["lanes"]
    assert [one.holder and one.holder.identity for one in lane["shapes"]] == [
        "a", None, "b", None, "a", None, "b",
    ]  # fmt: skip
