"""The state of a cluster after a restart and after a watch that was cut."""

from __future__ import annotations

import json

import msgspec
import pytest

from leases.domain.change import Change, identity
from leases.domain.lease import Lease, ObjectName
from leases.domain.phase import Phase
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update, read_remembered
from leases.wire.watch_decoding import Applied, Deleted, Listed, Renewed
from tests.support.values.leases import after, lease
from tests.tracking.store.one_store import known, put, relisted, renewing, words


def restarted(store: Store, until: float) -> Store:
    """The same cluster after a restart, from its checkpoint as it is kept: as JSON."""
    again = Store("c")
    coded = [msgspec.json.encode(tracked) for tracked in store.snapshot()]
    again.restore(read_remembered(coded), after(until))
    assert again.snapshot() == store.snapshot()
    return again


def test_after_a_restart_a_renewal_in_between_is_estimated_within_the_window() -> None:
    before = Store("c")
    renewing(before, 6)
    store = restarted(before, 7)
    assert words(relisted(store, 60, lease(renewed=58, version=40))) == []
    assert (known(store).observed_at, known(store).estimated) == (after(58), True)
    assert (known(store).cadence_seconds, known(store).renewals_seen) == (2.0, 3)


def test_after_a_restart_a_lease_that_was_not_renewed_ran_out_when_it_did() -> None:
    before = Store("c")
    last = renewing(before, 6)
    store = restarted(before, 7)
    update = relisted(store, 60, lease(renewed=6, version=last))
    (expired,) = update.changes
    assert (expired.change, expired.at, expired.inferred) == ("expired", after(21), True)
    assert expired.inferred_since == after(7)


def test_after_a_restart_everything_that_differs_is_inferred() -> None:
    before = Store("c")
    for number, name in enumerate(("gone", "kept", "lost", "swapped")):
        put(before, 0, name=name, uid=name, version=number + 1)
        put(before, 1, name=name, uid=name, version=number + 10, renewed=1)
    store = restarted(before, 5)
    update = relisted(
        store,
        60,
        lease(name="born", uid="born", created=30, acquired=31, renewed=59, version=50),
        lease(name="kept", uid="kept", renewed=59, labels={"a": "b"}, version=51),
        lease("b", name="lost", uid="lost", acquired=20, renewed=59, transitions=2, version=52),
        lease(name="swapped", uid="new", created=40, acquired=40, renewed=59, version=53),
    )
    reported = {(change.name, change.change.value): change for change in update.changes}
    assert set(reported) == {
        ("born", "created"),
        ("kept", "reconfigured"),
        ("lost", "taken_over"),
        ("swapped", "deleted"),
        ("swapped", "created"),
        ("gone", "deleted"),
    }
    assert all(change.inferred for change in update.changes)
    assert reported["born", "created"].at == after(31)
    assert reported["born", "created"].inferred_since == after(30)
    assert (reported["lost", "taken_over"].at, reported["lost", "taken_over"].missed) == (
        after(20),
        1,
    )
    assert reported["swapped", "deleted"].at == after(40)
    assert reported["gone", "deleted"].at == after(60)
    assert reported["gone", "deleted"].inferred_since == after(5)
    assert {key.name for key in update.redraw} == {"born", "kept", "lost", "swapped"}
    assert update.removed == (ObjectName("default", "gone"),)


def test_events_replayed_after_a_restart_keep_the_times_their_writers_claim() -> None:
    before = Store("c")
    renewing(before, 6)
    store = restarted(before, 7)
    released = lease("", duration=1, acquired=10, renewed=10, version=20)
    taken = lease("b", acquired=12, renewed=12, transitions=1, version=21)
    first = store.follow((Applied(released),), after(60), inferred=True)
    second = store.follow((Applied(taken),), after(60), inferred=True)
    assert words(first) == ["released"]
    assert words(second) == ["acquired"]
    assert first is not None
    assert second is not None
    assert (first.changes[0].at, second.changes[0].at) == (after(10), after(12))
    assert (second.changes[0].inferred, second.changes[0].gap_seconds) == (True, 2)
    assert words(relisted(store, 61, taken)) == ["expired"]


