"""Rules whose cases are rare in recordings: from what the Leases say to a cause."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dashboard.parts import formatting
from leases.domain.cause import node_groups
from leases.domain.cause.casebook import Casebook
from leases.domain.cause.clue import FORM_WRITER, Clue
from leases.domain.cause.facts import PodFact
from leases.domain.cause.scene import counted, span
from leases.domain.change import FieldManager
from leases.domain.incident import Cause, Confidence, Incident, Member, Standing
from leases.domain.lease import Lease, ObjectName
from leases.tracking.store import Store
from leases.wire.watch_decoding import Applied, Deleted, Listed
from tests.support.values.leases import NOON, after, lease

OLD = "app-6bcjktn59v-q89c7"
OLD_TOO = "app-6bcjktn59v-z7xkd"
NEW = "app-5f7d8cc4b9-x2x4k"


def _clues(first: Lease, *writes: tuple[float, Lease | Deleted | None]) -> list[Clue]:
    store = Store("c")
    store.replace(Listed((first,), "1"), NOON)
    found: list[Clue] = []
    for seconds, written in writes:
        at = after(seconds)
        event = Applied(written) if isinstance(written, Lease) else written
        update = store.turn(at) if event is None else store.follow([event], at)
        found += update.clues if update is not None else ()
    return found


def _handover(at: float, to: str, version: int) -> list[tuple[float, Lease | None]]:
    released = lease("", renewed=at, acquired=at, duration=1, version=version)
    acquired = lease(to, renewed=at + 1, acquired=at + 1, transitions=1, version=version + 1)
    return [(at, released), (at + 1, acquired)]


def _incidents(book: Casebook, until: int = 200) -> list[Incident]:
    told = {}
    for step in range(until):
        told |= {one.id: one for one in book.review(after(step))}
    return [one for one in told.values() if one.members]


def _told(clues: list[Clue]) -> list[tuple[str, str, int]]:
    book = Casebook("c")
    for clue in clues:
        book.note(clue)
    return [(one.cause, one.confidence, len(one.members)) for one in _incidents(book)]


def test_a_rollout_that_moves_a_lease_twice_is_one_incident() -> None:
    clues = _clues(lease(OLD), *_handover(4, OLD_TOO, 2), *_handover(12, NEW, 4))
    assert _told(clues) == [(Cause.ROLLOUT, Confidence.LIKELY, 4)]


def test_pods_that_lose_it_in_turn_are_flapping_but_stopped_ones_are_not() -> None:
    flaps = [
        *_handover(4, OLD_TOO, 2), *_handover(14, OLD, 4),
        *_handover(24, OLD_TOO, 6), *_handover(34, OLD, 8),
    ]  # fmt: skip
    assert _told(_clues(lease(OLD), *flaps)) == [(Cause.FLAPPING, Confidence.LIKELY, 8)]
    book = Casebook("c")
    for clue in _clues(lease(OLD), *flaps):
        book.note(clue)
    (open_one,) = book.review(after(60))
    (over,) = book.review(after(600))
    assert open_one.ended is None  # another loss may follow
    assert over.ended is not None
    after_restart = Casebook("c")
    after_restart.restore([open_one])
    assert [one.ended for one in after_restart.review(after(600))] == [after(600)]
    others = [*_handover(4, OLD_TOO, 2), *_handover(14, "app-6bcjktn59v-mmm4k", 4)]
    causes = [cause for cause, _, _ in _told(_clues(lease(OLD), *others))]
    assert causes == [Cause.GRACEFUL_STOP, Cause.GRACEFUL_STOP]


def test_who_wrote_a_lease_that_was_never_renewed_is_not_known_after_a_first_list() -> None:
    [told] = _incidents(_book(_clues(lease(OLD), (20, None))))
    assert (told.cause, told.confidence) == (Cause.UNKNOWN, Confidence.POSSIBLE)
    said = f"nobody renewed default/controller after {OLD} acquired it at 12:00:00"
    assert told.sentence == f"{said}, so it ran out at 12:00:15"


@pytest.mark.parametrize("seconds", [0.0, 0.3, 1.550039, 9.96, 49.99999999, 59.7])
def test_a_sentence_rounds_a_length_as_the_page_beside_it_does(seconds: float) -> None:
    assert span(seconds) == formatting.age(seconds)
    assert span(600 + seconds).partition(" min")[0] == "10"


@pytest.mark.parametrize("seconds", [60.4, 89.0, 98.7, 119.0])
def test_a_sentence_counts_minutes_where_the_page_beside_it_does(seconds: float) -> None:
    assert span(seconds).replace(" min", " m") == formatting.age(seconds).removesuffix(" 0 s")


def test_losses_that_are_not_flapping_yet_have_the_sentence_of_their_cause() -> None:
    taken = [
        (at, lease(pod, renewed=at, acquired=at, transitions=n, version=n + 1))
        for n, (at, pod) in enumerate([(20.0, OLD_TOO), (40.0, OLD), (62.0, OLD_TOO)], start=1)
    ]
    first = lease(OLD, acquired=-2)
    clues = _clues(first, (16, None), taken[0], (36, None), taken[1], (56, None), taken[2])
    assert [one.change.change for one in clues] == ["expired", "taken_over"] * 3
    book, told = Casebook("c"), []
    for at in range(80):
        for clue in clues:
            if at - 1 < (clue.change.observed_at - NOON).total_seconds() <= at:
                book.note(clue)
        told += [one for one in book.review(after(at)) if len(one.members) >= 5]
    said = list(dict.fromkeys((one.cause, one.sentence) for one in told))
    name, lost = "default/controller", "was lost 3 times within 40 s"
    assert said == [
        (Cause.CRASH, f"{OLD} stopped renewing {name} at 12:00:00; the Lease {lost}"),
        (
            Cause.FLAPPING,
            f"{name} {lost} by {OLD} and {OLD_TOO}: each lost it soon after taking it",
        ),
    ]


def test_flapping_stays_one_incident_while_it_goes_on() -> None:
    pods = (OLD_TOO, OLD)
    writes = (_handover(40 * n + 4, pods[n % 2], 2 + 2 * n) for n in range(60))
    clues = _clues(lease(OLD), *(one for handover in writes for one in handover))
    book, told = Casebook("c"), {}
    for clue in clues:
        book.note(clue)
        told |= {one.id: one for one in book.review(clue.change.observed_at)}
    told |= {one.id: one for one in book.review(after(2400))}
    (going_on,) = [one for one in told.values() if one.members and one.ended is None]
    assert going_on.members[0] == clues[0].member
    assert len(going_on.members) == len(clues)


@pytest.mark.parametrize(("others", "cause"), [(0, Cause.CRASH), (4, Cause.API_OUTAGE)])
def test_the_only_writer_of_a_cluster_that_dies_is_no_trouble_of_the_api(
    others: int, cause: Cause
) -> None:
    store = Store("c")
    store.replace(Listed((lease(OLD),), "1"), NOON)
    store.silences.connected(NOON)
    for number in range(1, 30):
        for write in range(1 + others):  # others write at other times
            store.silences.wrote(after(2 * number + write * 0.1))
        store.follow(
            [Applied(lease(OLD, renewed=2 * number, version=number + 1))], after(2 * number)
        )
    update = store.turn(after(74))
    assert update is not None
    book = Casebook("c")
    for clue in update.clues:
        book.note(clue)
    (incident,) = [one for step in range(75, 90) for one in book.review(after(step))][-1:]
    assert incident.cause is cause


@pytest.mark.parametrize(
    ("usual", "writer", "cause"),
    [
        ("manager", "kubectl-edit", Cause.BY_HAND),
        ("manager", "curl", Cause.BY_HAND),
        ("kubectl-exporter", "kubectl-exporter", Cause.GRACEFUL_STOP),
        ("manager", "manager", Cause.GRACEFUL_STOP),
    ],
)
def test_who_renews_a_lease_does_not_edit_it_by_hand(usual: str, writer: str, cause: str) -> None:
    released = _clues(lease(OLD), *_handover(4, OLD_TOO, 2))
    book = Casebook("c")
    holder = frozenset({"spec.holderIdentity"})
    times = frozenset({"spec.renewTime", "spec.acquireTime"})
    managers = (
        (FieldManager(usual, "Update", NOON, times), FieldManager(writer, "Update", NOON, holder))
        if usual != writer
        else (FieldManager(usual, "Update", NOON, times | holder),)
    )
    first = released[0]
    book.note(replace(first, change=replace(first.change, writer=writer), managers=managers))
    book.note(released[1])
    (incident,) = _incidents(book)
    assert incident.cause == cause
    assert incident.writer == (writer if cause is Cause.BY_HAND else None)


LATE = (40, 300)  # while its loss may still be judged anew, and long after


@pytest.mark.parametrize("at", LATE)
@pytest.mark.parametrize(
    ("writer", "cause"),
    [
        ("leaseboard", Cause.BY_HAND),
        ("kubectl-edit", Cause.BY_HAND),
        ("controller", Cause.CRASH),
    ],
)
def test_what_a_person_writes_after_a_crash_has_a_cause_of_its_own(
    writer: str, cause: Cause, at: float
) -> None:
    taken = lease(OLD_TOO, renewed=at + 9, acquired=at + 9, transitions=1, version=4)
    found = _clues(
        lease(OLD, duration=20),
        (2, lease(OLD, renewed=2, duration=20, version=2)),
        (25, None),
        (at, lease("", renewed=2, duration=20, version=3)),
        (at + 9, taken),
    )
    times = frozenset({"spec.renewTime", "spec.acquireTime"})
    managers = (
        FieldManager("controller", "Update", NOON, times),
        FieldManager(writer, "Update", NOON, frozenset({"spec.holderIdentity"})),
    )
    expired, released, acquired = found
    released = replace(released, change=replace(released.change, writer=writer), managers=managers)
    assert _causes(expired, released, acquired) == {
        "expired": Cause.CRASH, "released": cause, "acquired": Cause.CRASH,
    }  # fmt: skip


@pytest.mark.parametrize("at", LATE)
def test_a_form_that_deletes_an_expired_lease_leaves_the_expiry_its_crash(at: float) -> None:
    renewed = (2, lease(OLD, renewed=2, duration=20, version=2))
    expired, gone = _clues(
        lease(OLD, duration=20), renewed, (25, None), (at, Deleted(lease(OLD, version=3)))
    )
    here = replace(gone, by_person=True)
    assert _causes(expired, here) == {"expired": Cause.CRASH, "deleted": Cause.BY_HAND}
    if at == LATE[1]:  # nothing tells who deleted it, but its crash did not
        assert _causes(expired, gone) == {"expired": Cause.CRASH, "deleted": Cause.DELETED}


def test_an_edit_of_an_expired_lease_does_not_keep_its_loss_going_on() -> None:
    expired, edited, taken = _clues(
        lease(OLD),
        (2, lease(OLD, renewed=2, version=2)),
        (20, None),
        (30, lease(OLD, renewed=2, version=3, labels={"a": "b"})),
        (40, lease(OLD_TOO, renewed=40, acquired=40, transitions=1, version=4)),
    )
    edited = replace(edited, change=replace(edited.change, writer="kubectl-label"))
    book = _book([expired, edited, taken])
    found = {one.standing: one for one in _incidents(book)}
    lost = found[Standing.UNPLANNED]
    assert (lost.ended, lost.members) == (after(40), (expired.member, taken.member))
    assert found[Standing.REMARK].members == (edited.member,)
    assert book.going_on() == []


def test_an_edit_of_an_expired_lease_does_not_bring_its_process_back() -> None:
    holder = "app-6bcjktn59v-q89c7_8c2e41f0-5b1d-4f0e-9a57-2d9a3c1b7e44"
    expired, recovered, edited, again = _clues(
        lease(holder),
        (2, lease(holder, renewed=2, version=2)),
        (20, None),
        (40, lease(holder, renewed=2, duration=60, version=3)),
        (105, None),
    )
    recovered, edited = (
        replace(one, change=replace(one.change, writer="kubectl-edit"))
        for one in (recovered, edited)
    )
    clues = (expired, recovered, edited, again)
    told: dict[Member, Cause] = {}
    for one in _incidents(_book([*clues])):
        told |= one.causes
        assert "went on as its holder" not in one.sentence
    assert [told[clue.member] for clue in clues] == [Cause.CRASH, *[Cause.BY_HAND] * 3]


def _causes(*found: Clue) -> dict[str, Cause]:
    """The cause of each of these changes at the end."""
    book, causes, left = Casebook("c"), {}, list(found)
    for step in range(600):
        while left and left[0].change.observed_at <= after(step):
            book.note(left.pop(0))
        for one in book.review(after(step)):
            causes |= one.causes
    return {clue.change.change.value: causes[clue.member] for clue in found}


def test_a_pod_that_ran_all_the_time_was_cut_off_once_its_node_is_known_to_live() -> None:
    clues = _clues(lease(OLD), (20, None))
    book = Casebook("c")
    book.note(clues[0])
    key = ObjectName("default", OLD)
    pod = PodFact(key=key, read_at=after(16), node="n-1", phase="Running", uid="u")
    book.learn([pod])
    (incident,) = _incidents(book, 60)
    assert (incident.cause, incident.confidence) == (Cause.PARTITION, Confidence.POSSIBLE)
    ready = replace(pod, read_at=after(60), ready="True", ready_since=after(-100))
    book.learn([replace(ready, read_at=after(17)), ready])
    (incident,) = _incidents(book, 70)
    assert (incident.cause, incident.confidence) == (Cause.PARTITION, Confidence.LIKELY)
    assert any("stayed Ready" in one.sentence for one in incident.evidence)


def test_a_pod_with_restarts_is_never_said_not_to_have_been_restarted() -> None:
    (clue,) = _clues(lease(OLD), (20, None))
    book = Casebook("c")
    book.note(clue)
    ran = PodFact(
        key=ObjectName("default", OLD), read_at=after(16), phase="Running", uid="u",
        restarts=17, exited_at=after(-300), exit_code=1, started_at=after(-290),
    )  # fmt: skip
    book.learn([ran])
    (incident,) = _incidents(book, 60)
    said = " ".join(one.sentence for one in incident.evidence)
    assert "restarted 17 times before, the last time at 11:55:10" in said
    assert "not restarted" not in said


@pytest.mark.parametrize(
    ("disrupted", "confidence"),
    [("", Confidence.LIKELY), ("DeletionByPodGC", Confidence.POSSIBLE)],
)
def test_a_pod_that_was_to_be_disrupted_may_not_only_have_been_stopped(
    disrupted: str, confidence: Confidence
) -> None:
    book = _book(_clues(lease(OLD), *_handover(4, OLD_TOO, 2)))
    going = PodFact(
        key=ObjectName("default", OLD), read_at=after(5), phase="Running", uid="u",
        deleted_at=after(34), disrupted=disrupted,
    )  # fmt: skip
    book.learn([going])
    (incident,) = _incidents(book, 60)
    assert (incident.cause, incident.confidence) == (Cause.GRACEFUL_STOP, confidence)


def test_a_container_that_ends_again_and_again_is_a_crash_loop() -> None:
    ended = PodFact(
        key=ObjectName("default", OLD), read_at=after(16), phase="Running", uid="u", restarts=17,
        waiting="CrashLoopBackOff", exited_at=after(1), exit_code=2, exit_reason="Error",
    )  # fmt: skip
    for fact, cause in (
        (ended, Cause.CRASH_LOOP),
        (replace(ended, restarts=1), Cause.CRASH),
        (replace(ended, waiting=""), Cause.CRASH),
    ):
        book = Casebook("c")
        book.note(_clues(lease(OLD), (20, None))[0])
        book.learn([fact])
        (incident,) = _incidents(book, 60)
        assert (incident.cause, incident.confidence) == (cause, Confidence.LIKELY)
        said = " ".join(one.sentence for one in incident.evidence)
        assert f"restarted {fact.restarts} time" in said


def _written(clues: list[Clue], writer: str, *numbers: int) -> list[Clue]:
    """The clues with the manager who wrote those of these numbers."""
    fields = frozenset({"spec.holderIdentity", "spec.renewTime", "spec.acquireTime"})
    managers = (FieldManager(writer, "Update", NOON, fields),)
    return [
        replace(one, change=replace(one.change, writer=writer), managers=managers)
        if number in numbers
        else one
        for number, one in enumerate(clues)
    ]


def test_a_holder_that_a_person_wrote_and_nobody_renewed_did_not_stop_renewing() -> None:
    made = _made(lease("demo", renewed=1, acquired=1, version=2), (30, None))
    assert [one.change.change for one in made] == ["created", "expired"]
    (incident,) = _incidents(_book(_written(made, "kubectl-create", 0)))
    assert (incident.cause, incident.writer) == (Cause.BY_HAND, "kubectl-create")
    assert incident.sentence == (
        "kubectl-create created default/controller for demo at 12:00:01; "
        "nobody renewed it, so it ran out at 12:00:16"
    )
    (incident,) = _incidents(_book(_written(made, "my-elector", 0)))
    assert incident.cause is Cause.CRASH


@pytest.mark.parametrize(("acquired", "field"), [(1, "renewTime"), (40, "acquireTime")])
@pytest.mark.parametrize("renewals", [0, 6])
def test_a_person_who_renews_by_hand_did_not_write_the_holder(
    acquired: int, field: str, renewals: int
) -> None:
    """However often its holder had renewed before."""
    first = lease("demo", renewed=1, acquired=1, version=2)
    often = [
        (second, lease("demo", renewed=second, acquired=1, version=second + 1))
        for second in range(2, 2 + renewals)
    ]
    again = lease("demo", renewed=40, acquired=acquired, version=100)
    made = _made(first, *often, (30, None), (40, again), (70, None))
    assert [one.change.change for one in made[1::2]] == ["expired", "expired"]
    told = _incidents(_book(_written(_written(made, "app", 0), "kubectl-patch", 2)), 200)
    (incident,) = [one for one in told if made[3].member in one.members]
    assert (incident.cause, incident.confidence) == (Cause.BY_HAND, Confidence.CERTAIN)
    assert incident.sentence == (
        "kubectl-patch renewed default/controller for demo at 12:00:40; "
        "nobody renewed it, so it ran out at 12:00:55"
    )
    (fact,) = incident.evidence
    assert fact.sentence == f"managedFields name kubectl-patch as the writer of {field}"


@pytest.mark.parametrize(
    ("second", "writers"),
    [("leaseboard", ["kubectl-patch", "leaseboard"]), ("elector", ["kubectl-patch"])],
)
def test_what_two_people_edit_are_two_incidents(second: str, writers: list[str]) -> None:
    """What a holder sets back belongs to the edit."""
    edits = [
        (20 + 20 * n, lease(OLD, renewed=19 + 20 * n, duration=length, version=3 + n))
        for n, length in enumerate((30, 20))
    ]
    clues = _clues(lease(OLD, duration=60), *edits)
    clues = _written(_written(clues, "kubectl-patch", 0), second, 1)
    told = _incidents(_book(clues))
    assert [one.writer for one in told if one.writer] == writers


@pytest.mark.parametrize("anew", [True, False])
def test_an_edit_of_what_a_person_wrote_is_no_renewal(*, anew: bool) -> None:
    """Neither is a start: what was written is known from history then."""
    first = lease("demo", renewed=1, acquired=1, duration=240, version=2)
    edited = lease("demo", renewed=1, acquired=1, duration=60, version=3)
    made, edit, ran_out = _written(_made(first, (20, edited), (130, None)), "kubectl-create", 0)
    assert (edit.change.change, ran_out.change.change) == ("reconfigured", "expired")
    book = Casebook("c")
    if anew:
        book.recall([made.change])
    else:
        book.note(made)
        book.note(edit)
    book.note(ran_out)
    found = [one for one in _incidents(book) if ran_out.member in one.members]
    assert [(one.cause, one.writer) for one in found] == [(Cause.BY_HAND, "kubectl-create")]


def test_a_lease_made_through_a_form_was_created_for_its_holder_and_not_handed_over() -> None:
    then = "through a form of Leaseboard at 12:00:0{}; nobody renewed it, so it ran out at 12:00:{}"
    made = _made(lease("demo", renewed=1, acquired=1, version=2), (30, None))
    (incident,) = _incidents(_book(_written(made, "leaseboard", 0)))
    said = "default/controller was created for demo " + then.format(1, 16)
    assert (incident.sentence, incident.confidence) == (said, Confidence.CERTAIN)
    second = replace(made[0].change, name="second"), replace(made[1].change, name="second")
    two = [replace(clue, change=one) for clue, one in zip(made, second, strict=True)]
    (incident,) = _incidents(_book(_written([*made, *two], "kubectl-create", 0, 2)))
    assert incident.sentence.endswith(", and 1 more Lease")
    each = _incidents(_book(_written([*made, *two], "leaseboard", 0, 2)))
    assert [len(one.leases) for one in each] == [1, 1], "each has a reason of its own"
    handed = lease("demo", renewed=4, acquired=4, transitions=1, version=2)
    clues = _written(_clues(lease(OLD), (4, handed), (30, None)), "leaseboard", 0)
    told = [one.sentence for one in _incidents(_book(clues))]
    assert told == [
        "default/controller was handed to demo through a form of Leaseboard at 12:00:04"
    ]


def test_a_release_through_a_form_is_never_that_of_the_holder_itself() -> None:
    """After a restart nobody knows who renews, and the release owns every field."""
    released = lease("", renewed=4, duration=1, version=2)
    (clue,) = _written(_clues(lease(OLD), (4, released)), "leaseboard", 0)
    (incident,) = _incidents(_book([replace(clue, renewals_seen=50)]))
    assert (incident.cause, incident.writer) == (Cause.BY_HAND, "leaseboard")
    assert incident.confidence is Confidence.CERTAIN


def test_what_a_person_wrote_overran_as_soon_as_nobody_held_it_for_its_duration() -> None:
    made = _made(lease("demo", renewed=1, acquired=1, duration=3, version=2), (4.5, None))
    book = _book(_written(made, "kubectl-create", 0))
    told = {at: one for at in range(5, 12) for one in book.review(after(at))}
    assert {at: one.standing for at, one in told.items()} == {
        5: Standing.PLANNED,
        7: Standing.OVERRAN,
    }


@pytest.mark.parametrize(
    ("deleted_at", "standing"), [(6, Standing.PLANNED), (40, Standing.OVERRAN)]
)
def test_what_overran_did_so_although_its_lease_is_gone(
    deleted_at: int, standing: Standing
) -> None:
    made = lease("demo", renewed=1, acquired=1, duration=3, version=2)
    clues = _written(_made(made, (4.5, None)), "kubectl-create", 0)
    store = Store("c")
    store.replace(Listed((made,), "1"), after(5))
    gone = replace(made, metadata=replace(made.metadata, resource_version="3"))
    update = store.follow([Deleted(gone)], after(deleted_at))
    assert update is not None
    (told,) = _incidents(_book([*clues, update.clues[-1]]))
    assert told.ended == after(deleted_at)
    assert told.standing is standing


def test_writes_by_kubectl_apply_are_a_persons() -> None:
    writes = [
        (float(at), lease(holder, renewed=at, acquired=at, version=at))
        for at, holder in ((5, "b"), (9, "a"), (14, "b"), (20, "a"))
    ]
    clues = _clues(lease("a"), *writes)
    told = _incidents(_book(_written(clues, "kubectl-client-side-apply", *range(len(clues)))))
    assert {(one.cause, one.confidence) for one in told} == {(Cause.BY_HAND, Confidence.CERTAIN)}
    assert {one.writer for one in told} == {"kubectl-client-side-apply"}


def test_each_write_of_a_person_is_told_by_itself() -> None:
    """One over the other, by other programs, and then somebody deletes it."""
    held = [
        (float(at), lease(holder, renewed=at, acquired=at, version=at))
        for at, holder in ((5, "bob"), (9, "eve"), (12, "carol"))
    ]
    clues = _written(_clues(lease("alice"), *held), "kubectl-patch", 0, 1)
    clues = _written(clues, FORM_WRITER, 2)
    store = Store("c")
    store.replace(Listed((held[-1][1],), "1"), after(12))
    gone = replace(held[-1][1], metadata=replace(held[-1][1].metadata, resource_version="13"))
    update = store.follow([Deleted(gone)], after(15))
    assert update is not None
    told = _incidents(_book([*clues, update.clues[-1]]), 300)
    assert [(one.cause, one.writer, len(one.members)) for one in told] == [
        (Cause.BY_HAND, "kubectl-patch", 1), (Cause.BY_HAND, "kubectl-patch", 1),
        (Cause.BY_HAND, FORM_WRITER, 1), (Cause.DELETED, None, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("then", ["deleted", "expired"])
def test_whoever_is_put_where_nobody_was_costs_no_time_without_a_holder(then: str) -> None:
    vacant = lease("", renewed=0, acquired=0, duration=1)
    put = lease("eve", renewed=400, acquired=400, duration=30, version=2)
    clues = _written(_clues(vacant, (400, put)), "kubectl-patch", 0)
    (acquired,) = clues
    clues = [replace(acquired, change=replace(acquired.change, gap_seconds=396.0))]
    store = Store("c")
    store.replace(Listed((put,), "1"), after(400))
    gone = Deleted(replace(put, metadata=replace(put.metadata, resource_version="3")))
    update = store.follow([gone], after(404)) if then == "deleted" else store.turn(after(440))
    assert update is not None
    told = _incidents(_book([*clues, *update.clues]), 442)
    assert max(one.worst_gap_seconds or 0.0 for one in told) < 30
    assert Standing.OVERRAN not in {one.standing for one in told}


def test_the_last_renewal_is_no_edit_of_the_duration() -> None:
    edited = lease(OLD, renewed=2, version=3, duration=30)
    clues = _clues(lease(OLD), (2, lease(OLD, renewed=2, version=2)), (9, edited), (60, None))
    assert [one.change.change for one in clues] == ["reconfigured", "expired"]
    told = _incidents(_book(clues))
    sentences = [one.sentence for one in told if one.cause is Cause.CRASH]
    assert sentences == [f"{OLD} stopped renewing default/controller at 12:00:02"]


@pytest.mark.parametrize(
    ("edited_at", "lasts", "ran_out", "says"),
    [
        (9, 3, 12, "from 15 to 3 at 12:00:09, so it ran out at 12:00:12"),
        (30, 20, 50, ("from 15 to 20 at 12:00:30, which made it count as held again; "
                      "nobody renewed it, so it ran out at 12:00:50")),
        (9, 40, 49, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("holder", [OLD, "alice"])
def test_what_ran_out_by_an_edit_of_its_duration_was_no_crash(
    holder: str, edited_at: int, lasts: int, ran_out: int, says: str | None
) -> None:
    first = lease(holder, acquired=-2)
    edited = lease(holder, acquired=-2, version=3, duration=lasts)
    clues = _clues(first, (edited_at - 0.5, None), (edited_at, edited), (90, None))
    at = next(n for n, one in enumerate(clues) if "leaseDurationSeconds" in one.change.fields)
    clues = _written(clues, "kubectl-patch", *range(at, len(clues) - 1))
    assert (clues[-1].change.change, clues[-1].change.at) == ("expired", after(ran_out))
    told = _incidents(_book(clues))
    (last,) = [one for one in told if clues[-1].member in one.members]
    if says is None:
        assert last.cause is Cause.CRASH
    else:
        assert (last.cause, last.writer) == (Cause.BY_HAND, "kubectl-patch")
        assert last.sentence == (
            f"kubectl-patch changed leaseDurationSeconds of default/controller {says}"
        )


@pytest.mark.parametrize("here", [True, False])
def test_a_held_lease_that_a_form_deleted_was_deleted_by_hand(*, here: bool) -> None:
    store = Store("c")
    store.replace(Listed((lease(OLD),), "1"), NOON)
    update = store.follow([Deleted(lease(OLD, version=2))], after(5))
    assert update is not None
    (clue,) = update.clues
    (told,) = _incidents(_book([replace(clue, by_person=here)]))
    if here:
        assert (told.cause, told.writer, told.standing) == (
            Cause.BY_HAND, FORM_WRITER, Standing.PLANNED,
        )  # fmt: skip
        assert told.sentence == (
            "default/controller was deleted through a form of Leaseboard at 12:00:05"
        )
    else:
        assert (told.cause, told.writer, told.standing) == (
            Cause.DELETED, None, Standing.UNPLANNED,
        )  # fmt: skip


BY_A_PERSON = "a person made it again, not who held it before"


@pytest.mark.parametrize(
    ("holder", "writer", "later", "fact"),
    [
        (OLD, "app", f"by {OLD}", "it was deleted though its user was well and needed it"),
        (OLD_TOO, "app", f"by {OLD_TOO}", "somebody else who needs it made it again"),
        (OLD, "leaseboard", "through a form", BY_A_PERSON),
        (OLD, "kubectl-create", "by kubectl-create", BY_A_PERSON),
    ],
)  # fmt: skip
def test_who_made_a_deleted_lease_again_may_be_another_than_who_held_it(
    holder: str, writer: str, later: str, fact: str
) -> None:
    store = Store("c")
    store.replace(Listed((lease(OLD),), "1"), NOON)
    deleted = store.follow([Deleted(lease(OLD, version=2))], after(5))
    made = store.follow(
        [Applied(lease(holder, renewed=55, acquired=55, uid="new", created=55, version=3))],
        after(55),
    )
    assert deleted is not None
    assert made is not None
    (gone,), (again,) = deleted.clues, made.clues
    again = replace(again, change=replace(again.change, writer=writer))
    (told,) = _incidents(_book([gone, again]))
    assert told.sentence == (
        f"default/controller was deleted at 12:00:05 while {OLD} held it, and made again 50 s "
        f"later {later}"
    )
    assert told.evidence[0].sentence == fact


def test_two_deletions_are_no_end_of_the_process_that_held_both() -> None:
    store = Store("c")
    names = [{"name": name, "namespace": f"team-{name}", "uid": name} for name in "ab"]
    store.replace(Listed(tuple(lease(OLD, **one) for one in names), "1"), NOON)
    gone = [Deleted(lease(OLD, version=2 + i, **one)) for i, one in enumerate(names)]
    updates = [store.follow([one], after(5 + 3 * i)) for i, one in enumerate(gone)]
    clues = [clue for update in updates if update is not None for clue in update.clues]
    told = _incidents(_book(clues))
    assert [(one.cause, len(one.leases)) for one in told] == [(Cause.DELETED, 1)] * 2


def _book(clues: list[Clue]) -> Casebook:
    book = Casebook("c")
    for clue in clues:
        book.note(clue)
    return book


def _made(first: Lease, *writes: tuple[float, Lease | None]) -> list[Clue]:
    """As `_clues`, for a Lease that appears while we watch."""
    store = Store("c")
    store.replace(Listed((lease("x", name="other", uid="o", duration=None),), "1"), NOON)
    found: list[Clue] = []
    for seconds, written in ((1, first), *writes):
        at = after(seconds)
        update = store.turn(at) if written is None else store.follow([Applied(written)], at)
        found += update.clues if update is not None else ()
    return found


@pytest.mark.parametrize(
    ("vacant", "standing"), [(3.0, Standing.PLANNED), (40.0, Standing.OVERRAN)]
)
def test_a_stop_was_planned_and_overran_if_nobody_held_it_for_too_long(
    vacant: float, standing: Standing
) -> None:
    released = lease("", renewed=4, acquired=4, duration=1, version=2)
    at = 4 + vacant
    taken = lease(OLD_TOO, renewed=at, acquired=at, transitions=1, version=3)
    clues = _clues(lease(OLD), (4, released), (at, taken))
    (incident,) = _incidents(_book(clues))
    assert (incident.standing, incident.worst_gap_seconds) == (standing, vacant)
    assert incident.planned
    assert incident.shown is (standing is Standing.OVERRAN)


@pytest.mark.parametrize("behind", [True, False])
def test_a_renewal_that_came_late_once_is_no_wrong_clock(*, behind: bool) -> None:
    renewals = [
        (seen, lease(OLD, renewed=seen - 7.5 * (behind or seen == 16), duration=6, version=n))
        for n, seen in enumerate((2.0, 4.0, 6.0, 16.0), start=2)
    ]
    taken = lease(OLD_TOO, renewed=16.1, acquired=16.1, duration=6, transitions=1, version=9)
    clues = _clues(lease(OLD, renewed=-7.5 * behind, duration=6), *renewals, (16.1, taken))
    assert clues[-1].change.change == "replaced"
    told = [cause for cause, _, _ in _told(clues)]
    assert (Cause.CLOCK_SKEW in told) is behind


def test_a_stop_that_nobody_follows_overruns_while_it_goes_on() -> None:
    released = lease("", renewed=4, acquired=4, duration=1, version=2)
    book = _book(_clues(lease(OLD), (4, released)))
    told = [one for step in range(60) for one in book.review(after(step))]
    assert [told[0].standing, told[-1].standing] == [Standing.PLANNED, Standing.OVERRAN]


@pytest.mark.parametrize(
    ("edited", "standing"),
    [
        (lease(OLD, labels={"team": "a"}, version=2), Standing.REMARK),
        (lease(OLD, duration=30, version=2), Standing.PLANNED),
    ],
)
def test_a_change_of_labels_is_no_incident(edited: Lease, standing: Standing) -> None:
    clues = _written(_clues(lease(OLD), (4, edited)), "kubectl-label", 0)
    (incident,) = _incidents(_book(clues))
    assert (incident.cause, incident.standing) == (Cause.BY_HAND, standing)


def test_a_crash_is_unplanned() -> None:
    (incident,) = _incidents(_book(_clues(lease(OLD), (20, None))))
    assert incident.standing is Standing.UNPLANNED


def test_a_write_through_a_form_is_told_as_one() -> None:
    clues = _written(_clues(lease(OLD), *_handover(4, OLD_TOO, 2)), "leaseboard", 0)
    (incident,) = _incidents(_book(clues))
    assert (incident.cause, incident.confidence) == (Cause.BY_HAND, Confidence.CERTAIN)
    assert incident.standing is Standing.PLANNED
    assert (
        incident.sentence
        == "default/controller was released through a form of Leaseboard at 12:00:04"
    )


def test_an_edit_through_a_form_says_what_was_edited() -> None:
    first = lease(OLD)
    for fields, said in (
        ({"annotations": {"a": "b"}}, "annotations of default/controller were"),
        (
            {"duration": 40},
            "leaseDurationSeconds of default/controller was",
        ),
    ):
        edited = lease(OLD, version=2, **fields)
        (incident,) = _incidents(_book(_written(_clues(first, (4, edited)), "leaseboard", 0)))
        assert incident.sentence.startswith(
            f"{said} edited through a form of Leaseboard at 12:00:04"
        )


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 elections"), (1, "1 election"), (2, "2 elections"), (1000, "1,000 elections")],
)
def test_a_number_of_things_is_said_by_rule(number: int, text: str) -> None:
    assert counted(number, "election") == text
    assert formatting.counted(number, "election") == text


@pytest.mark.parametrize(
    ("name", "hearts", "text"),
    [
        ("worker-7", 0, "worker-7 fell silent"),
        ("worker-7", 1, "worker-7's heartbeat stopped"),
        ("2 nodes", 2, "The heartbeats of 2 nodes stopped"),
        ("1,000 nodes", 1000, "The heartbeats of 1,000 nodes stopped"),
    ],
)
def test_one_node_is_named_and_many_are_counted(name: str, hearts: int, text: str) -> None:
    assert node_groups._stopped(name, hearts) == text
