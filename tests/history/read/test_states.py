"""How Leases stood at an instant, and their lanes over a range."""

from __future__ import annotations

from datetime import timedelta

import pytest

from leases import models
from leases.domain.change import ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.terms import PastPhase, as_of, fold
from leases.history import timeline_lanes as lanes_module
from leases.history.states_as_of import gone_since, states_at
from leases.history.timeline_lanes import LaneTotals, lanes, totals
from tests.support.values.change_rows import to_row
from tests.support.values.changes import T0, a_change

pytestmark = pytest.mark.django_db

SCHEDULER = ObjectName("kube-system", "scheduler")
WORKER = ObjectName("jobs", "worker")
GONE = ObjectName("jobs", "gone")
NAMES = (SCHEDULER, WORKER, GONE)


def keep(*changes):
    models.ChangeRecord.objects.bulk_create([to_row(change) for change in changes])


def change_at(key, seconds, word, holder, **given):
    change = ChangeType(word)
    names = {"holder": holder, "previous_holder": None}
    if change in (ChangeType.RELEASED, ChangeType.DELETED):
        names = {"holder": None, "previous_holder": holder}
    return a_change(
        seconds, namespace=key.namespace, name=key.name, change=change, **(names | given)
    )


STORY = (
    change_at(SCHEDULER, 0, "created", "a"),
    change_at(SCHEDULER, 10, "expired", "a"),
    change_at(SCHEDULER, 12, "recovered", "a"),
    change_at(SCHEDULER, 14, "reconfigured", "a"),
    change_at(SCHEDULER, 20, "expired", "a"),
    change_at(SCHEDULER, 25, "taken_over", "b", gap_seconds=5.0),
    change_at(WORKER, 5, "created", None),
    change_at(WORKER, 8, "acquired", "w"),
    change_at(WORKER, 30, "released", "w"),
    change_at(GONE, 1, "created", "g"),
    change_at(GONE, 15, "deleted", "g"),
)


def at(seconds):
    return T0 + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-1, {}),
        (1, {SCHEDULER: ("held", "a", 0), GONE: ("held", "g", 1)}),
        (11, {SCHEDULER: ("expired", "a", 10), WORKER: ("held", "w", 8), GONE: ("held", "g", 1)}),
        (14, {SCHEDULER: ("held", "a", 0), WORKER: ("held", "w", 8), GONE: ("held", "g", 1)}),
        (15, {SCHEDULER: ("held", "a", 0), WORKER: ("held", "w", 8)}),
        (40, {SCHEDULER: ("held", "b", 25), WORKER: ("vacant", None, 30)}),
    ],
)
def test_states_at_an_instant(seconds, expected):
    keep(*STORY)
    found = {
        state.key: (state.standing.phase, state.standing.holder, state.standing.since)
        for state in states_at("a", NAMES, at(seconds))
    }
    assert found == {
        key: (PastPhase(phase), holder, at(since))
        for key, (phase, holder, since) in expected.items()
    }


def test_states_agree_with_a_fold_of_everything():
    keep(*STORY)
    for key in NAMES:
        mine = [c for c in STORY if (c.namespace, c.name) == (key.namespace, key.name)]
        for tenth in range(-5, 400):
            instant = at(tenth / 10)
            whole = as_of(fold(mine), instant)
            (state,) = states_at("a", [key], instant) or [None]
            assert (state is not None) == whole.exists
            if state is not None:
                found = state.standing
                assert (found.phase, found.holder, found.since) == (
                    whole.phase,
                    whole.holder,
                    whole.since,
                )


def test_names_deleted_after_an_instant_were_there_then():
    keep(*STORY, change_at(WORKER, 50, "deleted", None, kind=Kind.LOCK))
    assert gone_since("a", at(2)) == {GONE, WORKER}
    assert gone_since("a", at(2), [Kind.ELECTION]) == {GONE}
    assert gone_since("a", at(15), [Kind.ELECTION]) == set()