def test_an_expiry_that_is_replayed_after_a_restart_comes_before_the_take_over() -> None:
    """Each renewal is replayed, so that it is known when the last one had lasted."""
    before = Store("c")
    last = renewing(before, 6)
    store = restarted(before, 7)
    store.follow((Applied(lease(renewed=8, version=last + 1)),), after(60), inferred=True)
    taken = lease("b", acquired=25, renewed=25, transitions=1, version=last + 2)
    update = store.follow((Applied(taken),), after(60), inferred=True)
    assert words(update) == ["expired", "taken_over"]
    assert update is not None
    expired, took = update.changes
    assert (expired.at, expired.inferred) == (after(23), True)
    assert (took.at, took.inferred, took.gap_seconds) == (after(25), True, 2.0)


def test_a_renewal_that_is_replayed_is_as_old_as_it_says_and_teaches_no_cadence() -> None:
    """The checkpoint may lack the renewal before it."""
    before = Store("c")
    last = renewing(before, 6)
    store = restarted(before, 12)
    whole = Applied(lease(renewed=18, version=last + 1), fingerprint=7, line=b"{}")
    again = Renewed(7, last + 2, after(20), b"")
    update = store.follow((whole, again), after(60), inferred=True)
    assert update is not None
    assert (words(update), update.redraw, len(update.renewed)) == ([], (), 2)
    state = known(store)
    assert (state.renew_time, state.observed_at, state.estimated) == (after(20), after(20), True)
    assert (state.cadence_seconds, state.intervals) == (2.0, known(before).intervals)
    assert state.skew_seconds == known(before).skew_seconds
    taken = lease("b", acquired=38, renewed=38, transitions=1, version=last + 3)
    update = store.follow((Applied(taken),), after(60), inferred=True)
    assert words(update) == ["expired", "taken_over"]
    assert update is not None
    assert update.changes[0].at == after(35)


@pytest.mark.parametrize(("seen_late", "told"), [(True, ["expired", "recovered"]), (False, [])])
def test_a_late_lease_that_expired_during_a_restart_is_told_of(
    seen_late: bool, told: list[str]
) -> None:
    """Every renewal of a late Lease is stored at once; of another, some may be missing."""
    before = Store("c")
    last = renewing(before, 6)
    if seen_late:
        before.turn(after(11))
        assert known(before).phase is Phase.LATE
    store = restarted(before, 12)
    update = store.follow((Applied(lease(renewed=25, version=last + 1)),), after(60), inferred=True)
    assert words(update) == told
    if update is not None and told:
        assert [one.at for one in update.changes] == [after(21), after(25)]
        assert [one.inferred for one in update.changes] == [True, True]


def cut(until: float) -> tuple[Store, int]:
    """A holder that renewed every 2 s in a watch that was lost at `until` and resumed at 60 s."""
    store = Store("c")
    last = renewing(store, int(until))
    store.lost(after(until))
    store.resumed(after(60))
    return store, last


def labelled_at(seconds: float) -> bytes:
    """A line of the watch whose field managers say that kubectl-label wrote then."""
    entry = {
        "manager": "kubectl-label", "operation": "Update", "time": f"{after(seconds):%FT%TZ}",
        "fieldsV1": {"f:metadata": {"f:labels": {"f:team": {}}}},
    }  # fmt: skip
    return json.dumps({"object": {"metadata": {"managedFields": [entry]}}}).encode()


