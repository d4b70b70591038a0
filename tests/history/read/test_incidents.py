"""Stored incidents are found by what they concern, and keep their story."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from leases.domain.incident import Cause, Standing
from leases.history.find_changes import BadCursor, find
from leases.history.find_incidents import (
    StoredNote,
    add_note,
    count_incidents,
    cursor_of,
    find_incidents,
    incident_of,
    incidents_called,
    losses_of,
    newest_incidents,
    notes_of,
    open_incidents,
)
from leases.history.indexed_search import HistoryFilter
from leases.history.write_batch import write_changes
from leases.models import ChangeRecord
from tests.support.values.changes import T0, a_change
from tests.support.values.incident_rows import incident_with, store

pytestmark = pytest.mark.django_db(transaction=True)

CHANGES = (
    a_change(1, writer="kube-scheduler"),
    a_change(2, namespace="keda", name="operator", holder="a\0b", previous_holder='say "it"'),
)
OTHER = a_change(9, name="cilium", holder="cp-9", previous_holder="cp-8")


@pytest.fixture
def known():
    write_changes([*CHANGES, OTHER])
    first = incident_with(*CHANGES)
    second = incident_with(
        OTHER, id="two", cause=Cause.BY_HAND, writer="kubectl-edit", ended=None, settled=False,
        began=T0 + timedelta(seconds=9), hosts=("cp-8",), worst_gap_seconds=None,
    )  # fmt: skip
    store(first, second)
    return first, second


def ids(**wanted) -> list[str]:
    return [one.incident.id for one in find_incidents("a", limit=10, **wanted)]


def test_an_incident_returns_as_it_was_stored_and_its_changes_name_it(known):
    first, second = known
    found = incident_of("a", "one")
    assert found.incident == msgspec.structs.replace(first, members=())
    assert found.changes == len(CHANGES)
    caused = [msgspec.structs.replace(c, cause=first.cause, incident="one") for c in CHANGES]
    assert list(found.story) == caused
    assert find("a", HistoryFilter(), limit=9).changes[1:] == caused[::-1]
    assert open_incidents("a") == [second]
    assert incident_of("a", "none") is None
    assert incident_of("b", "one") is None


def test_the_story_outlives_the_rows_of_its_changes(known):
    ChangeRecord.objects.all().delete()
    store(known[0], at=T0 + timedelta(hours=1))
    assert [change.at for change in incident_of("a", "one").story] == [c.at for c in CHANGES]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, ["two", "one"]),
        ({"causes": [Cause.BY_HAND, Cause.CRASH]}, ["two"]),
        ({"namespace": "keda"}, ["one"]),
        ({"namespace": "ked"}, []),
        ({"lease": "operator"}, ["one"]),
        ({"lease": "perator"}, []),
        ({"namespace": "keda", "lease": "operator"}, ["one"]),
        ({"namespace": "kube-system", "lease": "operator"}, []),
        ({"holder": "cp-8"}, ["two"]),
        ({"holder": "worker-7"}, ["one"]),
        ({"holder": ' say "it" '}, ["one"]),
        ({"holder": "a␀b"}, ["one"]),
        ({"holder": "worker"}, []),
        ({"since": T0 + timedelta(seconds=40)}, ["two", "one"]),
        ({"since": T0 + timedelta(seconds=41)}, ["two"]),
        ({"since": T0 + timedelta(days=2)}, ["two"]),
        ({"until": T0 + timedelta(seconds=9)}, ["one"]),
        ({"going_on": True}, ["two"]),
        ({"going_on": False}, ["one"]),
    ],
)
def test_incidents_are_found_newest_first_by_each_filter(known, wanted, found):
    assert ids(**wanted) == found


def test_one_that_lasted_long_is_found_by_any_part_of_its_time(known):
    store(incident_with(id="long", ended=T0 + timedelta(days=3)))
    part = {"since": T0 + timedelta(days=1), "until": T0 + timedelta(days=2)}
    assert ids(**part) == ["two", "long"]
    (newest,) = find_incidents("a", limit=1, **part)
    assert ids(before=cursor_of(newest), **part) == ["long"]
    over, on = (Cause.NODE_DOWN, False), (Cause.BY_HAND, True)
    assert count_incidents("a", **part) == {over: 1, on: 1}
    assert ids(since=T0 + timedelta(days=3)) == ["two"]


def test_pages_and_counts_cover_all_incidents(known):
    (newest,) = find_incidents("a", limit=1)
    assert ids(before=cursor_of(newest)) == ["one"]
    assert count_incidents("a") == {(Cause.NODE_DOWN, False): 1, (Cause.BY_HAND, True): 1}
    for wrong in ("x", "2026-11-20|one", f"{T0.isoformat()}|", f"{T0.isoformat()}|{'x' * 99}"):
        with pytest.raises(BadCursor):
            ids(before=wrong)


def test_an_older_account_of_an_incident_changes_nothing(known):
    first, _ = known
    newer = msgspec.structs.replace(first, cause=Cause.DRAIN, sentence="worker-7 was drained")
    store(newer, at=T0 + timedelta(seconds=5))
    store(first, at=T0 + timedelta(seconds=4))
    assert incident_of("a", "one").incident.cause is Cause.DRAIN


def test_a_withdrawn_incident_leads_to_the_one_that_has_its_changes_and_notes(known):
    _, second = known
    add_note("a", "two", who="ada", at=T0, text="I did\0it")
    store(msgspec.structs.replace(second, members=(), part_of="one"))
    store(incident_with(*CHANGES, OTHER))
    assert ids() == ["one"]
    assert incident_of("a", "two").incident.id == "one"
    assert len(incident_of("a", "one").story) == 3
    assert notes_of("a", "one") == [StoredNote("ada", T0, "I did\0it")]
    assert open_incidents("a") == []


def test_the_losses_of_an_incident_are_its_changes_alone_with_who_wrote_them(known):
    first, second = known
    found = losses_of(first)
    assert [one.member for one in found] == list(first.members)
    assert not any(one.by_person for one in found)
    assert [(one.member, one.by_person) for one in losses_of(second)] == [
        (one, True) for one in second.members
    ]


def test_incidents_in_brief_are_the_newest_ones_without_remarks_and_withdrawn_ones(known):
    first, _ = known
    store(
        incident_with(id="remark", standing=Standing.REMARK),
        incident_with(id="withdrawn", part_of="one"),
        incident_with(id="one", cluster="b", sentence="a\0b"),
    )
    (newest, older) = newest_incidents("a", 9)
    assert (newest.id, newest.cause, newest.ended) == ("two", Cause.BY_HAND, None)
    assert (older.id, older.sentence, older.began) == ("one", first.sentence, first.began)
    assert newest_incidents("a", 1) == [newest]
    assert sorted(cluster for cluster, _ in incidents_called("one", ["a", "b"], 9)) == ["a", "b"]
    ((where, one),) = incidents_called("one", ["b", "c"], 9)
    assert (where, one.sentence) == ("b", "a\0b")
    assert [one.id for _, one in incidents_called("withdrawn", ["a"], 9)] == ["withdrawn"]
