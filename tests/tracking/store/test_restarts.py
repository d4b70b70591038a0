"""The state of a cluster after a restart and after a watch that was cut."""

from __future__ import annotations

import msgspec

from leases.domain.lease import ObjectName
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked
from leases.wire.watch_decoding import Applied, Listed
from tests.support.values.leases import after, lease
from tests.tracking.store.one_store import known, put, relisted, renewing, words


def restarted(store: Store, until: float) -> Store:
    """The same cluster after a restart, from its checkpoint as it is kept: as JSON."""
    again = Store("c")
    coded = [msgspec.json.encode(tracked) for tracked in store.snapshot()]
    again.restore((msgspec.json.decode(row, type=Tracked) for row in coded), after(until))
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
    first = store.apply(Applied(released), after(60), inferred=True)
    second = store.apply(Applied(taken), after(60), inferred=True)
    assert words(first) == ["released"]
    assert words(second) == ["acquired"]
    assert first is not None
    assert second is not None
    assert (first.changes[0].at, second.changes[0].at) == (after(10), after(12))
    assert (second.changes[0].inferred, second.changes[0].gap_seconds) == (True, 2)
    assert words(relisted(store, 61, taken)) == ["expired"]


def cut(until: float) -> tuple[Store, int]:
    """A holder that renewed every 2 s in a watch that was lost at `until` and resumed at 60 s."""
    store = Store("c")
    last = renewing(store, int(until))
    store.lost(after(until))
    store.resumed(after(60))
    return store, last


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