@pytest.mark.parametrize("inferred", [True, False])
def test_an_edit_that_is_replayed_is_dated_by_its_manager_and_moves_nothing_after_it(
    *, inferred: bool
) -> None:
    store, last = cut(6)
    edited = lease(renewed=8, labels={"team": "core"}, version=last + 2)
    store.follow((Applied(lease(renewed=8, version=last + 1)),), after(60.1), inferred=inferred)
    first = store.follow((Applied(edited, line=labelled_at(11)),), after(60.2), inferred=inferred)
    taken = lease("b", acquired=25, renewed=25, transitions=1, version=last + 3)
    second = store.follow((Applied(taken),), after(60.3), inferred=inferred)
    assert first is not None
    assert second is not None
    (label,) = first.changes
    assert (label.change.value, label.at, label.writer) == (
        "reconfigured", after(11), "kubectl-label",
    )  # fmt: skip
    change = second.changes[-1]
    assert (change.change.value, change.at, change.gap_seconds) == ("taken_over", after(25), 2.0)


def test_renewals_that_catch_up_are_judged_by_when_they_were_written() -> None:
    store, last = cut(6)
    for second in range(8, 60, 2):
        last += 1
        assert words(put(store, 60.1, renewed=second, version=last)) == []
    assert known(store).observed_at == after(58)
    assert known(store).cadence_seconds == 2.0
    store.caught_up()
    assert words(store.turn(after(61))) == []


def test_an_expiry_and_a_take_over_that_catch_up_keep_their_true_order() -> None:
    store, last = cut(6)
    put(store, 60.1, renewed=8, version=last + 1)
    update = put(store, 60.1, holder="b", acquired=24, renewed=24, transitions=1, version=last + 2)
    assert words(update) == ["expired", "taken_over"]
    assert update is not None
    expired, taken = update.changes
    assert (expired.at, expired.inferred, expired.inferred_since) == (after(23), True, after(6))
    assert (taken.at, taken.inferred, taken.gap_seconds) == (after(24), False, 1)


def test_an_expiry_during_a_cut_watch_is_inferred() -> None:
    store, _ = cut(6)
    store.caught_up()
    update = store.turn(after(61))
    assert words(update) == ["expired"]
    assert update is not None
    assert (update.changes[0].inferred, update.changes[0].inferred_since) == (True, after(6))


def test_a_short_break_leaves_no_expiry_in_doubt() -> None:
    store = Store("c")
    put(store, 0)
    store.lost(after(14))
    store.resumed(after(15.5))
    store.caught_up()
    update = store.turn(after(16.5))
    assert words(update) == ["expired"]
    assert update is not None
    assert (update.changes[0].at, update.changes[0].inferred) == (after(15), False)


def test_a_renewal_that_an_earlier_run_saw_but_did_not_write_down_is_as_old_as_it_says() -> None:
    first = Store("c")
    put(first, 0)
    second = Store("c")
    second.restore(first.snapshot(), after(60))  # it was followed for a minute more
    second.replace(Listed((lease(renewed=50, version=30),), "40"), after(62))
    assert known(second).observed_at == after(50)


def news(update: Update | None) -> tuple[Change, ...]:
    return update.changes if update else ()


def made_anew(*, created: int, acquired: float, version: int = 90) -> Applied:
    """Its holder makes it again, under another uid."""
    return Applied(
        lease(uid="uid-2", created=created, acquired=acquired, renewed=acquired, version=version)
    )


def test_a_deletion_that_catches_up_happened_before_the_lease_was_made_anew() -> None:
    store, last = cut(6)
    gone = Deleted(lease(renewed=8, version=80))
    update = store.follow([gone, made_anew(created=10, acquired=10.1)], after(60.1))
    assert last < 80
    assert words(update) == ["deleted", "created"]
    assert update is not None
    deleted, created = update.changes
    assert (deleted.at, deleted.inferred, deleted.inferred_since) == (after(8), True, after(8))
    assert (deleted.observed_at, created.at) == (after(60.1), after(10.1))
    assert created.gap_seconds == pytest.approx(2.1)


def test_the_lease_that_follows_a_deletion_may_come_in_a_later_read() -> None:
    store, _ = cut(6)
    (deleted,) = news(store.follow([Deleted(lease(renewed=6, version=80))], after(60.1)))
    (created,) = news(store.follow([made_anew(created=10, acquired=10.1)], after(60.9)))
    assert (deleted.at, created.at) == (after(6), after(10.1))


