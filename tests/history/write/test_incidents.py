"""The recorder writes incidents after their changes, loses none and doubles none."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial

import msgspec
import pytest
from django.db import OperationalError

from leases.domain.change import Change, ChangeType
from leases.domain.incident import Cause, Unlisted
from leases.domain.kind import Kind
from leases.history import insert_incidents, recorder, write_queue
from leases.history.find_changes import find
from leases.history.find_incidents import find_incidents, incident_of, open_incidents
from leases.history.indexed_search import HistoryFilter
from leases.history.insert_incidents import Reviewed
from leases.history.recorder import Recorder, StateSource
from leases.history.rows import as_text
from leases.history.write_batch import let_go
from leases.history.write_queue import IncidentQueue
from leases.models import ChangeRecord, IncidentRecord, RefusedRow
from tests.support.recording import in_thread, until
from tests.support.values.batches import BEYOND
from tests.support.values.changes import T0, a_change
from tests.support.values.incident_rows import incident_with, member_of

pytestmark = pytest.mark.django_db(transaction=True)

EXPIRED, RECOVERED = ChangeType.EXPIRED, ChangeType.RECOVERED
CHANGES = tuple(a_change(number) for number in range(4))
OPEN = incident_with(*CHANGES, ended=None, settled=False)


def a_recorder() -> Recorder:
    one = Recorder()
    one.add(StateSource("a", lambda _: None, lambda: "7", lambda: T0))
    return one


@pytest.fixture
async def running():
    one = a_recorder()
    task = asyncio.create_task(one.run())
    yield one
    if not task.done():
        await one.close(task)


def causes() -> list[tuple[Cause | None, str | None]]:
    return [(one.cause, one.incident) for one in find("a", HistoryFilter(), limit=9).changes]


async def test_a_change_that_belongs_to_another_incident_by_now_leaves_the_story(running):
    running.record(cluster="a", changes=CHANGES)
    running.record_incidents("a", [Reviewed(OPEN, T0)])
    await until(lambda: causes() == [(Cause.NODE_DOWN, "one")] * 4)
    less = incident_with(*CHANGES[:3], ended=None, settled=False)
    other = incident_with(CHANGES[3], id="two", cause=Cause.CRASH)
    later = T0 + timedelta(seconds=1)
    running.record_incidents("a", [Reviewed(less, later), Reviewed(other, later)])
    await until(lambda: {one for _, one in causes()} == {"one", "two"})
    stories = [
        [one.name for one in (await in_thread(partial(incident_of, "a", number))).story]
        for number in ("one", "two")
    ]
    assert stories == [[one.name for one in CHANGES[:3]], [CHANGES[3].name]]


async def test_an_incident_is_written_after_its_changes_and_marks_them(running, monkeypatch):
    monkeypatch.setattr("leases.history.write_queue.CHANGES_PER_WRITE", 1)
    running.record(cluster="a", changes=CHANGES)
    running.record_incidents("a", [Reviewed(OPEN, T0)])
    await until(lambda: causes() == [(Cause.NODE_DOWN, "one")] * 4)
    assert len((await in_thread(lambda: incident_of("a", "one"))).story) == 4


async def test_copies_of_changes_have_a_bound_and_each_change_keeps_its_cause(running, monkeypatch):
    monkeypatch.setattr(insert_incidents, "MAX_STORY", 3)
    running.record(cluster="a", changes=CHANGES)
    running.record_incidents("a", [Reviewed(OPEN, T0)])
    await until(lambda: causes() == [(Cause.NODE_DOWN, "one")] * 4)
    found = await in_thread(lambda: incident_of("a", "one"))
    assert (found.changes, len(found.story)) == (4, 4), "history has what was not copied"
    # An earlier version kept more of them.
    monkeypatch.setattr(insert_incidents, "MAX_STORY", 2)
    again = msgspec.structs.replace(OPEN, cause=Cause.DRAIN)
    running.record_incidents("a", [Reviewed(again, T0)])
    await until(lambda: causes() == [(Cause.DRAIN, "one")] * 4)
    await in_thread(ChangeRecord.objects.all().delete)
    found = await in_thread(lambda: incident_of("a", "one"))
    assert (found.changes, len(found.story)) == (4, 3)
    assert {one.cause for one in found.story} == {Cause.DRAIN}


async def test_what_is_not_copied_of_an_old_incident_is_read_from_its_time(running, monkeypatch):
    monkeypatch.setattr(insert_incidents, "MAX_STORY", 3)
    monkeypatch.setattr("leases.history.find_incidents.MOST", 4)
    old = msgspec.structs.replace(OPEN, ended=CHANGES[-1].at)
    later = [a_change(500 + number, at=T0 + timedelta(days=1 + number)) for number in range(9)]
    running.record(cluster="a", changes=(*CHANGES, *later))
    running.record_incidents("a", [Reviewed(old, T0)])
    await until(ChangeRecord.objects.filter(incident="one").exists)
    found = await in_thread(lambda: incident_of("a", "one"))
    assert len(found.story) == 4


def test_the_copies_of_one_incident_take_less_than_400_kilobytes():
    story = tuple(("x" * 64, change) for change in CHANGES * (insert_incidents.MAX_STORY // 4))
    assert len(as_text(story)) < 400_000


async def test_a_better_cause_replaces_the_first_one_everywhere(running):
    running.record(cluster="a", changes=CHANGES)
    running.record_incidents("a", [Reviewed(OPEN, T0)])
    await until(lambda: incident_of("a", "one"))
    running.record_incidents("a", [Reviewed(msgspec.structs.replace(OPEN, cause=Cause.DRAIN), T0)])
    await until(lambda: causes() == [(Cause.DRAIN, "one")] * 4)
    assert (await in_thread(lambda: incident_of("a", "one"))).incident.cause is Cause.DRAIN


def heartbeats(change: ChangeType, seconds: range) -> list[Change]:
    hearts = {"kind": Kind.HEARTBEAT, "change": change}
    return [a_change(one, name=f"node-{one % 10}", **hearts) for one in seconds]


@pytest.mark.parametrize("how", ["live", "killed", "withdrawn"])
async def test_changes_that_are_not_listed_get_the_cause_too(how, monkeypatch):
    monkeypatch.setattr(insert_incidents, "_NEXT", insert_incidents._NEXT.replace("2000", "2"))
    lost, back = heartbeats(EXPIRED, range(10, 20)), heartbeats(RECOVERED, range(70, 80))
    other = a_change(15)
    one = a_recorder()
    one.record(cluster="a", changes=(*lost, other, *heartbeats(EXPIRED, range(90, 91))))
    unlisted = Unlisted(lost[1].at, lost[-1].at, leases=9, changes=9, without=9)
    told = incident_with(lost[0], ended=None, settled=False, unlisted=unlisted)
    if how != "live":
        first = "one" if how == "killed" else "first"
        before = msgspec.structs.replace(told, id=first, cause=Cause.CRASH)
        one.record_incidents("a", [Reviewed(before, T0)])
        await one.flush()
    if how == "killed":
        await one.in_thread(let_go)
        one = a_recorder()
        one.restore_incidents("a", await in_thread(lambda: open_incidents("a")), set())
    if how == "withdrawn":
        led = msgspec.structs.replace(before, members=(), unlisted=None, part_of="one")
        one.record_incidents("a", [Reviewed(led, T0)])
    one.record_incidents("a", [Reviewed(told, T0)])
    await one.flush()
    one.record(cluster="a", changes=tuple(back))
    rest = Unlisted(lost[1].at, back[-1].at, leases=9, changes=19, without=0)
    over = msgspec.structs.replace(told, unlisted=rest, ended=rest.until)
    one.record_incidents("a", [Reviewed(over, T0)])
    await one.flush()
    changes = (await in_thread(lambda: find("a", HistoryFilter(), limit=50))).changes
    marked = [row for row in changes if row.incident == "one" and row.cause is Cause.NODE_DOWN]
    assert len(marked) == 20
    assert [(row.kind, row.cause) for row in changes if row not in marked] == [
        (Kind.HEARTBEAT, None),  # it ran out later
        (Kind.ELECTION, None),
    ]
    (stored,) = await in_thread(lambda: find_incidents("a", limit=9))
    assert (stored.changes, stored.incident.lease_count) == (20, 10)
    await one.in_thread(let_go)


async def test_an_incident_is_settled_when_all_its_changes_are_marked(monkeypatch):
    """Else a stop amid them would leave the rest without a cause for ever."""
    monkeypatch.setattr(insert_incidents, "_NEXT", insert_incidents._NEXT.replace("2000", "2"))
    lost = heartbeats(EXPIRED, range(10, 20))
    one = a_recorder()
    one.record(cluster="a", changes=tuple(lost))
    await one.flush()
    unlisted = Unlisted(lost[1].at, lost[-1].at, leases=9, changes=9, without=0)
    told = incident_with(lost[0], ended=lost[-1].at, settled=True, unlisted=unlisted)
    queue = IncidentQueue("a")
    queue.add(Reviewed(told, T0))
    for _ in range(2):  # the process is killed then
        await in_thread(lambda: insert_incidents.write_incidents_of(queue.take()))
    assert len([one for one in await in_thread(causes) if one[0]]) < 10
    (stored,) = await in_thread(lambda: open_incidents("a"))
    assert (stored.id, stored.settled) == ("one", False)
    one.restore_incidents("a", [stored], set())
    one.record_incidents("a", [Reviewed(told, T0)])
    await one.flush()
    assert len([one for one in await in_thread(causes) if one[0]]) == 9
    assert await in_thread(lambda: open_incidents("a")) == []
    await one.in_thread(let_go)


async def test_incidents_wait_while_the_database_refuses_writes(monkeypatch, running):
    monkeypatch.setattr(recorder, "RETRY_DELAYS", (0.01,))
    write, failures = insert_incidents.write_incidents, [OperationalError("disk I/O error")] * 3

    def failing(reviewed):
        if failures:
            raise failures.pop()
        write(reviewed)

    monkeypatch.setattr(insert_incidents, "write_incidents", failing)
    running.record(cluster="a", changes=CHANGES)
    running.record_incidents("a", [Reviewed(OPEN, T0)])
    await until(lambda: incident_of("a", "one"))
    assert not failures


async def test_closing_writes_the_incidents_that_wait():
    one = a_recorder()
    task = asyncio.create_task(one.run())
    one.record(cluster="a", changes=CHANGES)
    one.record_incidents("a", [Reviewed(OPEN, T0)])
    await one.close(task)
    assert await in_thread(causes) == [(Cause.NODE_DOWN, "one")] * 4


async def test_a_refused_incident_is_set_aside_and_the_others_are_written(running):
    wrong = incident_with(CHANGES[0], id="wrong", worst_gap_seconds=BEYOND**40)
    running.record(cluster="a", changes=CHANGES)
    running.record_incidents("a", [Reviewed(wrong, T0), Reviewed(OPEN, T0)])
    await until(lambda: incident_of("a", "one"))
    assert await in_thread(lambda: RefusedRow.objects.get().what) == "incident"


async def test_two_replicas_keep_one_row_and_restore_it_with_its_members():
    for one in (a_recorder(), a_recorder()):
        task = asyncio.create_task(one.run())
        one.record(cluster="a", changes=CHANGES)
        one.record_incidents("a", [Reviewed(OPEN, T0)])
        await one.close(task)
    assert await in_thread(IncidentRecord.objects.count) == 1
    assert await in_thread(lambda: open_incidents("a")) == [OPEN]


async def test_replicas_that_begin_an_incident_with_different_changes_keep_one_row():
    other = msgspec.structs.replace(OPEN, id="two", members=OPEN.members[::-1])
    ended = msgspec.structs.replace(other, ended=T0 + timedelta(seconds=9))
    first, second = a_recorder(), a_recorder()
    for one, told in ((first, OPEN), (second, other), (second, ended)):
        one.record(cluster="a", changes=CHANGES)
        one.record_incidents("a", [Reviewed(told, T0)])
        await one.flush()
    assert await in_thread(causes) == [(Cause.NODE_DOWN, "one")] * 4
    (found,) = await in_thread(lambda: find_incidents("a", limit=9))
    assert (found.incident.id, found.incident.ended) == ("one", ended.ended)
    assert (await in_thread(lambda: incident_of("a", "two"))).incident.id == "one"
    # The first one told "one" itself, so its "four" is another incident.
    second.record_incidents("a", [Reviewed(incident_with(*CHANGES, id="three"), T0)])
    first.record_incidents("a", [Reviewed(incident_with(*CHANGES, id="four"), T0)])
    for one in (second, first):
        await one.flush()
        await one.in_thread(let_go)
    found = await in_thread(lambda: find_incidents("a", limit=9))
    assert {one.incident.id for one in found} == {"one", "four"}


async def test_a_change_keeps_a_cause_of_its_own_when_that_of_its_incident_is_known_better():
    own = ((member_of(CHANGES[2]), Cause.BY_HAND),)
    told = msgspec.structs.replace(OPEN, own_causes=own)
    one = a_recorder()
    one.record(cluster="a", changes=CHANGES)
    one.record_incidents("a", [Reviewed(told, T0)])
    await one.flush()
    assert await in_thread(lambda: open_incidents("a")) == [told]
    expected = [Cause.NODE_DOWN, Cause.BY_HAND, Cause.NODE_DOWN, Cause.NODE_DOWN]
    assert [cause for cause, _ in await in_thread(causes)] == expected
    one.record_incidents("a", [Reviewed(msgspec.structs.replace(told, cause=Cause.DRAIN), T0)])
    await one.flush()
    await one.in_thread(let_go)
    expected = [Cause.DRAIN, Cause.BY_HAND, Cause.DRAIN, Cause.DRAIN]
    assert [cause for cause, _ in await in_thread(causes)] == expected


def test_only_what_is_new_is_marked_again_and_large_incidents_go_in_parts(monkeypatch):
    monkeypatch.setattr(write_queue, "MARKS_PER_WRITE", 3)
    queue = IncidentQueue("a")
    queue.restore([incident_with(*CHANGES[:2], ended=None)], set())
    queue.add(Reviewed(OPEN, T0))
    assert [mark.member for mark in queue.take().marks] == [*map(member_of, CHANGES[2:])]
    queue.restore([incident_with(*CHANGES, ended=None)], {member_of(CHANGES[3])})
    assert [mark.member for mark in queue.take().marks] == [member_of(CHANGES[3])]
    queue.add(Reviewed(msgspec.structs.replace(OPEN, cause=Cause.DRAIN), T0))
    first, second = queue.take(), queue.take()
    assert (len(first.reviewed), len(first.marks)) == (1, 3)
    assert (len(second.reviewed), len(second.marks)) == (0, 1)
    assert queue.take() is None


OVER = msgspec.structs.replace(OPEN, ended=T0 + timedelta(seconds=9))
SETTLED = msgspec.structs.replace(OVER, settled=True)
LATER = T0 + timedelta(seconds=120)


def rows() -> list[tuple[object, ...]]:
    found = IncidentRecord.objects.order_by("pk")
    return list(found.values_list("incident", "settled", "members", "updated_at"))


async def test_an_incident_that_only_settles_keeps_all_but_its_members(monkeypatch):
    one = a_recorder()
    one.record(cluster="a", changes=CHANGES)
    one.record_incidents("a", [Reviewed(OVER, T0)])
    await one.flush()
    known = await in_thread(lambda: incident_of("a", "one"))
    # Its story is not read and written again: in a storm that would be half of all writing.
    monkeypatch.setattr(insert_incidents, "write_incidents", lambda _: pytest.fail("written"))
    one.record_incidents("a", [Reviewed(SETTLED, LATER)])
    await one.flush()
    assert await in_thread(rows) == [("one", True, "[]", LATER)]
    found = await in_thread(lambda: incident_of("a", "one"))
    assert (found.story, len(found.story)) == (known.story, 4)
    assert found.incident == msgspec.structs.replace(known.incident, settled=True)
    await one.in_thread(let_go)


async def test_what_another_replica_knows_better_stays():
    first, second = a_recorder(), a_recorder()
    for one in (first, second):
        one.record(cluster="a", changes=CHANGES)
        one.record_incidents("a", [Reviewed(OVER, T0)])
        await one.flush()
    newer = msgspec.structs.replace(OPEN, cause=Cause.DRAIN)
    second.record_incidents("a", [Reviewed(newer, LATER + timedelta(seconds=1))])
    first.record_incidents("a", [Reviewed(SETTLED, LATER)])
    for one in (second, first):
        await one.flush()
        await one.in_thread(let_go)
    assert [row[1] for row in await in_thread(rows)] == [False]


async def test_an_incident_of_another_replica_settles_under_its_id():
    other = msgspec.structs.replace(OVER, id="two", members=OPEN.members[::-1])
    first, second = a_recorder(), a_recorder()
    told = [(first, OVER, T0), (second, other, T0)]
    told.append((second, msgspec.structs.replace(other, settled=True), LATER))
    for one, incident, at in told:
        one.record(cluster="a", changes=CHANGES)
        one.record_incidents("a", [Reviewed(incident, at)])
        await one.flush()
    assert [row[:2] for row in await in_thread(rows) if row[0] == "one"] == [("one", True)]
    for one in (first, second):
        await one.in_thread(let_go)


def test_one_that_changed_and_settled_before_it_was_written_is_written_whole():
    queue = IncidentQueue("a")
    queue.add(Reviewed(OVER, T0))
    queue.add(Reviewed(SETTLED, LATER))
    batch = queue.take()
    assert ([one.incident for one in batch.reviewed], batch.settled) == ([SETTLED], ())
    queue.add(Reviewed(OVER, T0))
    queue.take()
    queue.add(Reviewed(SETTLED, LATER))
    queue.add(Reviewed(msgspec.structs.replace(SETTLED, cause=Cause.DRAIN), LATER))
    batch = queue.take()
    assert ([one.incident.cause for one in batch.reviewed], batch.settled) == ([Cause.DRAIN], ())
    assert len(batch.marks) == 4


def test_of_incidents_that_are_over_the_newest_ids_are_known_and_all_while_they_wait(monkeypatch):
    monkeypatch.setattr(write_queue, "OVER", 3)
    queue = IncidentQueue("a")
    queue.add(Reviewed(OPEN, T0))
    over = [msgspec.structs.replace(SETTLED, id=f"over-{number}") for number in range(10)]
    for one in over[:9]:
        queue.add(Reviewed(one, T0))
    assert len(queue.take().own) == 10
    assert queue.take() is None
    queue.add(Reviewed(over[6], LATER))
    queue.add(Reviewed(over[9], LATER))
    assert queue.take().own == {"one", "over-6", "over-7", "over-8", "over-9"}
    assert queue.take() is None
    queue.add(Reviewed(msgspec.structs.replace(OPEN, cause=Cause.DRAIN), LATER))
    assert queue.take().own == {"one", "over-6", "over-8", "over-9"}


async def test_an_incident_waits_for_the_changes_that_came_while_others_were_written(
    running, monkeypatch
):
    """Its changes are queued while the writer is busy: it must not be written before them."""
    loop, write, called = asyncio.get_running_loop(), recorder.write_what_fits, []

    def busy(batch):
        if not called:
            called.append(True)
            more = asyncio.run_coroutine_threadsafe(_report_more(), loop)
            more.result(timeout=30)
        return write(batch)

    async def _report_more():
        running.record(cluster="a", changes=CHANGES[1:])
        running.record_incidents("a", [Reviewed(OPEN, T0)])

    monkeypatch.setattr(recorder, "write_what_fits", busy)
    running.record(cluster="a", changes=CHANGES[:1])
    await until(lambda: causes() == [(Cause.NODE_DOWN, "one")] * 4)
