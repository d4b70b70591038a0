"""The casebook: which changes become incidents, how often it asks, and what a restart keeps."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from leases.domain.cause import casebook
from leases.domain.cause.casebook import Casebook
from leases.domain.cause.clue import (
    ZIPPED_TOGETHER,
    Clue,
    Episode,
    LateWriter,
    packed,
    unpacked,
    zipped,
)
from leases.domain.cause.facts import (
    EventFact,
    Fact,
    Knowledge,
    NodeFact,
    PodFact,
    Question,
    RefusedSource,
)
from leases.domain.cause.flapping import taken_over
from leases.domain.cause.going_on import SETTLED_AFTER, so_far
from leases.domain.cause.inquiry import Inquiries
from leases.domain.cause.scene import Scene, Verdict
from leases.domain.change import ChangeType
from leases.domain.incident import Cause, Confidence, Incident, Member, Source, Standing
from leases.domain.kind import Kind
from leases.domain.lease import Lease, ObjectName
from leases.domain.watched_times import Connection, ConnectionState, MissedTime, Missing
from leases.tracking.store import Store
from leases.wire.watch_decoding import Applied, Deleted, Listed
from tests.support.pauses import Answers
from tests.support.values.changes import a_change
from tests.support.values.leases import NOON, after, lease

POD = "app-6bcjktn59v-q89c7"
OTHER = "app-6bcjktn59v-z7xkd"


def clues(
    *writes: tuple[float, Lease | Deleted | None], first: tuple[Lease, ...] = ()
) -> list[Clue]:
    """What the store tells of these writes; None: only the clock went on."""
    store = Store("c")
    store.replace(Listed(first or (lease(POD),), "1"), NOON)
    found: list[Clue] = []
    for seconds, written in writes:
        at = after(seconds)
        event = Applied(written) if isinstance(written, Lease) else written
        update = store.turn(at) if event is None else store.follow([event], at)
        found += update.clues if update is not None else ()
    return found


def stopped() -> list[Clue]:
    return clues(
        (2, lease(POD, renewed=2, version=2)),
        (4, lease("", renewed=4, acquired=4, duration=1, version=3)),
        (5, lease(OTHER, renewed=5, acquired=5, transitions=1, version=4)),
    )


def told(book: Casebook, seconds: float) -> dict[str, Incident]:
    found = {}
    for step in range(int(seconds)):
        found |= {one.id: one for one in book.review(after(step))}
    return found


def test_a_break_of_the_watch_changes_what_happened_in_it_alone() -> None:
    book = Casebook("c")
    before = clues((18, None))
    (during,) = clues((14, lease(POD, renewed=14, version=2)), (40, None))
    during = replace(during, change=replace(during.change, name="other"))
    for clue in (*before, during):
        book.note(clue)
    causes = [one.cause for one in told(book, 60).values()]
    assert len(causes) == 2
    assert Cause.API_OUTAGE not in causes
    book.watch(Connection(state=ConnectionState.STALE, since=after(16)), after(60))
    now = {one.leases[0].name: one for one in book.review(after(61))}
    assert now["other"].cause is Cause.API_OUTAGE
    assert now["controller"].cause in causes
    assert now["controller"].worst_gap_seconds == 1.0  # nobody watched the rest


def test_a_release_and_what_ends_its_gap_are_one_incident_told_once() -> None:
    book = Casebook("c")
    for clue in stopped():
        book.note(clue)
    (incident,) = told(book, 60).values()
    assert (incident.cause, incident.confidence) == (Cause.GRACEFUL_STOP, Confidence.POSSIBLE)
    assert [str(member.lease) for member in incident.members] == ["default/controller"] * 2
    assert (incident.began, incident.ended) == (after(4), after(5))
    assert incident.worst_gap_seconds == 1.0
    assert book.review(after(61)) == []
    assert (due := book.next_review(after(61))) is not None
    assert due > after(120)
    (settled,) = book.review(after(125))
    assert settled == Incident(**_fields(incident) | {"settled": True})
    assert book.next_review(after(200)) is None


def test_an_incident_is_over_when_its_lease_is_deleted() -> None:
    book = Casebook("c")
    for clue in clues((20, None), (30, Deleted(lease(POD, version=2)))):
        book.note(clue)
    (incident,) = told(book, 40).values()
    assert incident.ended == after(30)
    assert not book.going_on()
    told(book, 200)
    assert not book.going_on()


def test_who_looks_only_when_it_is_due_misses_nothing() -> None:
    every, due = Casebook("c"), Casebook("c")
    looks = 0
    for clue in clues((18, None)):
        every.note(clue)
        due.note(clue)
    for second in range(18, 300):
        now = after(second)
        expected = every.review(now), every.questions(now)
        look = due.next_look(now)
        if look is None or look > now:
            assert expected == ([], [])
            continue
        looks += 1
        assert (due.review(now), due.questions(now)) == expected
    assert looks < 30


def test_many_nodes_that_die_at_once_are_one_incident_with_few_questions() -> None:
    def heartbeat(number: int, renewed: float = 0, version: int = 1) -> Lease:
        return lease(
            f"n-{number}", name=f"n-{number}", uid=f"u-{number}", namespace="kube-node-lease",
            acquired=None, transitions=None, duration=40, owner=("Node", f"n-{number}"),
            renewed=renewed, version=version,
        )  # fmt: skip

    nodes = range(300)
    store, book = Store("c"), Casebook("c")
    store.replace(Listed(tuple(heartbeat(number) for number in nodes), "1"), NOON)
    for number in nodes:
        at = 10 + number / 50
        store.follow([Applied(heartbeat(number, at, number + 2))], after(at))
    asked, found = 0, {}
    for step in range(40, 240):
        now = after(step)
        update = store.turn(now)
        for clue in update.clues if update is not None else ():
            book.note(clue)
        questions = book.questions(now)
        asked += len(questions)
        book.learn([NodeFact(name=one.key.name, read_at=now, ready="Unknown") for one in questions])
        found |= {one.id: one for one in book.review(now)}
    incidents = [one for one in found.values() if one.members]
    assert [(one.cause, len(one.members)) for one in incidents] == [(Cause.NODE_DOWN, 300)]
    assert asked <= 50


def test_a_node_that_comes_back_is_asked_again_for_what_ran_there() -> None:
    def heartbeat(renewed: float, version: int) -> Lease:
        return lease(
            "n-1", name="n-1", uid="u-1", namespace="kube-node-lease", acquired=None,
            transitions=None, duration=40, owner=("Node", "n-1"), renewed=renewed, version=version,
        )  # fmt: skip

    def asked(since: int, until: int) -> set[int]:
        """When it asked for the Pod."""
        found = set()
        for step in range(since, until):
            book.review(after(step))
            questions = book.questions(after(step))
            found |= {step for question in questions if question.key.name == POD}
        return found

    first = (lease(POD), heartbeat(0, 1))
    lost, silent, back = clues((20, None), (45, None), (130, heartbeat(130, 2)), first=first)
    book = Casebook("c")
    book.note(lost)
    key = ObjectName("default", POD)
    book.learn([PodFact(key=key, read_at=after(21), phase="Running", uid="u", node="n-1")])
    assert asked(20, 45)
    book.note(silent)
    asked(45, 125)
    assert not asked(125, 130)
    book.note(back)
    assert asked(130, 132)


def test_a_refused_source_is_left_alone_for_a_while_and_named_where_it_was_refused() -> None:
    def asked(book: Casebook, *, begins: float) -> set[Source]:
        first = (lease(POD, renewed=begins),)
        for clue in clues((begins + 20, None), first=first):
            book.note(clue)
        return {one.source for one in book.questions(after(begins + 21))}

    book, elsewhere = Casebook("c"), Casebook("c")
    book.learn([RefusedSource(Source.PODS, NOON, "no", "default")])
    elsewhere.learn([RefusedSource(Source.PODS, NOON, "no", "other")])
    assert Source.PODS not in asked(book, begins=0)
    assert Source.PODS in asked(elsewhere, begins=0)
    (incident,) = told(book, 30).values()
    assert incident.without == (Source.PODS,)
    (incident,) = told(elsewhere, 30).values()
    assert incident.without == ()

    known = Casebook("c")
    for clue in clues((20, None)):
        known.note(clue)
    (incident,) = told(known, 30).values()
    known.learn([RefusedSource(Source.PODS, after(29), "no", "default")])
    (incident,) = known.review(after(30))
    assert incident.without == (Source.PODS,)

    later = Casebook("c")
    later.learn([RefusedSource(Source.PODS, NOON, "no", "default")])
    assert Source.PODS in asked(later, begins=600)


def test_an_api_server_that_announces_itself_anew_was_not_deleted_by_hand() -> None:
    name = "apiserver-ata7lttrydg7cjnrk772vouch2"
    labels = {"apiserver.kubernetes.io/identity": "kube-apiserver"}
    before, again = (
        lease(
            f"{name}_{number:08}-1e4a-4ce8-92f4-98d29928ba40", name=name, uid=f"u-{number}",
            namespace="kube-system", labels=labels, acquired=None, transitions=None,
            duration=3600, renewed=number, version=number + 1,
        )
        for number in (8, 9)
    )  # fmt: skip
    store, book = Store("c"), Casebook("c")
    store.replace(Listed((before,), "1"), NOON)
    for event in (Deleted(before), Applied(again)):
        update = store.follow([event], after(9))
        for clue in update.clues if update is not None else ():
            # One read of the watch brings both: they have one moment.
            book.note(replace(clue, change=replace(clue.change, at=after(9))))
    (incident,) = told(book, 60).values()
    assert (incident.cause, incident.confidence) == (Cause.RESTART_IN_PLACE, Confidence.LIKELY)


def test_a_lock_that_is_given_back_is_no_incident() -> None:
    lock = lease(POD, name="lock-tfstate-default-x", duration=None, renewed=None, transitions=None)
    freed = lease(
        "", name="lock-tfstate-default-x", duration=None, renewed=None, acquired=None,
        transitions=None, version=2,
    )  # fmt: skip
    book = Casebook("c")
    (release,) = clues((5, freed), first=(lock,))
    book.note(release)
    assert told(book, 160) == {}


def test_two_crashes_by_chance_in_one_minute_are_two_incidents() -> None:
    first = (lease(POD), lease("b-6bcjktn59v-q89c7", name="other", uid="o", renewed=3))
    book = Casebook("c")
    for clue in clues((20, None), first=first):
        book.note(clue)
    incidents = told(book, 160).values()
    assert [len(one.leases) for one in incidents] == [1, 1]
    assert all(one.confidence is Confidence.POSSIBLE and one.ended is None for one in incidents)


def test_after_a_restart_an_incident_goes_on_under_its_id() -> None:
    silent = clues((20, None))
    before, later = Casebook("c"), Casebook("c")
    before.note(silent[0])
    (stored,) = told(before, 30).values()
    assert stored.ended is None
    later.restore([stored])
    assert later.going_on() == [stored]
    again = lease(OTHER, renewed=33, acquired=33, transitions=1, version=2)
    for clue in clues((20, None), (33, again))[1:]:
        later.note(clue)
    (ended,) = later.review(after(34))
    assert (ended.id, ended.ended, len(ended.members)) == (stored.id, after(33), 2)
    assert later.going_on() == []


def test_a_change_that_is_told_again_after_a_restart_counts_once() -> None:
    (silent,) = clues((20, None))
    before, later = Casebook("c"), Casebook("c")
    before.note(silent)
    (stored,) = told(before, 30).values()
    later.restore([stored])
    later.note(silent)
    (known,) = later.going_on()
    assert known.members == stored.members


def grows(book: Casebook, since: int, until: int) -> list[tuple[int, float]]:
    """When the book told how long nobody held a Lease, and how long."""
    reviews = ((step, one) for step in range(since, until) for one in book.review(after(step)))
    return [(step, one.worst_gap_seconds or 0.0) for step, one in reviews]


def expired_at_15(**other: object) -> list[Clue]:
    """A Lease that runs out 15 s after noon, and how that ends."""
    return clues((15, None), (200, lease(OTHER, renewed=200, acquired=200, version=2)), **other)


def test_a_gap_that_goes_on_counts_and_is_told_again_once_it_is_long() -> None:
    book = Casebook("c")
    expired, taken = expired_at_15()
    book.note(expired)
    told = grows(book, 15, 190)
    first_long = next(step for step, gap in told if gap >= 30)
    assert first_long == 45
    assert [step for step, _ in told if step < 120] == [17, 45]
    (going_on,) = book.going_on()
    assert going_on.unheld_since == after(15)
    assert so_far(going_on, after(190), ()).worst_gap_seconds == 175
    book.note(taken)
    (over,) = book.review(after(201))
    assert (over.worst_gap_seconds, over.unheld_since) == (185, None)


@pytest.mark.parametrize("state", [ConnectionState.STALE, ConnectionState.REFUSED])
def test_what_nobody_watched_of_a_gap_that_goes_on_makes_it_no_longer(
    state: ConnectionState,
) -> None:
    book = Casebook("c")
    book.note(expired_at_15()[0])
    assert grows(book, 15, 25) == [(17, 2)]
    book.watch(Connection(state=state, since=after(25)), after(25))
    assert all(gap == 10 for _, gap in grows(book, 25, 100))
    book.missed(MissedTime(since=after(25), until=after(100), why=Missing.LOST))
    book.watch(Connection(state=ConnectionState.LIVE, since=after(100)), after(100))
    assert next(step for step, gap in grows(book, 100, 130) if gap >= 30) == 120


def test_a_deleted_lease_had_no_holder_until_then_and_a_lock_waits_for_nobody() -> None:
    book = Casebook("c")
    gone = lease(POD, version=2)
    for clue in clues((15, None), (75, Deleted(gone))):
        book.note(clue)
    (deleted,) = told(book, 100).values()
    assert (deleted.worst_gap_seconds, deleted.unheld_since) == (60, None)
    locks = Casebook("c")
    (expired,) = clues((15, None))
    locks.note(replace(expired, change=replace(expired.change, kind=Kind.LOCK)))
    assert {one.worst_gap_seconds for one in told(locks, 100).values()} == {None}


@pytest.mark.parametrize(
    ("stopped", "blind", "long_at"), [(30, 0, 50), (30, 5, 55), (190, 170, 220)]
)
def test_after_a_restart_a_gap_that_goes_on_is_told_once_it_is_long(
    stopped: int, blind: int, long_at: int
) -> None:
    """It stood still for 5 s at the restart, and for `blind` seconds before it."""
    before, later = Casebook("c"), Casebook("c")
    expired = expired_at_15()[0]
    before.note(expired)
    if blind:
        before.watch(Connection(state=ConnectionState.STALE, since=after(17)), after(17))
        grows(before, 17, 17 + blind)
        until = after(17 + blind)
        before.watch(Connection(state=ConnectionState.LIVE, since=until), until)
    grows(before, 17 + blind, stopped)
    unseen = [(after(17), after(17 + blind))] if blind else []
    later.restore(before.going_on(), after(stopped), unseen)
    again = MissedTime(since=after(stopped), until=after(stopped + 5), why=Missing.STOPPED)
    later.missed(again)
    told = grows(later, stopped + 5, 400)
    assert next(step for step, gap in told if gap >= 30) == long_at


def test_after_a_restart_the_wait_of_another_lease_is_not_told_of_the_rest() -> None:
    """Which of the restored Leases waits since when is not known; none is said to wait longer."""
    other = lease(POD, name="other", uid="uid-2", renewed=20)
    before, later = Casebook("c"), Casebook("c")
    taken = lease(OTHER, renewed=40, acquired=40, transitions=1, version=2)
    everything = clues((15, None), (35, None), (40, taken), first=(lease(POD), other))
    for clue in everything[:2]:
        before.note(clue)
    (stored,) = told(before, 40).values()
    later.restore([stored])
    later.note(everything[2])
    known = later.review(after(41))[-1]
    assert (known.ended, known.unheld_since, known.worst_gap_seconds) == (None, after(40), 25)


def test_an_incident_that_goes_on_for_long_ends_under_its_id() -> None:
    book = Casebook("c")
    everything = clues(
        (20, None), (900, lease(OTHER, renewed=900, acquired=900, transitions=1, version=2))
    )
    book.note(everything[0])
    (crash,) = told(book, 200).values()
    assert (crash.settled, crash.ended) == (True, None)
    book.note(everything[1])
    (ended,) = book.review(after(901))
    assert (ended.id, ended.ended) == (crash.id, after(900))


def test_a_pod_that_takes_its_lease_again_long_after_its_crash_was_restarted() -> None:
    book = Casebook("c")
    again = lease(POD, renewed=900, acquired=900, transitions=1, version=2)
    expired, *came = clues((20, None), (900, again), first=(lease(POD, acquired=-2),))
    book.note(expired)
    (crash,) = told(book, 200).values()
    assert crash.cause is Cause.CRASH
    for clue in came:
        book.note(clue)
    (ended,) = book.review(after(901))
    assert (ended.id, ended.cause) == (crash.id, Cause.RESTART_IN_PLACE)


def _fields(incident: Incident) -> dict[str, object]:
    return {name: getattr(incident, name) for name in Incident.__struct_fields__}


_NAMES = st.sampled_from([POD, OTHER, "app-0", "n-1", "", "debug"])
_MOMENTS = st.integers(0, 200).map(after)
_KEYS = st.builds(ObjectName, st.sampled_from(["default", "kube-system", ""]), _NAMES)
_FACTS: st.SearchStrategy[Fact] = st.one_of(
    st.builds(
        PodFact, key=_KEYS, read_at=_MOMENTS, gone=st.booleans(), node=_NAMES, uid=_NAMES,
        phase=st.sampled_from(["Running", "Failed"]), reason=st.sampled_from(["", "Evicted"]),
        owner_kind=st.sampled_from(["", "ReplicaSet", "StatefulSet"]), owner_name=_NAMES,
        revision=_NAMES, deleted_at=st.none() | _MOMENTS, exited_at=st.none() | _MOMENTS,
        started_at=st.none() | _MOMENTS, exit_code=st.sampled_from([None, 0, 1, 137]),
        exit_reason=st.sampled_from(["", "OOMKilled", "Error"]),
        disrupted=st.sampled_from(["", "EvictionByEvictionAPI", "PreemptionByScheduler"]),
    ),
    st.builds(
        NodeFact, name=_NAMES, read_at=_MOMENTS, gone=st.booleans(), cordoned=st.booleans(),
        ready=st.sampled_from(["True", "Unknown", ""]), ready_since=st.none() | _MOMENTS,
    ),
    st.builds(
        EventFact, kind=st.sampled_from(["Pod", "Node", "Deployment"]), key=_KEYS, at=_MOMENTS,
        reason=st.sampled_from(["Killing", "Evicted", "Scheduled", "ScalingReplicaSet"]),
        message=st.sampled_from(["", "assigned a to n-1", "Scaled down x from 2 to 0"]),
    ),
    st.builds(RefusedSource, st.sampled_from(list(Source)), _MOMENTS, st.just("no")),
)  # fmt: skip
_WRITES = st.lists(
    st.tuples(
        st.integers(1, 12), _NAMES, st.sampled_from([1, 15]), st.booleans(),
        st.sampled_from(["a", "b"]),
    ),
    max_size=12,
)  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(_WRITES, st.lists(_FACTS, max_size=12), st.randoms(use_true_random=False))
def test_no_order_of_facts_changes_the_settled_result(writes, facts, random) -> None:  # type: ignore[no-untyped-def]
    store = Store("c")
    store.replace(Listed((lease(POD, name="a"), lease("n-1", name="b", uid="b")), "1"), NOON)
    found: list[tuple[datetime, Clue]] = []
    at = 0
    for version, (wait, holder, duration, acquires, name) in enumerate(writes, 2):
        at += wait
        written = lease(
            holder, name=name, uid="uid-1" if name == "a" else "b", duration=duration,
            renewed=at, acquired=at if acquires else 0, version=version,
        )  # fmt: skip
        update = store.follow([Applied(written)], after(at))
        found += [(after(at), clue) for clue in (update.clues if update else ())]
    shuffled = list(facts)
    random.shuffle(shuffled)
    results = []
    for order in (facts, shuffled):
        book, incidents = Casebook("c"), {}
        for now, clue in found:
            book.note(clue)
            book.questions(now)
            incidents |= {one.id: one for one in book.review(now)}
        for fact in order:
            book.learn([fact])
        for step in range(at, at + 300, 25):
            book.questions(after(step))
            incidents |= {one.id: one for one in book.review(after(step))}
            assert book.review(after(step)) == []
        results.append({one.id: one for one in incidents.values() if one.members})
    assert results[0] == results[1]


def test_what_waits_for_its_turn_to_be_asked_is_not_kept_for_ever() -> None:
    inquiries = Inquiries(Knowledge())
    (clue, *_) = stopped()
    for number in range(5_000):
        episode = Episode(clue)
        inquiries.open(episode, after(number))
        inquiries.close(episode)
    assert len(inquiries._due) < 2_500


def long_stop() -> list[Clue]:
    """A Lease that lasts 200 s is given back, and taken 296 s later."""
    return clues(
        (2, lease(POD, renewed=2, duration=200, version=2)),
        (4, lease("", renewed=4, acquired=4, duration=1, version=3)),
        (300, lease(OTHER, renewed=300, acquired=300, transitions=1, duration=200, version=4)),
        first=(lease(POD, duration=200),),
    )


def test_what_was_planned_and_settled_overruns_while_nobody_takes_the_lease() -> None:
    book = Casebook("c")
    released, taken = long_stop()
    book.note(released)
    book.learn([PodFact(key=ObjectName("kube-system", POD), read_at=after(5), deleted_at=after(3))])
    (incident,) = told(book, 190).values()
    assert (incident.standing, incident.settled) == (Standing.PLANNED, True)
    assert book.next_review(after(190)) == after(204)
    (incident,) = book.review(after(205))
    assert incident.standing is Standing.OVERRAN
    book.note(taken)
    (incident,) = book.review(after(301))
    assert (incident.standing, incident.ended) == (Standing.OVERRAN, after(300))


def test_what_was_planned_overran_if_a_board_that_starts_anew_sees_the_end() -> None:
    book, again = Casebook("c"), Casebook("c")
    released, taken = long_stop()
    book.note(released)
    again.restore(told(book, 190).values())
    again.note(taken)
    (incident,) = again.review(after(301))
    assert (incident.standing, incident.ended) == (Standing.OVERRAN, after(300))


def gone(question: Question, now: datetime) -> Iterable[Fact]:
    return ()


def flapped(
    book: Casebook, store: Store, cycles: range, answers: Answers = gone, late: int = -1
) -> dict[str, Incident]:
    """Two holders that lose a Lease by turns every 30 s; what is told after each loss. In the cycle
    `late` the last renewal comes late.
    """
    found: dict[str, Incident] = {}
    for cycle in cycles:
        begun = 30.0 * cycle
        holder, version = f"pod-{cycle % 2}", 4 * cycle
        for number in range(3):
            renewed = begun + (2 * number if (cycle, number) != (late, 2) else 10)
            event = Applied(
                lease(holder, renewed=renewed, acquired=begun, duration=15, transitions=cycle,
                      version=version + number + 1)
            )  # fmt: skip
            update = store.follow((event,), after(renewed))
            for clue in update.clues if update else ():
                book.note(clue)
        lost = begun + (26 if cycle == late else 20)
        ran_out = store.turn(after(lost))
        for clue in ran_out.clues if ran_out else ():
            book.note(clue)
        seen = after(lost + 3)
        found |= {one.id: one for one in book.review(seen)}
        for question in book.questions(seen):
            book.learn(answers(question, seen))
    return found


def test_an_election_that_flaps_for_an_hour_is_one_incident_in_little_memory() -> None:
    book, store = Casebook("a"), Store("a")
    flapped(book, store, range(10))
    tracemalloc.start()
    flapped(book, store, range(10, 60))
    gc.collect()  # also what Python keeps of freed tuples
    before, _ = tracemalloc.get_traced_memory()
    found = flapped(book, store, range(60, 180))  # so many that what else Python keeps is little
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    (flaps,) = [one for one in found.values() if one.ended is None and not one.part_of]
    assert flaps.cause is Cause.FLAPPING
    assert "was lost 180 times" in flaps.sentence
    assert len(flaps.members) == 359
    assert grown < 120 * 550, grown / 120


def test_a_loss_that_stands_for_the_next_ones_tells_what_they_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = []
    for joins in (taken_over, lambda *_: []):
        monkeypatch.setattr(casebook, "taken_over", joins)
        book, store = Casebook("a"), Store("a")
        found = flapped(book, store, range(60))
        (flaps,) = [one for one in found.values() if one.members and not one.part_of]
        told.append((flaps, [clue.member for clue in book.losses()[flaps.id]]))
    assert told[0] == told[1]
    assert "was lost 60 times" in told[0][0].sentence


def test_what_is_compressed_keeps_its_order() -> None:
    """Also where a loss that stands for many comes behind one that rested later."""
    moments = [after(second) for second in range(3 * ZIPPED_TOGETHER)]
    parts = tuple(packed([Clue(change=a_change(at=at))]) for at in moments)
    some = zipped(parts[1 : ZIPPED_TOGETHER + 1])
    assert len(some) == 1
    kept = zipped((parts[0], *some, *parts[ZIPPED_TOGETHER + 1 :]))
    assert len(kept) == 3
    members = [Member(ObjectName("a", "b"), str(number)) for number in range(len(parts))]
    assert [one.change.at for one in unpacked(kept, members)] == moments


def test_a_loss_after_a_late_renewal_is_one_of_those_of_what_flaps() -> None:
    book, store = Casebook("a"), Store("a")
    found = flapped(book, store, range(12), late=9)
    (flaps,) = [one for one in found.values() if one.ended is None and not one.part_of]
    assert (flaps.cause, len(flaps.members)) == (Cause.FLAPPING, 23)
    assert "no other Lease was late in these seconds" in [one.sentence for one in flaps.evidence]


@pytest.mark.parametrize(("held", "together"), [(70, True), (150, False)])
def test_what_flaps_goes_on_until_nobody_lost_it_for_two_minutes(
    held: int, *, together: bool
) -> None:
    book, store = Casebook("a"), Store("a")
    found = flapped(book, store, range(8))
    for number, renewed in enumerate(range(240, 240 + held, 2), start=100):
        event = Applied(
            lease("pod-0", renewed=renewed, acquired=240, transitions=8, version=number)
        )
        update = store.follow((event,), after(renewed))
        for clue in update.clues if update else ():
            book.note(clue)
        found |= {one.id: one for one in book.review(after(renewed))}
    ran_out = store.turn(after(240 + held + 16))
    for clue in ran_out.clues if ran_out else ():
        book.note(clue)
    found |= {one.id: one for one in book.review(after(240 + held + 20))}
    told = [one for one in found.values() if one.members and not one.part_of]
    assert [one.cause for one in told] == [Cause.FLAPPING] + [Cause.CRASH] * (not together)
    assert len(told[0].members) == 16 + together
    assert (told[0].ended is None) is together


def crashed(question: Question, now: datetime) -> Iterable[Fact]:
    """The container of whoever lost it last ended, with another code each time."""
    cycle = (now - NOON) // timedelta(seconds=30)
    if question.source is Source.PODS and question.key.name == f"pod-{cycle % 2}":
        yield PodFact(
            key=question.key, read_at=now, uid=question.key.name, phase="Running",
            restarts=1, exit_reason="Error", exit_code=cycle, exited_at=after(30 * cycle + 5),
        )  # fmt: skip


def test_evidence_of_what_flaps_tells_how_it_began_and_what_it_is_now() -> None:
    book, store = Casebook("a"), Store("a")
    found = flapped(book, store, range(80), crashed)
    (flaps,) = [one for one in found.values() if one.ended is None and not one.part_of]
    facts = " | ".join(one.sentence for one in flaps.evidence)
    assert flaps.cause is Cause.FLAPPING
    for told in (0, 1, 2, 74, 75, 76, 77, 78):
        assert f"exit code {told}," in facts
    assert "nothing else tells why" not in facts
    assert len(flaps.evidence) <= 20
    later = flapped(book, store, range(80, 81), crashed)[flaps.id]
    assert flaps.evidence[-3] in later.evidence


def test_nothing_is_said_to_tell_why_before_anybody_was_asked() -> None:
    book, store = Casebook("a"), Store("a")
    found = flapped(book, store, range(8))
    (flaps,) = [one for one in found.values() if one.ended is None and not one.part_of]
    assert not [one for one in flaps.evidence if "nothing else" in one.sentence]
    book.learn([PodFact(key=ObjectName("default", "pod-1"), read_at=after(240), gone=True)])
    (flaps,) = [one for one in book.review(after(241)) if one.id == flaps.id]
    assert [one for one in flaps.evidence if "nothing else" in one.sentence]


def test_an_incident_that_goes_on_and_its_old_losses_keep_each_member_once() -> None:
    book = Casebook("a")
    found = flapped(book, Store("a"), range(40))
    (flaps,) = [one for one in found.values() if one.ended is None and not one.part_of]
    old = book.losses()[flaps.id][:60]
    told = flaps.members[:60]
    assert [clue.member for clue in old] == list(told)
    assert all(clue.member is one for clue, one in zip(old, told, strict=True))
    assert all(clue.change.own_identity is clue.member.identity for clue in old)
    assert len({id(one.lease) for one in told}) == 1


def test_what_rests_in_an_incident_that_goes_on_is_judged_for_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judged: list[datetime] = []
    judge = casebook.judge

    def noting(scene: Scene) -> Verdict:
        judged.append(scene.episode.at)
        return judge(scene)

    book, store = Casebook("a"), Store("a")
    flapped(book, store, range(20))
    monkeypatch.setattr(casebook, "judge", noting)
    for pod in ("pod-0", "pod-1"):
        book.learn([PodFact(key=ObjectName("default", pod), read_at=after(600), gone=True)])
    book.missed(MissedTime(since=after(60), until=after(600), why=Missing.STOOD_STILL))
    book.review(after(605))
    assert judged
    assert min(judged) >= after(600) - SETTLED_AFTER - timedelta(seconds=60)


def test_a_lease_that_was_made_keeps_nothing_of_what_others_did_then() -> None:
    late = LateWriter(
        key=ObjectName("n", "b"), holder="b", kind=Kind.ELECTION, at=NOON, seconds=9.0
    )
    made = a_change(1, change=ChangeType.CREATED, kind=Kind.LOCK)
    others = sys.getrefcount(late)
    book = Casebook("a")
    book.note(Clue(change=made, late_around=((late,),)))
    assert sys.getrefcount(late) == others


@pytest.mark.parametrize(
    ("kind", "kept"), [(Kind.LOCK, True), (Kind.ELECTION, True), (Kind.HEARTBEAT, False)]
)
def test_the_birth_of_a_lease_is_kept_where_it_may_be_a_lock(kind: Kind, kept: bool) -> None:
    made = a_change(1, change=ChangeType.CREATED, kind=kind)
    before = sys.getrefcount(made)
    book = Casebook("a")
    book.note(Clue(change=made))
    assert (sys.getrefcount(made) > before) == kept