def test_whole_seconds_put_no_creation_before_the_deletion() -> None:
    """A creationTimestamp of 10 s may be of any moment until 11 s."""
    store, _ = cut(6)
    gone = Deleted(lease(renewed=10.3, version=80))
    anew = lease("", uid="uid-2", created=10, acquired=None, renewed=None, version=90)
    deleted, created = news(store.follow([gone, Applied(anew)], after(60.1)))
    assert (deleted.at, created.at) == (after(10.3), after(10.3))


def test_a_deletion_replayed_after_a_restart_happened_before_the_lease_was_made_anew() -> None:
    before = Store("c")
    renewing(before, 6)
    store = restarted(before, 7)
    gone = Deleted(lease(renewed=8, version=80))
    (deleted,) = news(store.follow((gone,), after(60), inferred=True))
    anew = made_anew(created=10, acquired=10.1)
    (created,) = news(store.follow((anew,), after(60.1), inferred=True))
    assert (deleted.at, deleted.inferred, deleted.inferred_since) == (after(8), True, after(8))
    assert (created.at, created.inferred) == (after(10.1), True)


def test_nobody_renewed_it_before_a_deletion_that_catches_up() -> None:
    store = Store("c")
    put(store, 0, holder="", acquired=None, renewed=None)
    store.lost(after(6))
    store.resumed(after(60))
    gone = lease("", acquired=None, renewed=None, version=80)
    (deleted,) = news(store.follow([Deleted(gone)], after(60.1)))
    assert (deleted.at, deleted.inferred_since) == (after(6), after(6))
    assert (deleted.observed_at, deleted.inferred) == (after(60.1), True)


def test_a_deletion_came_after_somebody_asked_for_it() -> None:
    store, _ = cut(6)
    gone = lease(renewed=8, version=80)
    asked = msgspec.structs.replace(gone.metadata, deletion_timestamp=after(30))
    (deleted,) = news(store.follow([Deleted(Lease(asked, gone.spec))], after(60.1)))
    assert (deleted.at, deleted.inferred_since) == (after(30), after(30))


def test_a_renewal_by_a_clock_that_is_ahead_does_not_date_a_deletion() -> None:
    store, _ = cut(6)
    (deleted,) = news(store.follow([Deleted(lease(renewed=3600, version=80))], after(60.1)))
    assert deleted.at == after(6)


def test_once_caught_up_a_deletion_happens_when_it_is_observed() -> None:
    store, _ = cut(6)
    store.caught_up()
    (deleted,) = news(store.follow([Deleted(lease(renewed=6, version=80))], after(70)))[-1:]
    assert (deleted.at, deleted.inferred) == (after(70), False)


def test_replicas_agree_on_a_deletion_that_one_of_them_saw_late() -> None:
    late, _ = cut(6)
    live = Store("c")
    renewing(live, 6)
    gone = Deleted(lease(renewed=6, version=80))
    (told,) = news(late.follow([gone], after(60.1)))
    (seen,) = news(live.follow([gone], after(7)))
    assert identity(told) == identity(seen)
    assert (told.inferred, seen.inferred) == (True, False)  # the observed one beats it in history


@pytest.mark.parametrize("listed", [True, False])
def test_an_unseen_deletion_is_not_later_than_what_followed_it(*, listed: bool) -> None:
    """A creationTimestamp has whole seconds: it may lie before the last renewal."""
    store, _ = cut(6)
    put(store, 60.1, renewed=8.6, version=80)
    anew = lease(uid="uid-2", created=8, acquired=8.8, renewed=58, version=90)
    listing = store.replace(Listed((anew,), "91"), after(60.2)) if listed else None
    deleted, created = news(listing or store.follow([Applied(anew)], after(60.2)))
    assert (deleted.change, deleted.at, created.at) == ("deleted", after(8.6), after(8.8))