def test_a_lane_begins_with_the_term_that_went_on_at_the_start():
    keep(*STORY)
    first, second = lanes("a", [SCHEDULER, WORKER], since=at(13), until=at(60))
    assert (first.changes, second.changes) == (3, 1)
    assert [(t.holder, t.since, t.until) for t in first.life.terms] == [
        ("a", at(0), at(20)),
        ("b", at(25), None),
    ]
    assert [mark.change for mark in first.life.reconfigurations] == [ChangeType.RECONFIGURED]
    assert [(t.holder, t.since, t.until) for t in second.life.terms] == [("w", at(8), at(30))]


def test_a_lane_of_what_was_not_there_yet_is_left_out():
    keep(*STORY)
    assert lanes("a", [WORKER], since=at(-50), until=at(4)) == []


def test_a_busy_lane_is_drawn_as_bands_with_counts(monkeypatch):
    monkeypatch.setattr(lanes_module, "MIN_CHANGES", 10)
    monkeypatch.setattr(lanes_module, "CHANGES", 10)
    holders = [f"h-{n}" for n in range(300)]
    keep(*(change_at(SCHEDULER, n, "replaced", holder) for n, holder in enumerate(holders)))
    (lane,) = lanes("a", [SCHEDULER], since=at(-1), until=at(299))
    assert lane.changes == 300
    assert sum(band.changes for band in lane.bands) == 300
    assert len(lane.life.terms) <= 2 * lanes_module.MAX_PIECES
    for band in lane.bands:
        last = int((band.until - T0).total_seconds())
        assert as_of(lane.life, band.until).holder == holders[last]


def test_changes_of_many_lanes_are_read_in_few_statements(
    monkeypatch, django_assert_max_num_queries
):
    monkeypatch.setattr(lanes_module, "AT_A_TIME", 30)
    keys = [ObjectName("jobs", f"worker-{number:02}") for number in range(20)]
    keep(*(change_at(key, n, "replaced", f"{key.name}-{n}") for key in keys for n in range(6)))
    with django_assert_max_num_queries(8):
        found = lanes("a", keys, since=at(1), until=at(60))
    assert [lane.key for lane in found] == keys
    for lane in found:
        holders = [term.holder for term in lane.life.terms]
        assert (lane.changes, holders) == (4, [f"{lane.key.name}-{n}" for n in range(1, 6)])


def test_tallies_count_what_came_to_a_holder_and_how_long_nobody_held():
    keep(*STORY)
    found = totals("a", [Kind.ELECTION], since=at(0), until=at(60))
    assert found[SCHEDULER] == LaneTotals(handovers=1, leaderless=5.0 + 1.5)
    assert found[WORKER].handovers == 1
    assert GONE not in found


def test_tallies_have_what_lost_its_holder_in_the_range_and_was_not_taken_again():
    keep(
        *STORY,
        change_at(GONE, 40, "created", "g", uid="v"),
        change_at(GONE, 45, "expired", "g", uid="v"),
        change_at(SCHEDULER, 70, "released", "b"),
    )
    span = {"since": at(28), "until": at(60)}
    assert totals("a", [Kind.ELECTION], **span) == {WORKER: LaneTotals(), GONE: LaneTotals()}
    assert totals("a", [Kind.HEARTBEAT], **span) == {}
    assert totals("b", [Kind.ELECTION], **span) == {}
    before = totals("a", [Kind.ELECTION], since=at(10), until=at(20))
    assert before == {SCHEDULER: LaneTotals(leaderless=1.5)}


def test_tallies_of_lost_holders_have_the_newest_of_each_way_to_lose_one(monkeypatch):
    monkeypatch.setattr(lanes_module, "TALLIED", 2)
    keep(
        change_at(GONE, 1, "released", "g"),
        change_at(SCHEDULER, 2, "expired", "a"),
        change_at(WORKER, 3, "released", "w"),
        change_at(WORKER, 4, "released", "w"),
    )
    found = totals("a", [Kind.ELECTION], since=at(0), until=at(60))
    assert found == {SCHEDULER: LaneTotals(), WORKER: LaneTotals()}
