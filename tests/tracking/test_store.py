"""One cluster's state: what events, lists, restarts and the clock make of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from leases.domain.bounded_time import EARLIEST
from leases.domain.changes.change import Change
from leases.domain.changes.change_identity import identity
from leases.domain.kind import Kind
from leases.domain.lease import Lease, ObjectName
from leases.domain.phase import Phase
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked, Update
from leases.wire.watch_events import Applied, Deleted, Listed, ListPage
from tests.support.values.leases import after, lease

KEY = ObjectName("default", "controller")


def words(update: Update | None) -> list[str]:
    return [change.change.value for change in update.changes] if update else []


def put(store: Store, seconds: float, **given: Any) -> Update | None:
    return store.apply(Applied(lease(**given)), after(seconds))


def known(store: Store) -> Tracked:
    tracked = store.get(KEY)
    assert tracked is not None
    return tracked


def renewing(store: Store, seconds: int, *, version: int = 1) -> int:
    """A holder that renews every 2 s from its creation at noon; returns the last version."""
    for second in range(0, seconds + 1, 2):
        put(store, second, renewed=second, version=version)
        version += 1
    return version - 1


def test_a_creation_seen_live_is_observed_and_not_estimated() -> None:
    store = Store("c")
    update = put(store, 5, renewed=4)
    assert words(update) == ["created"]
    assert (known(store).observed_at, known(store).estimated) == (after(5), False)
    assert (known(store).held_since, known(store).kind) == (after(5), Kind.ELECTION)


def test_a_plain_renewal_moves_freshness_and_nothing_else() -> None:
    store = Store("c")
    renewing(store, 6)
    before = store.seq
    update = put(store, 8.1, renewed=8, version=9)
    assert update is not None
    assert (update.renewed, update.changes, update.redraw, update.seq) == ((KEY,), (), (), before)
    now = known(store)
    assert (now.observed_at, now.renewals_seen, now.cadence_seconds) == (after(8.1), 4, 2.0)
    assert now.skew_seconds == pytest.approx(0.0)
    assert now.phase is Phase.HELD


def test_the_clock_turns_held_to_late_to_expired() -> None:
    store = Store("c")
    renewing(store, 6)
    assert store.next_deadline() is not None
    assert store.turn(after(10)) is None
    late = store.turn(after(10.000001))
    assert late is not None
    assert (late.redraw, late.changes, known(store).phase) == ((KEY,), (), Phase.LATE)
    expired = store.turn(after(21.3))
    assert expired is not None
    (change,) = expired.changes
    assert (change.change, change.at, change.observed_at) == ("expired", after(21), after(21.3))
    assert (change.inferred, change.resource_version) == (False, "")
    assert (known(store).phase_since, known(store).gap_since) == (after(21), after(21))
    assert (store.next_deadline(), store.turn(after(9999))) == (None, None)


def test_an_event_that_beats_the_timer_tells_the_expiry_first() -> None:
    store = Store("c")
    renewing(store, 6)
    update = put(store, 21.5, holder="b", acquired=21.5, renewed=21.5, transitions=1, version=50)
    assert words(update) == ["expired", "taken_over"]
    assert update is not None
    assert update.changes[1].gap_seconds == 0.5
    assert known(store).gap_since is None
    store.turn(after(40))
    assert words(
        put(store, 45, holder="b", acquired=21.5, renewed=45, transitions=1, version=51)
    ) == ["recovered"]


def test_a_preferred_holder_renews_nothing() -> None:
    store = Store("c")
    last = renewing(store, 6)
    assert words(put(store, 9, renewed=6, preferred="b", version=last + 1)) == ["reconfigured"]
    assert known(store).observed_at == after(6)
    assert words(store.turn(after(21))) == ["expired"]


def test_a_shorter_duration_brings_the_deadline_nearer() -> None:
    store = Store("c")
    put(store, 0, duration=3600)
    assert store.next_deadline() == after(2400)
    put(store, 1, renewed=1, duration=3600, version=2)
    put(store, 2, renewed=1, duration=3, version=3)
    assert store.next_deadline() == after(4)


def test_the_first_renewal_judges_a_lock_again() -> None:
    store = Store("c")
    put(store, 0, transitions=None)
    assert known(store).kind is Kind.LOCK
    put(store, 2, renewed=2, transitions=None, version=2)
    assert known(store).kind is Kind.ELECTION
    put(store, 30, holder="b", acquired=30, renewed=30, transitions=None, version=3)
    assert known(store).kind is Kind.ELECTION


def test_a_vacant_lease_keeps_its_kind_and_reason() -> None:
    store = Store("c")
    put(store, 0, acquired=None, renewed=None, duration=None, transitions=None)
    reason = known(store).kind_reason
    put(
        store, 5, holder="", acquired=None, renewed=None, duration=None, transitions=None, version=2
    )
    assert (known(store).kind, known(store).kind_reason) == (Kind.LOCK, reason)
    assert (known(store).phase, known(store).gap_since) == (Phase.VACANT, after(5))


def test_a_heartbeat_without_a_holder_is_held_by_its_own_name_until_it_names_one() -> None:
    store = Store("c")
    bare: dict[str, Any] = {"acquired": None, "transitions": None}
    update = put(store, 0, holder=None, **bare)
    assert update is not None
    assert (update.changes[0].holder, known(store).phase) == ("controller", Phase.HELD)
    assert words(store.turn(after(15))) == ["expired"]
    assert words(put(store, 20, holder=None, renewed=20, version=2, **bare)) == ["recovered"]
    assert words(put(store, 21, holder="controller", renewed=21, version=3, **bare)) == []
    assert words(put(store, 22, holder="", renewed=22, version=4, **bare)) == ["released"]
    assert known(store).phase is Phase.VACANT


def test_an_event_that_is_not_newer_is_skipped_even_after_the_deletion() -> None:
    store = Store("c")
    put(store, 0, version=9)
    assert put(store, 1, version=9) is None
    assert put(store, 1, version=10, renewed=1) is not None
    assert put(store, 2, holder="b", version=9) is None
    gone = Deleted(lease(version=11))
    assert words(store.apply(gone, after(3))) == ["deleted"]
    assert store.apply(gone, after(4)) is None
    assert put(store, 5, version=10) is None
    assert store.snapshot() == ()


def test_another_uid_means_an_unseen_deletion() -> None:
    store = Store("c")
    renewing(store, 4)
    update = put(store, 9, uid="uid-2", created=7, acquired=9, renewed=9, version=20)
    assert words(update) == ["deleted", "created"]
    assert update is not None
    deleted, created = update.changes
    assert (deleted.uid, deleted.inferred, deleted.inferred_since) == ("uid-1", True, after(4))
    assert (deleted.at, deleted.previous_holder) == (after(7), "a")
    assert (created.uid, created.inferred, created.gap_seconds) == ("uid-2", False, None)
    assert (update.removed, update.redraw) == ((), (KEY,))


def test_a_re_creation_ends_the_gap_that_began_before_the_deletion() -> None:
    store = Store("c")
    put(store, 0)
    store.turn(after(15))
    store.apply(Deleted(lease(version=2)), after(20))
    update = put(store, 25, uid="uid-2", version=3)
    assert update is not None
    assert update.changes[0].gap_seconds == 10


def test_a_holder_put_back_by_hand_runs_out_a_second_time() -> None:
    store = Store("c")
    told: list[Change] = []
    for version, holder in enumerate("aba"):
        update = put(store, version * 20, holder=holder, version=version + 1)
        expired = store.turn(after(version * 20 + 15))
        told += [change for u in (update, expired) if u for change in u.changes]
    assert [change.change.value for change in told] == [
        "created",
        "expired",
        "taken_over",
        "expired",
        "taken_over",
        "expired",
    ]
    assert len({identity(change) for change in told}) == 6


def test_the_first_list_estimates_from_renew_time() -> None:
    store = Store("c")
    seen = lease(acquired=-50, renewed=-3, created=-100)
    update = store.replace(Listed((seen,), "7"), after(0))
    (created,) = update.changes
    assert (created.change, created.inferred, created.at) == ("created", True, after(-50))
    assert (created.inferred_since, update.listed) == (after(-100), True)
    assert (known(store).observed_at, known(store).estimated) == (after(-3), True)
    assert words(store.turn(after(12))) == ["expired"]


def test_a_renew_time_from_the_future_is_observed_now() -> None:
    store = Store("c")
    store.replace(Listed((lease(renewed=420),), "7"), after(0))
    assert known(store).observed_at == after(0)


def test_what_ran_out_long_before_the_first_list_is_expired_at_once() -> None:
    store = Store("c")
    dead = lease(acquired=None, renewed=-1000, created=-5000)
    update = store.replace(Listed((dead,), "7"), after(0))
    created, expired = update.changes
    assert (expired.change, expired.at, expired.inferred) == ("expired", after(-985), True)
    assert created.at == after(-1000)
    assert known(store).phase is Phase.EXPIRED


def test_nothing_is_dated_before_the_lease_was_created() -> None:
    """A renewTime in year 1 is no moment at which anything happened."""
    store = Store("c")
    dead = lease(renewed=None, created=-3600)
    spec = msgspec.structs.replace(dead.spec, acquire_time=EARLIEST, renew_time=EARLIEST)
    update = store.replace(Listed((Lease(dead.metadata, spec),), "7"), after(0))
    assert words(update) == ["created", "expired"]
    assert {change.at for change in update.changes} == {after(-3600)}
    (state,) = store.snapshot()
    assert (state.phase, state.phase_since) == (Phase.EXPIRED, after(-3600))


def test_what_ran_out_while_the_list_was_read_waits_for_the_watch() -> None:
    store = Store("c")
    update = store.replace(Listed((lease(renewed=-16),), "7"), after(0))
    assert words(update) == ["created"]
    assert words(put(store, 0.5, renewed=0.4, version=8)) == ["expired", "recovered"]


def relisted(store: Store, seconds: float, *leases: Any, version: str = "99") -> Update:
    return store.replace(Listed(tuple(leases), version), after(seconds))


def restarted(store: Store, until: float) -> Store:
    """The same cluster after a restart, from its checkpoint as it is kept: as JSON."""
    again = Store("c")
    coded = [msgspec.json.encode(tracked) for tracked in store.snapshot()]
    again.restore((msgspec.json.decode(row, type=Tracked) for row in coded), after(until))
    assert again.snapshot() == store.snapshot()
    return again


def test_a_renewal_while_the_list_was_read_is_as_old_as_it_says() -> None:
    store = Store("c")
    store.enter(ListPage((), "9"), after(0))
    store.replace(Listed((lease(renewed=-3, version=8),), "9"), after(5))
    store.apply(Applied(lease(renewed=2, version=10)), after(5.5))
    assert known(store).observed_at == after(2)


def test_a_list_that_tells_nothing_new_changes_nothing() -> None:
    store = Store("c")
    last = renewing(store, 6)
    update = relisted(store, 7, lease(renewed=6, version=last))
    assert (update.changes, update.listed) == ((), True)
    assert known(store).estimated is False


def test_a_list_that_was_begun_twice_still_tells_what_is_gone() -> None:
    store = Store("c")
    stays, goes = lease(), lease(name="b", uid="b")
    store.replace(Listed((stays, goes), "9"), after(0))
    store.enter(ListPage((stays,), "10"), after(1))
    store.enter(ListPage((stays,), "10"), after(2))
    assert words(store.replace(Listed((), "10"), after(3))) == ["deleted"]


def test_a_list_tells_of_many_renewals_only_the_last() -> None:
    store = Store("c")
    version = renewing(store, 12)
    before = known(store)
    store.lost(after(12))
    update = store.replace(Listed((lease(renewed=26, version=90),), "91"), after(28))
    now = known(store)
    assert (version, words(update), update.redraw) == (7, [], ())
    assert (now.observed_at, now.estimated) == (after(26), True)
    assert (now.lease.resource_version, now.lease.spec.renew_time) == ("90", after(26))
    assert (now.renewals_seen, now.cadence_seconds) == (before.renewals_seen, 2.0)
    assert words(store.turn(after(29))) == []
    assert words(store.turn(after(41))) == ["expired"]


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
    told = {(change.name, change.change.value): change for change in update.changes}
    assert set(told) == {
        ("born", "created"),
        ("kept", "reconfigured"),
        ("lost", "taken_over"),
        ("swapped", "deleted"),
        ("swapped", "created"),
        ("gone", "deleted"),
    }
    assert all(change.inferred for change in update.changes)
    assert told["born", "created"].at == after(31)
    assert told["born", "created"].inferred_since == after(30)
    assert (told["lost", "taken_over"].at, told["lost", "taken_over"].missed) == (after(20), 1)
    assert told["swapped", "deleted"].at == after(40)
    assert told["gone", "deleted"].at == after(60)
    assert told["gone", "deleted"].inferred_since == after(5)
    assert {key.name for key in update.redraw} == {"born", "kept", "lost", "swapped"}
    assert update.removed == (ObjectName("default", "gone"),)


def test_events_told_again_after_a_restart_keep_the_times_their_writers_claim() -> None:
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


def test_an_expiry_and_a_take_over_that_catch_up_are_told_in_their_true_order() -> None:
    store, last = cut(6)
    put(store, 60.1, renewed=8, version=last + 1)
    update = put(store, 60.1, holder="b", acquired=24, renewed=24, transitions=1, version=last + 2)
    assert words(update) == ["expired", "taken_over"]
    assert update is not None
    expired, taken = update.changes
    assert (expired.at, expired.inferred, expired.inferred_since) == (after(23), True, after(6))
    assert (taken.at, taken.inferred, taken.gap_seconds) == (after(24), False, 1)


def test_what_ran_out_while_nothing_was_seen_is_inferred() -> None:
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


def test_names_stay_in_order_and_counts_follow() -> None:
    store = Store("c")
    many = [lease(name=f"n-{n:03}", uid=str(n), version=n, renewed=1) for n in range(1, 400)]
    store.replace(Listed(tuple(reversed(many)), "400"), after(2))
    put(store, 3, name="n-0055", uid="x", version=401)
    put(store, 3, name="z", namespace="zz", uid="y", version=402)
    store.apply(Deleted(lease(name="n-007", uid="7", version=403)), after(3))
    names = [tracked.key for tracked in store.snapshot()]
    assert names == sorted(names)
    assert len(names) == 400
    assert store.counts()[Kind.ELECTION][Phase.HELD] == 400


def test_a_selection_is_in_name_order_and_follows_every_turn() -> None:
    store = Store("c")
    nodes = [
        lease(
            f"n-{n:03}", name=f"n-{n:03}", namespace="kube-node-lease", uid=str(n), version=n,
            renewed=90 + n % 2 * 10, acquired=None, transitions=None,
        )
        for n in range(1, 200)
    ]  # fmt: skip
    elections = [lease(name=f"e-{n}", uid=f"e{n}", version=n, renewed=100) for n in (2, 1)]
    store.replace(Listed((*nodes, *elections), "400"), after(100))

    def names(kinds: tuple[Kind, ...], *phases: Phase) -> list[str]:
        return [tracked.lease.metadata.name for tracked in store.select(kinds, phases)]

    assert names((Kind.ELECTION,), *Phase) == ["e-1", "e-2"]
    assert len(names(tuple(Kind), Phase.HELD)) == 201
    while store.turn(after(107)):
        pass  # a step turns only so many
    assert names((Kind.HEARTBEAT,), Phase.EXPIRED) == [f"n-{n:03}" for n in range(2, 200, 2)]
    gone = lease("n-002", name="n-002", namespace="kube-node-lease", uid="2", version=500)
    store.apply(Deleted(gone), after(108))
    assert "n-002" not in names(tuple(Kind), Phase.EXPIRED)
    everything = [tracked.lease.metadata.name for tracked in store.snapshot()]
    assert names(tuple(Kind), *Phase) == everything
    assert store.namespaces() == ["default", "kube-node-lease"]
    assert store.of_namespace("default") == store.snapshot()[:2]


def test_a_renewal_that_an_earlier_run_saw_but_did_not_write_down_is_as_old_as_it_says() -> None:
    first = Store("c")
    put(first, 0)
    second = Store("c")
    second.restore(first.snapshot(), after(60))  # it was followed for a minute more
    second.replace(Listed((lease(renewed=50, version=30),), "40"), after(62))
    assert known(second).observed_at == after(50)


def test_what_followed_a_list_that_was_told_late_happened_when_it_says() -> None:
    """What was before a list is told first, which takes a while: it is as of when it came."""
    store = Store("c")
    store.restore((), after(-60))
    store.replace(Listed((lease(renewed=-1, version=1),), "1", age=4.0), after(4))
    store.follow((Applied(lease(renewed=1, version=2)),), after(4.1))
    assert [row.observed_at for row in store.snapshot()] == [after(1)]
